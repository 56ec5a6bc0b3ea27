"""``rfrboost evaluate``: cross-validated scores, beside boosted trees and a linear model."""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from rfrboost.cli.console import printable, progress, say, show_table
from rfrboost.cli.output import refuse_overwriting, table_writer
from rfrboost.cli.request import STANDARD, Roles, Settings, Source, Task
from rfrboost.cli.training import Target, Training, estimator_for, read_training
from rfrboost.inspection._report.baselines import linear, trees
from rfrboost.inspection._report.trial import LINEAR_MODEL, Make, Trial, trials

SECONDS = "seconds"
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


def cross_validated(
    training: Training, models: Mapping[str, Make], folds: int, seed: int
) -> Iterator[Result]:
    """The scores of every model on every fold, one after another."""
    target = training.target
    for trial in trials(training.frame, target.labels, target.task, models, folds, seed):
        yield as_result(trial)


def as_result(trial: Trial) -> Result:
    """A trial as a row of the table of scores."""
    named = {"model": trial.name, "fold": trial.fold}
    return {**named, **trial.scores, SECONDS: trial.seconds}


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
