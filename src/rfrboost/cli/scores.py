"""How good predictions are: the figures that ``evaluate`` shows."""

from typing import Any

import numpy as np
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from rfrboost.cli.tasks import Task
from rfrboost.inspection import expected_calibration_error

#: the figures of a task, as people know them, each with whether more is better
FIGURES = {
    Task.REGRESSION: {"RMSE": False, "MAE": False, "R²": True},
    Task.CLASSIFICATION: {"accuracy": True, "log loss": False, "calibration error": False},
}
# A probability of zero would cost infinitely much; it costs as much as this one.
SMALLEST = 1e-15


def scores(model: Any, frame: Any, y: np.ndarray, task: Task) -> dict[str, float]:
    """The figures of a fitted model on rows that it has not seen."""
    if task == Task.CLASSIFICATION:
        return class_scores(model.classes_, model.predict_proba(frame), y)
    predicted = model.predict(frame)
    # One row has no variance, of which R² could be a share.
    r2 = r2_score(y, predicted) if len(y) > 1 else np.nan
    return {
        "RMSE": root_mean_squared_error(y, predicted),
        "MAE": mean_absolute_error(y, predicted),
        "R²": r2,
    }


def class_scores(classes: np.ndarray, probabilities: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Accuracy, log loss and expected calibration error of probabilities (n, n_classes).

    A class that training has not seen has probability zero.
    """
    places = {label: k for k, label in enumerate(classes.tolist())}
    known = np.array([places.get(label, -1) for label in y.tolist()])
    of_label = np.where(known < 0, 0.0, probabilities[np.arange(len(y)), known])
    right = probabilities.argmax(axis=1) == known
    return {
        "accuracy": float(right.mean()),
        "log loss": float(-np.log(np.maximum(of_label, SMALLEST)).mean()),
        "calibration error": expected_calibration_error(y, probabilities, classes=classes),
    }
