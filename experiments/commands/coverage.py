"""The ``coverage`` command: the coverage of intervals, quantiles and prediction sets on test rows.

Fit our estimators with default parameters on the training rows of a fold, under the protocol
"strict", and measure on the test rows: coverage and width of 90 % intervals, crossings and coverage
of quantile levels, coverage and size of 90 % prediction sets. Stored results are not computed
again. With --shifted, the coverage of intervals on later rows and on other groups instead, and R²
beside LightGBM's: once with folds of rows drawn at random, once with folds by time or group.
"""

import argparse
import functools
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.commands.arguments import add_data, add_jobs, add_out, add_tables, fold_numbers
from experiments.data.protocols import Fold, load_rows
from experiments.data.shifted import ORDERED, SHIFTS, WHOLE, Shift, ShiftedRows, load_shift
from experiments.data.tables import Table, find_data_folder, known_table, select_tables
from experiments.models.baselines import baseline
from experiments.models.recipes import Recipe, build
from experiments.models.scoring import Scores, accuracy, rmse
from experiments.reports.coverage import (
    markdown_report,
    shifted_report,
    shifted_rows,
    table_rows,
)
from experiments.runs.jobs import Job
from experiments.runs.measured import measure

NAME = "coverage"
SUMMARY = "how often 90 % intervals, quantile levels and prediction sets contain the label"
PROTOCOL = "strict"
COVERAGE = 0.9
LEVELS = (0.05, 0.5, 0.95)
INTERVALS, QUANTILES, SETS = "intervals", "quantiles", "sets"
# The protocol of shifted splits, and their two kinds of folds.
SHIFTED = "shifted"
OWN, RANDOM = "own", "random"
# Seeds of the fits to the table that is split whole: predictions of rows unlike all training rows
# depend on the seed more than others.
WHOLE_SEEDS = range(5)
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
    add_jobs(parser, 1)
    parser.add_argument(
        "--shifted",
        action="store_true",
        help="ten splits by time or group instead of the folds of the tables",
    )


def run(arguments: argparse.Namespace) -> int:
    """Fit, measure and write; 1 if a fit failed."""
    data = find_data_folder(arguments.data)
    if arguments.shifted:
        return run_shifted(arguments, data)
    jobs = plan(select_tables(data, arguments.tables), arguments.folds)
    work = functools.partial(fit_and_count, data=data)
    report = functools.partial(markdown_report, coverage=COVERAGE, levels=LEVELS)
    return measure(NAME, jobs, work, arguments, table_rows, report)


def run_shifted(arguments: argparse.Namespace, data: Path) -> int:
    """Fit every shifted split with both kinds of folds, and write; 1 if a fit failed."""
    shifts = [s for s in SHIFTS if not arguments.tables or s.dataset in arguments.tables]
    jobs = plan_shifted(shifts)
    work = functools.partial(fit_shifted, data=data)
    report = functools.partial(shifted_report, coverage=COVERAGE)
    return measure(f"{NAME}-{SHIFTED}", jobs, work, arguments, shifted_rows, report)


def plan_shifted(shifts: list[Shift]) -> list[Job]:
    """Two jobs for each split: with folds of its own kind, and with folds drawn at random.

    The table that is split whole has random folds only, and a job for each of several seeds.
    """
    recipe = RECIPES["regression"][INTERVALS]
    jobs = [
        Job(SHIFTED, shift.dataset, f"{shift.kind}-{folds}", 0, recipe)
        for shift in shifts
        for folds in (OWN, RANDOM)
        if shift.kind != WHOLE
    ]
    return jobs + [
        Job(SHIFTED, shift.dataset, f"{WHOLE}-{RANDOM}", seed, recipe)
        for shift in shifts
        for seed in WHOLE_SEEDS
        if shift.kind == WHOLE
    ]


def fit_shifted(job: Job, data: Path) -> Scores:
    """Fit one model and measure the coverage of its intervals on test rows; the fold is the seed.

    LightGBM, with its default parameters, is fitted on the same rows.
    """
    from sklearn.metrics import r2_score

    kind, folds = job.model.split("-")
    shift = next(s for s in SHIFTS if (s.dataset, s.kind) == (job.dataset, kind))
    rows = load_shift(shift, data)
    start = time.perf_counter()
    model = fitted_shifted(build(job.recipe, len(rows.y_train), job.fold), rows, kind, folds)
    fitted = time.perf_counter()
    ends = model.predict_interval(rows.X_test, COVERAGE)
    prediction = model.predict(rows.X_test)
    trees = baseline("LGBMRegressor", {}, job.fold).fit(rows.X_train, rows.y_train)
    return Scores(
        train_score=rmse(rows.y_train, model.predict(rows.X_train)),
        test_score=rmse(rows.y_test, prediction),
        fit_seconds=fitted - start,
        predict_seconds=time.perf_counter() - fitted,
        details={
            "coverage": share_inside(ends, rows.y_test),
            "width": float(np.mean(ends[:, 1] - ends[:, 0]) / (rows.y_train.std() or 1.0)),
            "oof_score": float(model.oof_score_),
            "r2": float(r2_score(rows.y_test, prediction)),
            "LightGBM r2": float(r2_score(rows.y_test, trees.predict(rows.X_test))),
            "rows": len(rows.y_test),
        },
    )


def fitted_shifted(model: Any, rows: ShiftedRows, kind: str, folds: str) -> Any:
    """The model, fitted with folds by time or group, or with random ones."""
    from sklearn.model_selection import TimeSeriesSplit

    if folds == RANDOM:
        return model.fit(rows.X_train, rows.y_train)
    cv = TimeSeriesSplit(5) if kind == ORDERED else None
    return model.fit(rows.X_train, rows.y_train, groups=rows.groups, cv=cv)


def plan(tables: list[Table], folds: list[int]) -> list[Job]:
    """One job for each table, fold and kind of prediction."""
    return [
        Job(PROTOCOL, table.id, kind, fold, recipe)
        for table in tables
        for fold in folds
        for kind, recipe in RECIPES[table.task].items()
    ]


def fit_and_count(job: Job, data: Path) -> Scores:
    """Fit one model and measure its coverage on the test rows; the fold is the seed."""
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
        details={**counts, "rows": len(fold.y_test)},
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
    """Crossings, coverage and width of the outer levels, and the shares of labels below levels."""
    levels = model.predict(fold.X_test)
    outer = levels[:, [0, -1]]
    middle = LEVELS.index(0.5)
    counts: dict[str, object] = {
        "crossings": int((np.diff(levels, axis=1) < 0).sum()),
        "coverage": share_inside(outer, fold.y_test),
        "width": float(np.mean(outer[:, 1] - outer[:, 0]) / (fold.y_train.std() or 1.0)),
        "below": [float(share) for share in (fold.y_test[:, None] <= levels).mean(axis=0)],
    }
    return counts, levels[:, middle], model.predict(fold.X_train)[:, middle]


def count_sets(model: Any, fold: Fold) -> Counted:
    """Coverage and size of sets; a class that is absent from the training rows is in no set."""
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
    """The share of targets in the closed intervals ``ends`` (n, 2)."""
    return float(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])))
