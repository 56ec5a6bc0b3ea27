"""The ``defaults`` command: every model as it comes, without tuning, beside the tuned runs.

Fit our estimators, CatBoost, LightGBM and XGBoost with their default parameters on the folds of
a protocol, one after another on the same threads, and compare scores and seconds. Under the
paper's protocol the published runs, tuned by 100 trials, stand beside them. What is in the
results folder is not computed again, so a stopped run goes on where it was.
"""

import argparse
import dataclasses
import functools
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from experiments.arguments import (
    add_data,
    add_folds,
    add_models,
    add_out,
    add_published_runs,
    add_tables,
    at_least,
)
from experiments.datasets import Table, find_data_folder, known_table, select_tables
from experiments.defaults_models import (
    FIELD,
    NAMES,
    UntunedModel,
    build_untuned,
    select_untuned,
    warm_up,
)
from experiments.defaults_report import markdown_report
from experiments.defaults_runs import all_runs, complete_parts
from experiments.defaults_tables import comparison_frame, dataset_rows, summary_frame
from experiments.files import write_atomically
from experiments.jobs import Job
from experiments.libraries import versions
from experiments.machine import processor
from experiments.naming import with_our_names
from experiments.pool import run_jobs
from experiments.protocols import PROTOCOLS, load_rows
from experiments.published import read_published
from experiments.scoring import Scores, fit_and_score, log_loss
from experiments.searched import check_libraries

NAME = "defaults"
SUMMARY = "fit every model with its default parameters, and compare scores and seconds"
THREADS = 2
# Fits of up to so many seconds are repeated, and the shortest counts.
SHORT, REPEATS = 2.0, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command; no --jobs, because jobs side by side would share the cores."""
    add_tables(parser)
    add_models(parser, list(NAMES), unnamed=",".join(FIELD))
    add_out(parser, "experiments-output/defaults")
    add_data(parser)
    add_folds(parser)
    add_published_runs(parser)
    parser.add_argument(
        "--protocol",
        choices=list(PROTOCOLS),
        default="paper",
        help="how tables are prepared: as published, or learning from training rows only "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--threads",
        type=at_least(1, "--threads"),
        metavar="N",
        default=THREADS,
        help="threads of every model (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Check the whole request, then fit, compare and write; 1 when a fit failed."""
    models = select_untuned(arguments.models)
    check_libraries(models)
    data = find_data_folder(arguments.data)
    tables = select_tables(data, arguments.tables)
    published = published_beside(arguments, data)
    jobs = plan(arguments, tables, models)

    work = functools.partial(fit_untuned, data=data)
    results = run_jobs(jobs, work, arguments.out, n_processes=1, threads=arguments.threads)
    runs = all_runs(results, published)
    parts, sentences = complete_parts(runs)
    report = markdown_report(results, parts, sentences, beside_tuned=published is not None)
    folder = arguments.out / arguments.protocol
    write_atomically(folder / "datasets.csv", dataset_rows(runs).to_csv(index=False))
    write_atomically(folder / "summary.csv", summary_frame(parts).to_csv(index=False))
    write_atomically(folder / "comparisons.csv", comparison_frame(parts).to_csv(index=False))
    write_atomically(folder / "defaults.md", report)
    print(report)
    return 1 if any(result.error is not None for result in results) else 0


def published_beside(arguments: argparse.Namespace, data: Path) -> pd.DataFrame | None:
    """The published runs; none beside another protocol, whose scores are not theirs."""
    if arguments.protocol != "paper":
        return None
    return with_our_names(read_published(arguments.published_runs, data))


def plan(
    arguments: argparse.Namespace, tables: list[Table], models: list[UntunedModel]
) -> list[Job]:
    """One job for each table, fold, and model of the table's task.

    The models of one fold follow one another: what else the machine does meets all of them.
    """
    return [
        Job(arguments.protocol, table.id, model.name, fold, model.recipe(arguments.threads))
        for table in tables
        for fold in arguments.folds
        for model in models
        if model.task == table.task
    ]


def fit_untuned(job: Job, data: Path) -> Scores:
    """Fit and score one job in a process that has its libraries loaded; the fold is the seed."""
    task = known_table(job.dataset).task
    fold = load_rows(job.protocol, job.dataset, data).fold(job.fold)
    warm_up(job.recipe)
    model = build_untuned(job.recipe, len(fold.y_train), random_state=job.fold)
    scores = fit_and_score(model, fold, task)
    seconds = shortest(scores.fit_seconds, functools.partial(model.fit, fold.X_train, fold.y_train))
    details: dict[str, object] = {"processor": processor(), "versions": versions()}
    if task == "classification":
        probabilities = model.predict_proba(fold.X_test)
        details["log_loss"] = log_loss(fold.y_test, probabilities, model.classes_)
    return dataclasses.replace(scores, fit_seconds=seconds, details=details)


def shortest(seconds: float, fit: Callable[[], object]) -> float:
    """The least time of some fits, where one does not take long: whatever else a machine does for
    a moment takes as long as a short fit."""
    if seconds > SHORT:
        return seconds
    times = [seconds]
    while len(times) < REPEATS:
        begin = time.perf_counter()
        fit()
        times.append(time.perf_counter() - begin)
    return min(times)
