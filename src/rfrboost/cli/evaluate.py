"""``rfrboost evaluate``: cross-validated scores, beside boosted trees and a linear model."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold

from rfrboost.cli.baselines import linear, trees
from rfrboost.cli.console import CommandError, counted, progress, say, show_table
from rfrboost.cli.output import table_writer
from rfrboost.cli.tables import STANDARD
from rfrboost.cli.tasks import LINEAR_MODEL, METRICS, Task
from rfrboost.cli.training import Target, Training, estimator_for, read_training
from rfrboost.inspection import expected_calibration_error

SECONDS = "seconds"
# A probability of zero would have an infinite log loss; this one takes its place.
SMALLEST = 1e-15

#: makes an unfitted model from the training frame, its labels, the task and a seed
Make = Callable[[pd.DataFrame, np.ndarray, Task, int], Any]
#: the model, the fold, its scores and the seconds it took, by name
Result = dict[str, Any]


def evaluate(
    table: str,
    target: str,
    out: str | None,
    task: Task | None,
    drop: list[str],
    folds: int,
    max_seconds: float | None,
    seed: int,
) -> None:
    """Fit and score every model on every fold; show means, and write all scores to ``out``."""
    training = read_training(table, target, task, drop)

    def automatic(frame: pd.DataFrame, y: np.ndarray, task: Task, seed: int) -> Any:
        return estimator_for(task, seed, max_seconds, False)

    models = {
        "rfrboost": automatic,
        "HistGradientBoosting": trees,
        LINEAR_MODEL[training.target.task]: linear,
    }
    say(f"Evaluating on {training.size}: {folds} folds, {len(models)} models.")
    # The file is opened first, so that a wrong name is found before the work.
    with (
        nullcontext() if out is None else table_writer(out) as write,
        progress("Fitting", folds * len(models), "fits") as advance,
    ):
        results = []
        for result in cross_validated(training, models, folds, seed):
            results.append(result)
            advance(1)
        if write is not None:
            write({name: np.array([r[name] for r in results]) for name in results[0]})
    if out != STANDARD:
        show(results, training.target.task)


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
            found = scores(model, others, y[held_out], task)
            seconds = time.perf_counter() - began
            yield {"model": name, "fold": fold, **found, SECONDS: seconds}


def scores(model: Any, frame: pd.DataFrame, y: np.ndarray, task: Task) -> dict[str, float]:
    """The scores of a fitted model on held-out rows, by their names in ``METRICS``."""
    if task == Task.CLASSIFICATION:
        return class_scores(model.classes_, model.predict_proba(frame), y)
    predicted = model.predict(frame)
    # R² is not defined for a single row, which has no variance.
    r2 = r2_score(y, predicted) if len(y) > 1 else np.nan
    return {
        "RMSE": root_mean_squared_error(y, predicted),
        "MAE": mean_absolute_error(y, predicted),
        "R²": r2,
    }


def class_scores(classes: np.ndarray, probabilities: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Accuracy, log loss and expected calibration error of probabilities (n_rows, n_classes).

    A class that does not occur in the training rows has probability zero.
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


def show(results: list[Result], task: Task) -> None:
    """Print means over folds with standard deviations, and the mean seconds of a fold."""
    frame = pd.DataFrame(results)
    rows = []
    for name, of_model in frame.groupby("model", sort=False):
        cells = [f"{of_model[m].mean():.4g} ± {of_model[m].std(ddof=0):.2g}" for m in METRICS[task]]
        rows.append([str(name), *cells, f"{of_model[SECONDS].mean():.2f}"])
    show_table(["model", *METRICS[task], SECONDS], rows)
