"""``rfrboost evaluate``: cross-validated scores, beside boosted trees and a linear model."""

from contextlib import nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rfrboost.cli.console import CommandError, WrongUsageError, printable, progress, say, show_table
from rfrboost.cli.output import refuse_overwriting, table_writer
from rfrboost.cli.request import STANDARD, Roles, Settings, Source, Task
from rfrboost.cli.training import Target, Training, estimator_for, read_training
from rfrboost.inspection import importances
from rfrboost.inspection._report.baselines import linear, trees
from rfrboost.inspection._report.trial import LINEAR_MODEL, Trial, out_of_fold, trials

SECONDS = "seconds"
OURS = "rfrboost"
#: the score that --plots draws fold by fold
MAIN_SCORE = {Task.REGRESSION: "R²", Task.CLASSIFICATION: "accuracy"}
#: the model, the fold, its scores and the seconds it took, by name
Result = dict[str, Any]


def evaluate(
    table: Source,
    roles: Roles,
    out: str | None,
    folds: int,
    settings: Settings,
    plots: str | None = None,
) -> None:
    """Fit and score every model on every fold; show means, and write all scores to ``out``.

    ``plots`` is a folder for figures of the scores, the out-of-fold predictions and the importances
    of the automatic model.
    """
    if out is not None:
        refuse_overwriting(out, table.path)
    folder = None if plots is None else figure_folder(plots)
    training = with_categories(read_training(table, roles), roles.categorical)
    task = training.target.task

    # Refuses settings that the task does not have before the first fit.
    estimator_for(task, settings, False)

    def automatic(frame: pd.DataFrame, y: np.ndarray, _: str, seed: int) -> Any:
        model = estimator_for(task, replace(settings, seed=seed), False)
        if roles.categorical:
            model.categorical_features = list(roles.categorical)
        return model

    models = {
        OURS: automatic,
        "HistGradientBoosting": trees,
        LINEAR_MODEL[task]: linear,
    }
    say(f"Evaluating on {training.size}: {folds} folds, {len(models)} models.")
    # The file is opened first, so that a wrong name is found before the work.
    with (
        nullcontext() if out is None else table_writer(out) as write,
        progress("Fitting", folds * len(models), "fits") as advance,
    ):
        done = []
        for trial in trials(
            training.frame,
            training.target.labels,
            task,
            models,
            folds,
            settings.seed,
            training.weights,
            training.groups,
        ):
            done.append(trial)
            advance(1)
        results = [as_result(trial) for trial in done]
        if write is not None:
            write({name: np.array([r[name] for r in results]) for name in results[0]})
    if out != STANDARD:
        show(results)
        explain_averages(training.target)
    if folder is not None:
        draw(folder, done, training, roles.target)


def with_categories(training: Training, names: tuple[str, ...]) -> Training:
    """The same rows, with columns of numbers that stand for categories as such for all models."""
    kinds = dict.fromkeys(names, "category")
    return replace(training, frame=training.frame.astype(kinds)) if kinds else training


def figure_folder(path: str) -> Path:
    """The folder for figures, made if it does not exist; refused before the work, not after it."""
    if find_spec("matplotlib") is None:
        raise CommandError(
            "--plots needs matplotlib, which is not installed: pip install 'rfrboost[plot]'."
        )
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise WrongUsageError(f"--plots {path} is a file; name a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def draw(folder: Path, done: list[Trial], training: Training, name: str) -> None:
    """Write the figures, and say where they are."""
    from rfrboost.inspection._report import figures

    target = training.target
    ours = [trial for trial in done if trial.name == OURS]
    main = MAIN_SCORE[target.task]
    by_model: dict[str, list[float]] = {}
    for trial in done:
        by_model.setdefault(trial.name, []).append(trial.scores[main])
    y = target.labels
    rows = f"{len(y):,} rows, out of fold"
    predicted = out_of_fold(ours, len(y))
    made = {
        "scores.png": figures.scores_figure(main, by_model),
        "predictions.png": figures.predictions_figure(target.task, y, predicted, name, rows),
    }
    shares: dict[str, float] = {}
    for trial in ours:
        stored = hasattr(trial.fitted, "feature_importances_")
        found = importances(trial.fitted, None if stored else training.frame.iloc[trial.rows])
        shares = {str(c): shares.get(str(c), 0.0) + s / len(ours) for c, s in found.items()}
    ordered = dict(sorted(shares.items(), key=lambda pair: -pair[1]))
    made["importances.png"] = figures.importances_figure(ordered)
    for file, figure in made.items():
        figure.savefig(folder / file, dpi=150)
    say(f"Wrote {', '.join(made)} to {folder}.")


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
