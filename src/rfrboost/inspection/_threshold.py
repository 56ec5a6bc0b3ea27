"""The probability from which on the second class is predicted, chosen for a metric."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.utils.validation import column_or_1d

from rfrboost.inspection._models import predictions

# The most thresholds that are compared: quantiles of the predicted probabilities.
MOST_THRESHOLDS = 500


class Threshold(NamedTuple):
    """A threshold on the probability of ``classes_[1]``, and the metric that it reaches."""

    threshold: float
    score: float


def best_threshold(
    model: Any,
    y: Any,
    metric: str | Callable[..., float] = "f1",
    *,
    X: Any = None,
    sample_weight: Any = None,
) -> Threshold:
    """The threshold on the probability of the second class with the best metric.

    No further fit is needed: an automatic model has an out-of-fold probability for every training
    row. The score is a little optimistic, because the threshold is chosen on the same rows.

    Parameters
    ----------
    model : fitted classifier of two classes
    y : array-like of shape (n_samples,)
        The y that was passed to ``fit`` or, with X, that of the rows of X.
    metric : str or callable, default="f1"
        The name of a scorer of scikit-learn that compares labels ("f1", "balanced_accuracy",
        "precision", …), where the positive class is ``classes_[1]``; or a function
        ``metric(y_true, y_pred)`` of arrays in which the positive class is 1 and the other 0. The
        larger the better.
    X : array-like of shape (n_samples, n_features_in), optional
        Rows that the model was not fitted on, to choose by these instead.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    Threshold
        ``threshold`` and ``score``. Predict the second class where its probability is at least
        the threshold.
    """
    labels = column_or_1d(y)
    actual, probabilities, _ = predictions(model, X, labels, "predict_proba")
    if probabilities.ndim != 2 or probabilities.shape[1] != 2:
        raise ValueError("A threshold tells two classes apart; this model has another number.")
    weights = None
    if sample_weight is not None:
        known = np.ones(len(labels), bool)
        if X is None:
            known = np.isfinite(model.oof_prediction_).all(axis=1)
        weights = column_or_1d(sample_weight)[known]
    right = (actual == model.classes_[1]).astype(int)
    score = score_of_labels(metric)
    probability = probabilities[:, 1]
    found = [
        Threshold(float(t), score(right, (probability >= t).astype(int), weights))
        for t in candidates(probability)
    ]
    return max(found, key=lambda own: own.score)


def candidates(probability: np.ndarray) -> np.ndarray:
    """Thresholds between all probabilities, or between evenly spaced quantiles of them."""
    levels = np.unique(probability)
    if len(levels) > MOST_THRESHOLDS:
        levels = np.unique(np.quantile(probability, np.linspace(0, 1, MOST_THRESHOLDS)))
    between: np.ndarray = (levels[1:] + levels[:-1]) / 2
    return between if len(between) else np.array([0.5])


def score_of_labels(
    metric: str | Callable[..., float],
) -> Callable[[np.ndarray, np.ndarray, np.ndarray | None], float]:
    """A function of actual labels, predicted labels and weights, larger for better predictions."""
    if not isinstance(metric, str):
        return lambda right, predicted, w: float(
            metric(right, predicted) if w is None else metric(right, predicted, sample_weight=w)
        )
    scorer = get_scorer(metric)
    if getattr(scorer, "_response_method", "predict") != "predict":
        raise ValueError(
            f"{metric!r} scores probabilities, which no threshold changes. Choose a metric of "
            "labels, such as 'f1' or 'balanced_accuracy'."
        )
    sign, function, settings = scorer._sign, scorer._score_func, dict(scorer._kwargs)
    if "precision" in metric or "recall" in metric or metric.startswith(("f1", "jaccard")):
        settings["zero_division"] = 0.0
    return lambda right, predicted, w: float(
        sign * function(right, predicted, sample_weight=w, **settings)
    )
