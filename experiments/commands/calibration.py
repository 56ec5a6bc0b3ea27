"""The ``calibration`` command: how far predicted probabilities are from what happens.

Fit our classifier and CatBoost, or other libraries, with default parameters on the training rows of
a fold, under the protocol "strict", and measure the probabilities of test rows: the expected
calibration error in ten bins, the log loss and the accuracy. Stored results are not computed again,
so that a stopped command continues where it was.
"""

import argparse
import dataclasses
import functools
from pathlib import Path

import pandas as pd

from experiments.commands.arguments import (
    add_data,
    add_folds,
    add_jobs,
    add_models,
    add_out,
    add_tables,
)
from experiments.data.protocols import load_rows
from experiments.data.tables import Table, find_data_folder, select_tables
from experiments.models.scoring import Scores, fit_and_score, log_loss
from experiments.models.spaces import check_libraries
from experiments.models.untuned import (
    FIELD,
    OURS,
    UntunedModel,
    build_untuned,
    select_untuned,
    untuned_label,
)
from experiments.reports.markdown import failed_section, markdown_table
from experiments.runs.jobs import Job, Result
from experiments.runs.measured import good_rows, measure

NAME = "calibration"
SUMMARY = "expected calibration error of predicted probabilities, beside CatBoost's"
PROTOCOL = "strict"
TASK = "classification"
MODELS = (OURS, "catboost")
BINS = 10
ERROR, LOG_LOSS, ACCURACY = "calibration error", "log loss", "accuracy"
HEADER = f"""\
# Calibration of probabilities

Default parameters, test rows of the protocol "{PROTOCOL}". The *calibration error* is the expected
calibration error in {BINS} bins of equal width: the mean distance, over rows, between a predicted
probability and how often the event happened. The event is the second of two classes, or, of more
classes, that the most probable one is right. With few test rows the error is above zero for a
perfect model too, by chance. Means are over the folds of a table, then over tables.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_tables(parser)
    add_models(parser, list(FIELD), unnamed=",".join(MODELS))
    add_out(parser, "experiments-output/calibration")
    add_data(parser)
    add_folds(parser)
    add_jobs(parser, 1)


def run(arguments: argparse.Namespace) -> int:
    """Fit, measure and write; 1 if a fit failed."""
    names = list(MODELS) if arguments.models is None else arguments.models
    models = [model for model in select_untuned(names) if model.task == TASK]
    check_libraries(models)
    data = find_data_folder(arguments.data)
    tables = [t for t in select_tables(data, arguments.tables) if t.task == TASK]
    jobs = plan(tables, arguments.folds, models)
    work = functools.partial(fit_and_measure, data=data)
    return measure(NAME, jobs, work, arguments, fold_rows, report)


def plan(tables: list[Table], folds: list[int], models: list[UntunedModel]) -> list[Job]:
    """One job for each table, fold and model, each on one thread."""
    return [
        Job(PROTOCOL, table.id, model.name, fold, model.recipe(threads=1))
        for table in tables
        for fold in folds
        for model in models
    ]


def fit_and_measure(job: Job, data: Path) -> Scores:
    """Fit one model and measure its probabilities on the test rows; the fold is the seed."""
    from rfrboost.inspection import expected_calibration_error

    fold = load_rows(job.protocol, int(job.dataset), data).fold(job.fold)
    model = build_untuned(job.recipe, len(fold.y_train), random_state=job.fold)
    scores = fit_and_score(model, fold, TASK)
    probabilities = model.predict_proba(fold.X_test)
    details: dict[str, object] = {
        ERROR: expected_calibration_error(
            fold.y_test, probabilities, classes=model.classes_, n_bins=BINS
        ),
        LOG_LOSS: log_loss(fold.y_test, probabilities, model.classes_),
        "rows": len(fold.y_test),
    }
    return dataclasses.replace(scores, details=details)


def fold_rows(results: list[Result]) -> pd.DataFrame:
    """One row per table, fold and model."""

    def measured(table: Table, result: Result) -> dict[str, object]:
        scores = result.scores
        return {
            "model": result.job.model,
            "fold": result.job.fold,
            **{name: scores.details[name] for name in ("rows", ERROR, LOG_LOSS)},
            ACCURACY: scores.test_score,
            "fit_seconds": scores.fit_seconds,
        }

    return good_rows(results, measured)


def report(rows: pd.DataFrame, results: list[Result]) -> str:
    """Means over tables that all models were fitted on, then the tables."""
    sections = [HEADER, *failed_section(results)]
    if len(rows):
        errors = by_table(rows, ERROR)
        sections.append(markdown_table(summary_rows(rows)))
        shown = errors.rename(columns=untuned_label).reset_index()
        sections += ["## Calibration error by table\n", markdown_table(shown)]
    return "\n".join(sections)


def by_table(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The mean over folds, a row per table and a column per model."""
    models = list(dict.fromkeys(rows["model"]))
    means = rows.groupby(["dataset", "name", "model"])[measure].mean()
    return means.unstack("model")[models]


def summary_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per model: means over tables, and on how many of them it has the least error."""
    errors = by_table(rows, ERROR).dropna()
    common = errors.index
    wins = errors.idxmin(axis=1).value_counts()
    measures = {name: by_table(rows, name).loc[common] for name in (ERROR, LOG_LOSS, ACCURACY)}
    return pd.DataFrame(
        [
            {"model": untuned_label(model), "tables": len(common)}
            | {name: float(values[model].mean()) for name, values in measures.items()}
            | {
                "median error": float(errors[model].median()),
                "least error": int(wins.get(model, 0)),
            }
            for model in errors.columns
        ]
    )
