"""``rfrboost evaluate``: cross-validated scores, beside boosted trees and a linear model."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
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
from sklearn.model_selection import KFold, StratifiedKFold

from rfrboost.cli.baselines import linear, trees
from rfrboost.cli.console import CommandError, counted, printable, progress, say, show_table
from rfrboost.cli.output import refuse_overwriting, table_writer
from rfrboost.cli.request import STANDARD, Roles, Settings, Source, Task
from rfrboost.cli.training import Target, Training, estimator_for, read_training
from rfrboost.inspection import expected_calibration_error

SECONDS = "seconds"
#: the linear model that rfrboost is compared with
LINEAR_MODEL = {Task.REGRESSION: "ridge regression", Task.CLASSIFICATION: "logistic regression"}
# A probability of zero would have an infinite log loss; this one takes its place.
SMALLEST = 1e-15

#: makes an unfitted model from the training frame, its labels, the task and a seed
Make = Callable[[pd.DataFrame, np.ndarray, Task, int], Any]
#: the model, the fold, its scores and the seconds it took, by name
Result = dict[str, Any]


def evaluate(table: Source, roles: Roles, out: str | None, folds: int, settings: Settings) -> None:
    """Fit and score every model on every fold; show means, and write all scores to ``out``."""
    if out is not None:
        refuse_overwriting(out, table.path)
    training = read_training(table, roles)
    task = training.target.task

    def automatic(frame: pd.DataFrame, y: np.ndarray, task: Task, seed: int) -> Any:
        return estimator_for(task, replace(settings, seed=seed), False)

    models = {
        "rfrboost": automatic,
        "HistGradientBoosting": trees,
        LINEAR_MODEL[task]: linear,
    }
    say(f"Evaluating on {training.size}: {folds} folds, {len(models)} models.")
    # The file is opened first, so that a wrong name is found before the work.
    with (
        nullcontext() if out is None else table_writer(out) as write,
        progress("Fitting", folds * len(models), "fits") as advance,
    ):
        results = []
        for result in cross_validated(training, models, folds, settings.seed):
            results.append(result)
            advance(1)
        if write is not None:
            write({name: np.array([r[name] for r in results]) for name in results[0]})
    if out != STANDARD:
        show(results)
        explain_averages(training.target)


def splits(target: Target, folds: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows of each fold, shuffled; stratified by class where possible."""
    y = target.labels
    if len(y) < 2 * folds:
        rows = counted(len(y), "row")
        raise CommandError(f"{rows} with a label are too few for {folds} folds.")
    stratified = (
        target.task == Task.CLASSIFICATION and np.unique(y, return_counts=True)[1].max() >= folds
    )
    kind = StratifiedKFold if stratified else KFold
    yield from kind(folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y)


def cross_validated(
    training: Training, models: Mapping[str, Make], folds: int, seed: int
) -> Iterator[Result]:
    """The scores of every model on every fold, one after another."""
    frame = training.frame
    y = training.target.labels
    task = training.target.task
    for fold, (fitted_on, held_out) in enumerate(splits(training.target, folds, seed)):
        inputs = frame.iloc[fitted_on].reset_index(drop=True)
        others = frame.iloc[held_out].reset_index(drop=True)
        for name, make in models.items():
            began = time.perf_counter()
            model = make(inputs, y[fitted_on], task, seed + fold).fit(inputs, y[fitted_on])
            found = scores(model, others, y[held_out], training.target)
            seconds = time.perf_counter() - began
            yield {"model": name, "fold": fold, **found, SECONDS: seconds}


def scores(model: Any, frame: pd.DataFrame, y: np.ndarray, target: Target) -> dict[str, float]:
    """The scores of a fitted model on held-out rows, in the order they are shown."""
    if target.task == Task.CLASSIFICATION:
        every = np.unique(target.labels)
        return class_scores(model.classes_, model.predict_proba(frame), y, every)
    predicted = model.predict(frame)
    # R² is not defined for a single row, nor for equal ones: they have no variance.
    r2 = r2_score(y, predicted) if np.ptp(y) > 0 else np.nan
    return {
        "RMSE": root_mean_squared_error(y, predicted),
        "MAE": mean_absolute_error(y, predicted),
        "R²": r2,
    }


