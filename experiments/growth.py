"""The ``growth`` command: our defaults as the training set grows, to half a million rows.

Fit our estimator without a parameter but a time limit, and XGBoost with 500 trees, to 2,000
training rows, 4,000, and so on to all of them, one after another on the same threads; score both
on the same test rows. Writes the scores and seconds as a table, and as a figure beside the
published curves of tuned models. What is in the results folder is not computed again.
"""

import argparse
import functools
import time
from pathlib import Path

from experiments.arguments import add_data, add_out, at_least, positive, select, words
from experiments.datasets import find_data_folder
from experiments.defaults_models import TimedRecipe, build_untuned, warm_up
from experiments.files import write_atomically
from experiments.growth_report import draw_growth, markdown_report, result_rows
from experiments.jobs import Job
from experiments.large_report import read_published
from experiments.large_scale import prepared
from experiments.large_tables import (
    LARGE_TABLES,
    LargeTable,
    select_large_tables,
    subsample,
    training_sizes,
)
from experiments.libraries import require, versions
from experiments.machine import processor
from experiments.paper_files import paper_file
from experiments.pool import run_jobs
from experiments.scoring import METRICS, Scores, log_loss

NAME = "growth"
SUMMARY = "our defaults and XGBoost against the number of training rows, up to half a million"
ENDINGS = {"regression": "Regressor", "classification": "Classifier"}
TREES = {"n_estimators": 500, "tree_method": "hist"}
SEED = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    names = ", ".join(LARGE_TABLES)
    parser.add_argument(
        "--tables",
        type=words,
        metavar="NAME,NAME",
        default=["covtype"],
        help=f"of {names} (default: covtype)",
    )
    add_out(parser, "experiments-output/growth")
    add_data(parser)
    parser.add_argument(
        "--rows",
        type=words,
        metavar="N,N",
        help="these sizes only (default: 2,000, doubled again and again, and all)",
    )
    parser.add_argument(
        "--max-seconds",
        type=positive,
        metavar="S",
        default=1800,
        help="the limit that our fits are given (default: %(default)s)",
    )
    parser.add_argument(
        "--threads",
        type=at_least(1, "--threads"),
        metavar="N",
        default=2,
        help="threads of every model (default: %(default)s)",
    )
    parser.add_argument(
        "--published-runs",
        type=Path,
        metavar="FILE",
        help="the published runs (default: paper/large_scale_runs.parquet beside the data)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Fit size by size, then write and draw; 1 when a fit failed."""
    names = select("table", arguments.tables, list(LARGE_TABLES))
    require("xgboost", "experiments", "The comparison")
    require("matplotlib", "experiments", "The picture")
    data = find_data_folder(arguments.data)
    tables = select_large_tables(names, data, asked=True)
    path = paper_file(arguments.published_runs, "large_scale_runs.parquet", data)
    published = read_published(path)
    jobs = [job for table in tables for job in plan(table, arguments)]
    work = functools.partial(fit_and_measure, data=data)
    results = run_jobs(jobs, work, arguments.out, n_processes=1, threads=arguments.threads)
    rows = result_rows(results)
    report = markdown_report(results, rows, published)
    write_atomically(arguments.out / "growth.csv", rows.to_csv(index=False))
    write_atomically(arguments.out / "growth.md", report)
    for table in tables:
        draw_growth(table, rows, published, arguments.out)
    print(report)
    return 1 if any(result.error is not None for result in results) else 0


def plan(table: LargeTable, arguments: argparse.Namespace) -> list[Job]:
    """Ours and theirs at every size, from small to large."""
    ending = ENDINGS[table.task]
    recipes = {
        "rfrboost": TimedRecipe(
            f"RFRBoost{ending}", {"max_seconds": arguments.max_seconds}, arguments.threads
        ),
        "xgboost": TimedRecipe(f"XGB{ending}", TREES, arguments.threads),
    }
    sizes = training_sizes(table) if arguments.rows is None else map(int, arguments.rows)
    return [
        Job(f"rows-{size}", table.id, model, SEED, recipe)
        for size in sizes
        for model, recipe in recipes.items()
    ]


def fit_and_measure(job: Job, data: Path) -> Scores:
    """One fit on a subsample of the training rows, its score on all test rows, and its time."""
    table = LARGE_TABLES[job.dataset]
    size = int(job.protocol.removeprefix("rows-"))
    fold = subsample(prepared(job.dataset, data), size, job.fold)
    warm_up(job.recipe)
    model = build_untuned(job.recipe, len(fold.y_train), random_state=job.fold)
    began = time.perf_counter()
    model.fit(fold.X_train, fold.y_train)
    fitted = time.perf_counter()
    predict = model.predict_proba if table.task == "classification" else model.predict
    predicted = predict(fold.X_test)
    ended = time.perf_counter()
    details: dict[str, object] = {"processor": processor(), "versions": versions()}
    details["train_rows"] = len(fold.y_train)
    if table.task == "classification":
        details["log_loss"] = log_loss(fold.y_test, predicted, model.classes_)
        predicted = model.classes_[predicted.argmax(axis=1)]
    score = METRICS[table.task](fold.y_test, predicted)
    # Nothing is said of training rows: predicting them takes longer than fitting to them.
    return Scores(float("nan"), score, fitted - began, ended - fitted, details)
