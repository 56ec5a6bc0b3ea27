"""Cross-validation of a model beside boosted trees and a linear model: fits, predictions, scores.

The command ``evaluate`` and the report about a model use it alike. Folds are those of a splitter
``cv`` of scikit-learn. Without one they are shuffled, and stratified by class where there are
enough rows of one; rows of a group are in one fold. Weights count in fits and in scores, except in
the calibration error.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import (
    average_precision_score,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from rfrboost.inspection._calibration import expected_calibration_error

# A probability of zero would have an infinite log loss; this one takes its place.
SMALLEST = 1e-15
#: the linear model of each task
LINEAR_MODEL = {"regression": "ridge regression", "classification": "logistic regression"}

#: makes an unfitted model from the training frame, its labels, the task and a seed
Make = Callable[[pd.DataFrame, np.ndarray, str, int], Any]


@dataclass(frozen=True)
class Trial:
    """One model, fitted without the rows of one fold.

    ``rows`` are the indices of the held-out rows; ``predicted`` are their predictions (m,), or
    probabilities (m, classes) with a column for every class of the table. ``scores`` are those of
    these predictions, in the order they are shown.
    """

    name: str
    fold: int
    fitted: Any
    rows: np.ndarray
    predicted: np.ndarray
    scores: dict[str, float]
    seconds: float


def splits(
    y: np.ndarray,
    task: str,
    folds: int,
    seed: int,
    groups: np.ndarray | None = None,
    cv: Any = None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows of each fold: those of ``cv``, or else shuffled; by group, or
    stratified where possible."""
    if cv is not None:
        yield from cv.split(np.zeros(len(y)), y, groups)
        return
    if len(y) < 2 * folds:
        noun = "row" if len(y) == 1 else "rows"
        raise ValueError(f"{len(y):,} {noun} with a label are too few for {folds} folds.")
    if groups is not None:
        different = len(np.unique(groups))
        if different < folds:
            raise ValueError(f"{different:,} groups are too few for {folds} folds.")
        by_group = GroupKFold(folds, shuffle=True, random_state=seed)
        yield from by_group.split(np.zeros(len(y)), y, groups)
        return
    stratified = task == "classification" and np.unique(y, return_counts=True)[1].max() >= folds
    kind = StratifiedKFold if stratified else KFold
    yield from kind(folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y)


def trials(
    frame: pd.DataFrame,
    y: np.ndarray,
    task: str,
    models: Mapping[str, Make],
    folds: int,
    seed: int,
    weights: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    cv: Any = None,
) -> Iterator[Trial]:
    """Every model on every fold, one after another.

    Our models hold out rows as ``cv``, or whole groups, within a fit too; scikit-learn's have no
    folds of their own.
    """
    for fold, (fitted_on, held_out) in enumerate(splits(y, task, folds, seed, groups, cv)):
        inputs = frame.iloc[fitted_on].reset_index(drop=True)
        others = frame.iloc[held_out].reset_index(drop=True)
        for name, make in models.items():
            began = time.perf_counter()
            model = make(inputs, y[fitted_on], task, seed + fold)
            options = fit_options(model, some(weights, fitted_on), some(groups, fitted_on), cv)
            model.fit(inputs, y[fitted_on], **options)
            every = np.unique(y)
            w = some(weights, held_out)
            predicted, found = scored(model, others, y[held_out], every, task, w)
            seconds = time.perf_counter() - began
            yield Trial(name, fold, model, held_out, predicted, found, seconds)


