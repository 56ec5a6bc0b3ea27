"""``rfrboost evaluate``: cross-validated scores, beside boosted trees and a linear model."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, StratifiedKFold

from rfrboost.cli.console import progress, say, show_table
from rfrboost.cli.errors import CommandError
from rfrboost.cli.labels import Target
from rfrboost.cli.output import table_writer
from rfrboost.cli.peers import linear, trees
from rfrboost.cli.scores import FIGURES, scores
from rfrboost.cli.tasks import Task
from rfrboost.cli.training import Training, estimator_for, read_training

OURS = "rfrboost"
LINEAR = {Task.REGRESSION: "ridge regression", Task.CLASSIFICATION: "logistic regression"}
SECONDS = "seconds"

#: makes an unfitted model from the training frame, its labels, the task and a seed
Make = Callable[[pd.DataFrame, np.ndarray, Task, int], Any]
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
    """Fit and score every model on every fold; show means, or write all scores."""
    training = read_training(table, target, task, drop)

    def ours(frame: pd.DataFrame, y: np.ndarray, task: Task, seed: int) -> Any:
        return estimator_for(task, seed, max_seconds, False)

    models = {OURS: ours, "HistGradientBoosting": trees, LINEAR[training.target.task]: linear}
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
    if out != "-":
        show(results, training.target.task)


def splits(target: Target, folds: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows, shuffled; classes spread evenly where there are enough of each."""
    y = target.labels
    if len(y) < 2 * folds:
        raise CommandError(f"{len(y):,} rows with a label are too few for {folds} folds.")
    stratified = (
        target.task == Task.CLASSIFICATION and np.unique(y, return_counts=True)[1].max() >= folds
    )
    kind = StratifiedKFold if stratified else KFold
    return kind(folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y)


def cross_validated(
    training: Training, models: Mapping[str, Make], folds: int, seed: int
) -> Iterator[Result]:
    """The scores of every model on every fold, in turn."""
    frame, y, task = training.frame, training.target.labels, training.target.task
    for fold, (fitted_on, held_out) in enumerate(splits(training.target, folds, seed)):
        inputs = frame.iloc[fitted_on].reset_index(drop=True)
        others = frame.iloc[held_out].reset_index(drop=True)
        for name, make in models.items():
            began = time.perf_counter()
            model = make(inputs, y[fitted_on], task, seed + fold).fit(inputs, y[fitted_on])
            found = scores(model, others, y[held_out], task)
            seconds = time.perf_counter() - began
            yield {"model": name, "fold": fold, **found, SECONDS: seconds}


def show(results: list[Result], task: Task) -> None:
    """Means over folds, with the standard deviation between them."""
    frame = pd.DataFrame(results)
    rows = []
    for name, of_model in frame.groupby("model", sort=False):
        cells = [f"{of_model[f].mean():.4g} ± {of_model[f].std(ddof=0):.2g}" for f in FIGURES[task]]
        rows.append([str(name), *cells, f"{of_model[SECONDS].mean():.2f}"])
    show_table(["model", *FIGURES[task], SECONDS], rows)
