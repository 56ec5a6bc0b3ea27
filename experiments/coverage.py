"""The ``coverage`` command: how often intervals, quantiles and sets hold what they promise.

Fit our estimators as they come on the training rows of a fold, under the protocol that learns
nothing from test rows, and count on the test rows: the 90 % intervals' coverage and width, the
quantile levels' crossings and coverage, the prediction sets' coverage and size. What is in the
results folder is not computed again.
"""

import argparse
import functools
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.arguments import add_data, add_out, add_tables, fold_numbers, positive
from experiments.coverage_report import markdown_report, table_rows
from experiments.datasets import Table, find_data_folder, known_table, select_tables
from experiments.files import write_atomically
from experiments.jobs import Job
from experiments.libraries import versions
from experiments.models import Recipe, build
from experiments.pool import run_jobs
from experiments.protocols import Fold, load_rows
from experiments.scoring import Scores, accuracy, rmse

NAME = "coverage"
SUMMARY = "how often 90 % intervals, quantile levels and prediction sets hold the truth"
PROTOCOL = "strict"
COVERAGE = 0.9
LEVELS = (0.05, 0.5, 0.95)

INTERVALS, QUANTILES, SETS = "intervals", "quantiles", "sets"
RECIPES = {
    "regression": {
        INTERVALS: Recipe("RFRBoostRegressor", {}),
        QUANTILES: Recipe("RFRBoostRegressor", {"loss": "quantile", "quantile": LEVELS}),
    },
    "classification": {SETS: Recipe("RFRBoostClassifier", {})},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_tables(parser)
    add_out(parser, "experiments-output/coverage")
    add_data(parser)
    parser.add_argument(
        "--folds",
        type=fold_numbers,
        metavar="K,K",
        default=[0],
        help="which of the folds 0-4 to fit (default: the first)",
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        metavar="N",
        default=1,
        help="processes, each with one thread (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Fit, count and write; 1 when a fit failed."""
    data = find_data_folder(arguments.data)
    jobs = plan(select_tables(data, arguments.tables), arguments.folds)
    work = functools.partial(fit_and_count, data=data)
    results = run_jobs(jobs, work, arguments.out, arguments.jobs)
    rows = table_rows(results)
    report = markdown_report(rows, results, COVERAGE, LEVELS)
    write_atomically(arguments.out / "coverage.csv", rows.to_csv(index=False))
    write_atomically(arguments.out / "coverage.md", report)
    print(report)
    return 1 if any(result.error is not None for result in results) else 0


def plan(tables: list[Table], folds: list[int]) -> list[Job]:
    """One job for each table, fold, and kind of promise."""
    return [
        Job(PROTOCOL, table.id, kind, fold, recipe)
        for table in tables
        for fold in folds
        for kind, recipe in RECIPES[table.task].items()
    ]


def fit_and_count(job: Job, data: Path) -> Scores:
    """Fit one model and count on test rows what its promises were worth; the fold is the seed."""
    fold = load_rows(PROTOCOL, int(job.dataset), data).fold(job.fold)
    model = build(job.recipe, len(fold.y_train), job.fold)
    start = time.perf_counter()
    model.fit(fold.X_train, fold.y_train)
    fitted = time.perf_counter()
    counts, prediction, seen = COUNTERS[job.model](model, fold)
    predicted = time.perf_counter()
    metric = rmse if known_table(int(job.dataset)).task == "regression" else accuracy
    return Scores(
        train_score=metric(fold.y_train, seen),
        test_score=metric(fold.y_test, prediction),
        fit_seconds=fitted - start,
        predict_seconds=predicted - fitted,
        details={**counts, "rows": len(fold.y_test), "versions": versions()},
    )


Counted = tuple[dict[str, object], NDArray, NDArray]


def count_intervals(model: Any, fold: Fold) -> Counted:
    """Coverage and width of intervals, and the mean square of (y − prediction)/std."""
    ends = model.predict_interval(fold.X_test, COVERAGE)
    prediction, std = model.predict(fold.X_test, return_std=True)
    counts: dict[str, object] = {
        "coverage": share_inside(ends, fold.y_test),
        "width": float(np.mean(ends[:, 1] - ends[:, 0]) / (fold.y_train.std() or 1.0)),
        "z_square": float(np.mean(((fold.y_test - prediction) / std) ** 2)),
    }
    return counts, prediction, model.predict(fold.X_train)


def count_quantiles(model: Any, fold: Fold) -> Counted:
    """Crossings, coverage and width of the outer levels, and the share below each level."""
    levels = model.predict(fold.X_test)
    outer, middle = levels[:, [0, -1]], LEVELS.index(0.5)
    counts: dict[str, object] = {
        "crossings": int((np.diff(levels, axis=1) < 0).sum()),
        "coverage": share_inside(outer, fold.y_test),
        "width": float(np.mean(outer[:, 1] - outer[:, 0]) / (fold.y_train.std() or 1.0)),
        "below": [float(share) for share in (fold.y_test[:, None] <= levels).mean(axis=0)],
    }
    return counts, levels[:, middle], model.predict(fold.X_train)[:, middle]


def count_sets(model: Any, fold: Fold) -> Counted:
    """Coverage and size of sets; a class that training never saw is in none."""
    sets = model.predict_set(fold.X_test, COVERAGE)
    right = fold.y_test[:, None] == model.classes_
    counts: dict[str, object] = {
        "coverage": float((sets & right).any(axis=1).mean()),
        "size": float(sets.sum(axis=1).mean()),
        "single": float((sets.sum(axis=1) == 1).mean()),
        "classes": len(model.classes_),
    }
    return counts, model.predict(fold.X_test), model.predict(fold.X_train)


COUNTERS = {INTERVALS: count_intervals, QUANTILES: count_quantiles, SETS: count_sets}


def share_inside(ends: NDArray, y: NDArray) -> float:
    """The share of targets that lie between the two ends, or on one of them."""
    return float(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])))