def some(values: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    """The values of these rows, if there are any."""
    return None if values is None else values[rows]


def fit_options(
    model: Any, weights: np.ndarray | None, groups: np.ndarray | None, cv: Any = None
) -> dict[str, Any]:
    """Weights, groups and ``cv`` by the names that ``fit`` of a model, or of a pipeline, has for
    them."""
    steps = getattr(model, "steps", None)
    if steps is not None:
        # The last step is the model; groups and cv mean nothing to it.
        return {} if weights is None else {f"{steps[-1][0]}__sample_weight": weights}
    named = {"sample_weight": weights}
    if getattr(model, "n_layers", None) == "auto":
        named |= {"groups": groups, "cv": cv}
    return {name: values for name, values in named.items() if values is not None}


def out_of_fold(trials_of_model: list[Trial], n_rows: int) -> np.ndarray:
    """The predictions of all folds in the order of the rows."""
    first = trials_of_model[0].predicted
    predicted = np.full((n_rows, *first.shape[1:]), np.nan)
    for trial in trials_of_model:
        predicted[trial.rows] = trial.predicted
    return predicted


def scored(
    model: Any,
    frame: pd.DataFrame,
    y: np.ndarray,
    every: np.ndarray,
    task: str,
    w: np.ndarray | None = None,
) -> tuple[np.ndarray, dict[str, float]]:
    """Predictions for held-out rows, and their scores; ``every`` has all classes of the table."""
    if task == "classification":
        probabilities = model.predict_proba(frame)
        found = class_scores(model.classes_, probabilities, y, every, w)
        return spread_out(model.classes_, probabilities, every), found
    predicted = model.predict(frame)
    # R² is not defined for a single row, nor for equal ones: they have no variance.
    r2 = r2_score(y, predicted, sample_weight=w) if np.ptp(y) > 0 else np.nan
    return predicted, {
        "RMSE": root_mean_squared_error(y, predicted, sample_weight=w),
        "MAE": mean_absolute_error(y, predicted, sample_weight=w),
        "R²": r2,
    }


def spread_out(classes: np.ndarray, probabilities: np.ndarray, every: np.ndarray) -> np.ndarray:
    """Probabilities (n, classes) with a column for every class, 0 for those not in ``classes``."""
    place = {label: k for k, label in enumerate(every.tolist())}
    chances = np.zeros((len(probabilities), len(every)))
    chances[:, [place[c] for c in classes.tolist()]] = probabilities
    return chances


def class_scores(
    classes: np.ndarray,
    probabilities: np.ndarray,
    y: np.ndarray,
    every: np.ndarray,
    weights: np.ndarray | None = None,
) -> dict[str, float]:
    """The scores of probabilities (n_rows, n_classes); the calibration error has no weights.

    ``every`` has all classes of the table in order. A class that does not occur in the training
    rows has probability zero. With two classes, the second is the positive one; with more, AUC,
    average precision and F1 are means over classes, each against all others.
    """
    place = {label: k for k, label in enumerate(every.tolist())}
    label = np.array([place[c] for c in y.tolist()])
    chances = spread_out(classes, probabilities, every)
    chosen = chances.argmax(axis=1)
    of_label = chances[np.arange(len(y)), label]
    positive = [1] if len(every) == 2 else list(range(len(every)))
    w = np.ones(len(y)) if weights is None else weights
    return {
        "accuracy": share(chosen == label, w),
        "balanced accuracy": mean_over(
            sorted(set(label)), lambda k: share(chosen[label == k] == k, w[label == k])
        ),
        "F1": mean_over(positive, lambda k: f1(chosen == k, label == k, w)),
        "AUC": mean_over(positive, lambda k: auc(label == k, chances[:, k], w)),
        "average precision": mean_over(positive, lambda k: precision(label == k, chances[:, k], w)),
        "log loss": share(-np.log(np.maximum(of_label, SMALLEST)), w),
        "calibration error": expected_calibration_error(y, probabilities, classes=classes),
    }


def mean_over(classes: list[int], score: Callable[[int], float]) -> float:
    """The mean of a score over the classes for which it is defined; NaN if it is for none."""
    found = [value for value in map(score, classes) if not np.isnan(value)]
    return float(np.mean(found)) if found else np.nan


def share(values: np.ndarray, w: np.ndarray) -> float:
    """The weighted mean of values; NaN if no row has a weight."""
    return float(w @ values / w.sum()) if w.any() else np.nan


def f1(chosen: np.ndarray, right: np.ndarray, w: np.ndarray) -> float:
    """F1 of one class; not defined if the class neither occurs nor is predicted."""
    total = w @ chosen + w @ right
    return float(2 * (w @ (chosen & right)) / total) if total else np.nan


def auc(right: np.ndarray, chances: np.ndarray, w: np.ndarray) -> float:
    """The area under the ROC curve of one class; defined if some rows are of it and some not."""
    defined = (w @ right > 0) and (w @ ~right > 0)
    return float(roc_auc_score(right, chances, sample_weight=w)) if defined else np.nan


def precision(right: np.ndarray, chances: np.ndarray, w: np.ndarray) -> float:
    """The average precision of one class; defined if some rows are of it."""
    defined = w @ right > 0
    return float(average_precision_score(right, chances, sample_weight=w)) if defined else np.nan
