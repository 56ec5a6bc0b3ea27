"""Scores of one model on one fold: RMSE, accuracy, log loss, and the seconds of the fit."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from experiments.data.protocols import Fold


@dataclass(frozen=True)
class Scores:
    """RMSE (regression) or accuracy (classification) of a fit, and its seconds.

    ``details`` holds further facts of the fit, in values that JSON can hold.
    """

    train_score: float
    test_score: float
    fit_seconds: float
    predict_seconds: float
    details: dict[str, object] = field(default_factory=dict)


def rmse(y: NDArray, prediction: NDArray) -> float:
    """Root mean squared error; lower is better."""
    # (n,) minus (n, 1) would broadcast to (n, n) and give a plausible but wrong number.
    if y.shape != prediction.shape:
        raise ValueError(f"The predictions have shape {prediction.shape}, the labels {y.shape}.")
    return float(np.sqrt(np.mean((y - prediction) ** 2)))


def accuracy(y: NDArray, prediction: NDArray) -> float:
    """Share of correct labels; higher is better."""
    if y.shape != prediction.shape:
        raise ValueError(f"The predictions have shape {prediction.shape}, the labels {y.shape}.")
    return float(np.mean(y == prediction))


# Probabilities are raised to this value, because a zero would make the log loss infinite.
SMALLEST_PROBABILITY = 1e-15


def log_loss(y: NDArray, probabilities: NDArray, classes: NDArray) -> float:
    """Mean of −log p of the true label; lower is better.

    ``probabilities`` (n, classes) has a column for each of ``classes``, the labels of the training
    rows. A label that is not among them counts as one with probability zero.
    """
    if probabilities.shape != (len(y), len(classes)):
        raise ValueError(
            f"The probabilities have shape {probabilities.shape}, but there are {len(y)} labels "
            f"and {len(classes)} classes."
        )
    right = np.sum(probabilities * (y[:, None] == classes), axis=1, dtype=np.float64)
    loss = float(-np.mean(np.log(np.clip(right, SMALLEST_PROBABILITY, 1.0))))
    if not math.isfinite(loss):
        raise ArithmeticError(f"The log loss is not finite: {loss}.")
    return loss


METRICS: dict[str, Callable[[NDArray, NDArray], float]] = {
    "regression": rmse,
    "classification": accuracy,
}


def held_out_score(model: "BaseEstimator", fold: "Fold", task: str) -> float:
    """Fit on the training rows and score the test rows; a score that is not finite is an error."""
    prediction = model.fit(fold.X_train, fold.y_train).predict(fold.X_test)
    score = METRICS[task](fold.y_test, prediction)
    if not math.isfinite(score):
        raise ArithmeticError(f"The score is not finite: {score}.")
    return score


def fit_and_score(model: "BaseEstimator", fold: "Fold", task: str) -> Scores:
    """Fit on the training rows and score training and test rows, with seconds.

    A score that is not finite is an error.
    """
    metric = METRICS[task]
    start = time.perf_counter()
    model.fit(fold.X_train, fold.y_train)
    fitted = time.perf_counter()
    prediction = model.predict(fold.X_test)
    predicted = time.perf_counter()
    test_score = metric(fold.y_test, prediction)
    train_score = metric(fold.y_train, model.predict(fold.X_train))
    if not (math.isfinite(test_score) and math.isfinite(train_score)):
        raise ArithmeticError(f"The scores are not finite: train {train_score}, test {test_score}.")
    return Scores(train_score, test_score, fitted - start, predicted - fitted)
