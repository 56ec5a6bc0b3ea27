"""A wrapper for classifiers that accept only the labels 0, 1, …, without gaps.

A separate module, because importing it imports scikit-learn, which ``--help`` does not need.
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin


class CodedClassifier(ClassifierMixin, BaseEstimator):
    """Fits ``classifier`` on the codes 0, 1, … of the labels and predicts the labels themselves.

    A rare class can be absent from the training rows of a fold; XGBoost refuses the gap it leaves.
    """

    def __init__(self, classifier: BaseEstimator) -> None:
        self.classifier = classifier

    def fit(self, X: NDArray, y: NDArray) -> Self:
        """Fit on X (n, p) and labels y (n) of any type."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.classifier.fit(X, codes)
        return self

    def predict(self, X: NDArray) -> NDArray:
        """The most probable label of each row (n)."""
        # CatBoost returns its codes as a column.
        return self.classes_[np.ravel(self.classifier.predict(X)).astype(np.intp)]

    def predict_proba(self, X: NDArray) -> NDArray:
        """Class probabilities (n, classes), columns in the order of ``classes_``."""
        return self.classifier.predict_proba(X)
