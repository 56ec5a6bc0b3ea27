"""The ``replay`` command: published hyper-parameters, our estimators, the same folds.

Refit the published runs and compare the test scores. No search is made: each published fold
stores the hyper-parameters that were chosen for it, so a refit tells how far our models agree
with the paper's, at the price of one fit a fold.
"""

import argparse
import functools
import json
from pathlib import Path

import pandas as pd

from experiments.arguments import add_folds, add_published_runs, add_selection
from experiments.comparison import dataset_rows, fold_rows, markdown_report
from experiments.datasets import Table, find_data_folder, known_table, select_tables
from experiments.errors import UsageError
from experiments.files import write_atomically
from experiments.jobs import Job
from experiments.models import build
from experiments.pool import run_jobs
from experiments.protocols import load_rows
from experiments.published import Variant, read_published, select_variants, variant_names
from experiments.scoring import Scores, fit_and_score

NAME = "replay"
SUMMARY = "refit the paper's published runs with their own hyper-parameters and compare"
PROTOCOL = "paper"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_selection(parser, variant_names(), out="experiments-output/replay")
    add_folds(parser)
    add_published_runs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check the whole request, then fit, compare and write; 1 when a fit failed."""
    variants = select_variants(arguments.models)
    data = find_data_folder(arguments.data)
    tables = select_tables(data, arguments.tables)
    published = read_published(arguments.published_runs, data)
    jobs = plan(published, tables, variants, arguments.folds)

    results = run_jobs(jobs, functools.partial(refit, data=data), arguments.out, arguments.jobs)
    failures = [result for result in results if result.error is not None]
    datasets = dataset_rows(fold_rows(results, published, variants))
    report = markdown_report(datasets, failures)
    write_atomically(arguments.out / "replay.md", report)
    write_atomically(arguments.out / "replay.csv", datasets.to_csv(index=False))
    print(report)
    return 1 if failures else 0


def plan(
    published: pd.DataFrame, tables: list[Table], variants: tuple[Variant, ...], folds: list[int]
) -> list[Job]:
    """One job for each published run of these tables, variants and folds."""
    jobs = []
    for variant in variants:
        ids = [table.id for table in tables if table.task == variant.task]
        runs = published[
            (published["model"] == variant.published)
            & (published["task"] == variant.task)
            & published["dataset"].isin(ids)
            & published["fold"].isin(folds)
        ]
        for row in runs.itertuples(index=False):
            recipe = variant.recipe(json.loads(row.hyperparameters))
            jobs.append(Job(PROTOCOL, int(row.dataset), variant.name, int(row.fold), recipe))
    if not jobs:
        raise UsageError("No published run matches: the models must be for the task of the tables.")
    return jobs


def refit(job: Job, data: Path) -> Scores:
    """Fit and score one job; the fold number is the seed, so a refit repeats itself."""
    fold = load_rows(job.protocol, job.dataset, data).fold(job.fold)
    model = build(job.recipe, len(fold.y_train), random_state=job.fold)
    return fit_and_score(model, fold, known_table(job.dataset).task)
