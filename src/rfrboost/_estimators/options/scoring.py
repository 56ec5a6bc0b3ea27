"""``scoring``: a scorer of scikit-learn as a function of raw predictions.

Scorers take an estimator, X and y. Held-out rows have their predictions already, so that the
estimator handed to a scorer is a stand-in which knows the predictions of all rows, and X are the
indices of rows, (m, 1).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer
from sklearn.metrics._scorer import _BaseScorer

from rfrboost._estimators.fitted import ClassTargets, Targets
from rfrboost._model.losses import Loss
from rfrboost._typing import Array, Indices


@dataclass(eq=False, repr=False)
class KnownNumbers(RegressorMixin, BaseEstimator):
    """A regressor whose predictions are known; X (m, 1) are the indices of rows."""

    values: Array

    def predict(self, X: Array) -> Array:
        values: Array = self.values[X[:, 0]]
        return values

    def __sklearn_is_fitted__(self) -> bool:
        return True


@dataclass(eq=False, repr=False)
class KnownClasses(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities and logits are known; X (m, 1) are the indices of rows."""

    probabilities: Array
    logits: Array
    targets: ClassTargets

    @property
    def classes_(self) -> np.ndarray:
        return self.targets.listed

    def predict_proba(self, X: Array) -> Array:
        probabilities: Array = self.probabilities[X[:, 0]]
        return probabilities

    def decision_function(self, X: Array) -> Array:
        logits: Array = self.logits[X[:, 0]]
        return logits

    def predict(self, X: Array) -> np.ndarray:
        return self.targets.labels(self.predict_proba(X))

    def __sklearn_is_fitted__(self) -> bool:
        return True


def score_for(
    scoring: Any, loss: Loss, targets: Targets, Y: Array, w: Array | None
) -> Callable[[Array, Indices], float]:
    """A function that scores raw predictions (m, d) for some of the rows (m,) by ``scoring``.

    ``Y`` (n, k) and ``w`` (n,) are the targets of all rows, in the units of the fit, and their
    weights. Scorers of scikit-learn are given the weights if there are any; other callables, which
    take an estimator, X and y, are not.
    """
    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    y = targets.as_handed_in(Y)
    weighted = w is not None and isinstance(scorer, _BaseScorer)

    def score(raw: Array, rows: Indices) -> float:
        known = stand_in(loss, targets, raw)
        places = np.arange(len(rows))[:, None]
        # Weights only where there are some: not every metric takes them.
        weights = {"sample_weight": w[rows]} if weighted and w is not None else {}
        try:
            value = scorer(known, places, y[rows], **weights)
        except (AttributeError, TypeError, ValueError) as error:
            reason = str(error).replace(type(known).__name__, "the model")
            raise ValueError(
                f"scoring={scoring!r} cannot score this fit: {reason} Choose another, or leave "
                "scoring=None."
            ) from error
        if not np.isfinite(value):
            raise ValueError(
                f"scoring={scoring!r} gave {value} for held-out rows; a score must be a finite "
                "number. Choose another, or leave scoring=None."
            )
        return float(value)

    return score


def stand_in(loss: Loss, targets: Targets, raw: Array) -> KnownNumbers | KnownClasses:
    """An estimator whose predictions are made from raw predictions (m, d)."""
    predictions = targets.predictions(loss, raw)
    if isinstance(targets, ClassTargets):
        return KnownClasses(predictions, raw[:, 0] if targets.one_output else raw, targets)
    return KnownNumbers(predictions)