def class_scores(
    classes: np.ndarray, probabilities: np.ndarray, y: np.ndarray, every: np.ndarray
) -> dict[str, float]:
    """The scores of probabilities (n_rows, n_classes).

    ``every`` has all classes of the table in order. A class of it that does not occur in the
    training rows has probability zero. Of two classes, the second is the positive one; of more,
    AUC, average precision and F1 are means over classes, each against all others.
    """
    place = {label: k for k, label in enumerate(every.tolist())}
    label = np.array([place[c] for c in y.tolist()])
    chances = np.zeros((len(y), len(every)))
    chances[:, [place[c] for c in classes.tolist()]] = probabilities
    chosen = chances.argmax(axis=1)
    of_label = chances[np.arange(len(y)), label]
    positive = [1] if len(every) == 2 else list(range(len(every)))
    return {
        "accuracy": float((chosen == label).mean()),
        "balanced accuracy": float(np.mean([(chosen[label == k] == k).mean() for k in set(label)])),
        "F1": mean_over(positive, lambda k: f1(chosen == k, label == k)),
        "AUC": mean_over(positive, lambda k: auc(label == k, chances[:, k])),
        "average precision": mean_over(positive, lambda k: precision(label == k, chances[:, k])),
        "log loss": float(-np.log(np.maximum(of_label, SMALLEST)).mean()),
        "calibration error": expected_calibration_error(y, probabilities, classes=classes),
    }


def mean_over(classes: list[int], score: Callable[[int], float]) -> float:
    """The mean of a score over the classes for which it is defined; NaN if it is for none."""
    found = [value for value in map(score, classes) if not np.isnan(value)]
    return float(np.mean(found)) if found else np.nan


def f1(chosen: np.ndarray, right: np.ndarray) -> float:
    """F1 of one class; not defined if the class neither occurs nor is predicted."""
    total = chosen.sum() + right.sum()
    return float(2 * (chosen & right).sum() / total) if total else np.nan


def auc(right: np.ndarray, chances: np.ndarray) -> float:
    """The area under the ROC curve of one class; defined if some rows are of it and some not."""
    return float(roc_auc_score(right, chances)) if 0 < right.sum() < len(right) else np.nan


def precision(right: np.ndarray, chances: np.ndarray) -> float:
    """The average precision of one class; defined if some rows are of it."""
    return float(average_precision_score(right, chances)) if right.any() else np.nan


def show(results: list[Result]) -> None:
    """Print means over folds with standard deviations: a row for each score, a column per model."""
    frame = pd.DataFrame(results)
    models = [of_model for _, of_model in frame.groupby("model", sort=False)]
    names = [name for name in frame.columns if name not in ("model", "fold", SECONDS)]
    rows = [[name, *(spread(of_model[name]) for of_model in models)] for name in names]
    rows.append([SECONDS, *(f"{of_model[SECONDS].mean():.2f}" for of_model in models)])
    show_table(["score", *(str(of_model["model"].iloc[0]) for of_model in models)], rows)


def spread(values: pd.Series) -> str:
    """The mean and the standard deviation of a score over folds."""
    return f"{values.mean():.4g} ± {values.std(ddof=0):.2g}"


def explain_averages(target: Target) -> None:
    """Say of which class, or over which classes, the scores of classification are."""
    if target.task == Task.REGRESSION:
        return
    every = np.unique(target.labels)
    if len(every) == 2:
        say(f"F1, AUC and average precision: for the class {printable(str(every[1]))!r}.")
    else:
        say("F1, AUC and average precision: one class against the others, mean over classes.")
