"""Labels as codes without gaps, for the libraries that want them so."""

from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin


class CodedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that wants labels 0, 1, ... without gaps, for labels as they come.

    A rare class can be absent from a training part, and XGBoost refuses the gap it leaves.
    """

    def __init__(self, classifier: BaseEstimator) -> None:
        self.classifier = classifier

    def fit(self, X: NDArray, y: NDArray) -> Self:
        """Fit on the codes of the labels."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.classifier.fit(X, codes)
        return self

    def predict(self, X: NDArray) -> NDArray:
        """The labels; CatBoost returns its codes as a column."""
        return self.classes_[np.ravel(self.classifier.predict(X)).astype(np.intp)]

    def predict_proba(self, X: NDArray) -> NDArray:
        """Probabilities, in the order of ``classes_``."""
        return self.classifier.predict_proba(X)
