"""The ``growth`` command: our defaults as the training set grows, to half a million rows.

Fit our estimator with default parameters and a time limit, and XGBoost with 500 trees, on 2,000
training rows, 4,000, and so on to all of them, one after another on the same threads; score both
on the same test rows. Writes scores and seconds as a table, and as a figure with the published
curves of tuned models. Stored results are not computed again.
"""

import argparse
import functools
import time
from pathlib import Path

from experiments.commands.arguments import add_data, add_out, at_least, words
from experiments.data.large_tables import (
    LARGE_TABLES,
    LargeTable,
    prepared,
    select_large_tables,
    subsample,
    training_sizes,
)
from experiments.data.published import paper_file
from experiments.data.tables import find_data_folder
from experiments.models.scoring import METRICS, Scores, log_loss
from experiments.models.untuned import TimedRecipe, build_untuned, warm_up
from experiments.reports.growth import draw_growth, markdown_report, result_rows
from experiments.reports.large_scale import read_published
from experiments.requests import require, select
from experiments.runs.files import write_report, write_table
from experiments.runs.jobs import Job, provenances
from experiments.runs.pool import run_jobs

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
        help="numbers of training rows (default: 2000, 4000, 8000 and so on, and all)",
    )
    parser.add_argument(
        "--max-seconds",
        type=at_least(1, "--max-seconds"),
        metavar="S",
        default=1800,
        help="time limit of our fits, in seconds (default: %(default)s)",
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
    """Fit size by size, then write and draw; 1 if a fit failed."""
    names = select("table", arguments.tables, list(LARGE_TABLES))
    require("xgboost", "experiments", "The comparison")
    require("matplotlib", "experiments", "The picture")
    data = find_data_folder(arguments.data)
    tables = select_large_tables(names, data, asked=True)
    path = paper_file(arguments.published_runs, "large_scale_runs.parquet", data)
    published = read_published(path)
    jobs = [job for table in tables for job in plan(table, arguments)]
    work = functools.partial(fit_and_measure, data=data)
    results = run_jobs(
        jobs,
        work,
        arguments.out,
        n_processes=1,
        threads=arguments.threads,
        mix_commits=arguments.mix_commits,
    )
    rows = result_rows(results)
    text = markdown_report(results, rows, published)
    write_table(arguments.out / "growth.csv", rows, provenances(results))
    report = write_report(arguments.out / "growth.md", text, provenances(results))
    for table in tables:
        draw_growth(table, results, published, arguments.out)
    print(report)
    return 1 if any(result.error is not None for result in results) else 0


def plan(table: LargeTable, arguments: argparse.Namespace) -> list[Job]:
    """Our model and XGBoost at every size, from small to large."""
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
    details: dict[str, object] = {"train_rows": len(fold.y_train)}
    if table.task == "classification":
        details["log_loss"] = log_loss(fold.y_test, predicted, model.classes_)
        predicted = model.classes_[predicted.argmax(axis=1)]
    score = METRICS[table.task](fold.y_test, predicted)
    # No training score: predicting the training rows takes longer than the fit.
    return Scores(float("nan"), score, fitted - began, ended - fitted, details)
