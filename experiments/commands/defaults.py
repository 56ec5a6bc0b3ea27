"""The ``defaults`` command: models with default parameters, compared with the published tuned runs.

Fit our estimators, CatBoost, LightGBM and XGBoost with their default parameters on the folds of
a protocol, one after another on the same threads, and compare scores and seconds. Under the
protocol "paper" the published runs, tuned by 100 trials, are in the same tables. Stored results are
not computed again, so that a stopped command continues where it was.
"""

import argparse
import dataclasses
import functools
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from experiments.commands.arguments import (
    add_data,
    add_folds,
    add_models,
    add_out,
    add_published_runs,
    add_tables,
    at_least,
)
from experiments.data.protocols import PROTOCOLS, load_rows
from experiments.data.published import read_published
from experiments.data.tables import Table, find_data_folder, known_table, select_tables
from experiments.models.naming import with_our_names
from experiments.models.scoring import Scores, fit_and_score, log_loss
from experiments.models.spaces import check_libraries
from experiments.models.untuned import (
    FIELD,
    NAMES,
    UntunedModel,
    build_untuned,
    select_untuned,
    warm_up,
)
from experiments.reports.defaults import markdown_report
from experiments.reports.defaults_tables import (
    all_runs,
    comparison_frame,
    complete_parts,
    dataset_rows,
    summary_frame,
)
from experiments.runs.files import write_report, write_table
from experiments.runs.jobs import Job, provenances
from experiments.runs.pool import run_jobs

NAME = "defaults"
SUMMARY = "fit every model with its default parameters, and compare scores and seconds"
THREADS = 2
# Fits of at most SHORT seconds are made REPEATS times, and the shortest time counts.
SHORT = 2.0
REPEATS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command; no --jobs, because parallel jobs would slow each other down."""
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
        help="how tables are prepared: as published, learning from training rows only, or not at "
        "all: data frames with their categories (default: %(default)s)",
    )
    parser.add_argument(
        "--threads",
        type=at_least(1, "--threads"),
        metavar="N",
        default=THREADS,
        help="threads of every model (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Check the whole request, then fit, compare and write; 1 if a fit failed."""
    models = select_untuned(arguments.models)
    check_libraries(models)
    data = find_data_folder(arguments.data)
    tables = select_tables(data, arguments.tables)
    published = published_beside(arguments, data)
    jobs = plan(arguments, tables, models)

    work = functools.partial(fit_untuned, data=data)
    results = run_jobs(
        jobs,
        work,
        arguments.out,
        n_processes=1,
        threads=arguments.threads,
        mix_commits=arguments.mix_commits,
    )
    runs = all_runs(results, published)
    parts, sentences = complete_parts(runs)
    text = markdown_report(results, parts, sentences, beside_tuned=published is not None)
    folder = arguments.out / arguments.protocol
    made_with = provenances(results)
    write_table(folder / "folds.csv", runs, made_with)
    write_table(folder / "datasets.csv", dataset_rows(runs), made_with)
    write_table(folder / "summary.csv", summary_frame(parts), made_with)
    write_table(folder / "comparisons.csv", comparison_frame(parts), made_with)
    report = write_report(folder / "defaults.md", text, made_with)
    print(report)
    return 1 if any(result.error is not None for result in results) else 0


def published_beside(arguments: argparse.Namespace, data: Path) -> pd.DataFrame | None:
    """The published runs; None under another protocol, whose scores are not comparable."""
    if arguments.protocol != "paper":
        return None
    return with_our_names(read_published(arguments.published_runs, data))


def plan(
    arguments: argparse.Namespace, tables: list[Table], models: list[UntunedModel]
) -> list[Job]:
    """One job for each table, fold, and model of the table's task.

    The models of a fold follow one another, so that other load on the machine affects all of them.
    """
    return [
        Job(arguments.protocol, table.id, model.name, fold, model.recipe(arguments.threads))
        for table in tables
        for fold in arguments.folds
        for model in models
        if model.task == table.task
    ]


def fit_untuned(job: Job, data: Path) -> Scores:
    """Fit and score one job after a warm-up of its library; the fold is the seed."""
    task = known_table(job.dataset).task
    fold = load_rows(job.protocol, job.dataset, data).fold(job.fold)
    warm_up(job.recipe)
    model = build_untuned(job.recipe, len(fold.y_train), random_state=job.fold)
    scores = fit_and_score(model, fold, task)
    seconds = shortest(scores.fit_seconds, functools.partial(model.fit, fold.X_train, fold.y_train))
    details: dict[str, object] = {}
    if task == "classification":
        probabilities = model.predict_proba(fold.X_test)
        details["log_loss"] = log_loss(fold.y_test, probabilities, model.classes_)
    return dataclasses.replace(scores, fit_seconds=seconds, details=details)


def shortest(seconds: float, fit: Callable[[], object]) -> float:
    """The shortest time of ``REPEATS`` fits, if the first took at most ``SHORT`` seconds.

    Short fits are repeated because a brief load on the machine can double their time.
    """
    if seconds > SHORT:
        return seconds
    times = [seconds]
    while len(times) < REPEATS:
        begin = time.perf_counter()
        fit()
        times.append(time.perf_counter() - begin)
    return min(times)
