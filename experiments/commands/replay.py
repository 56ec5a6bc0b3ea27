"""The ``replay`` command: published hyper-parameters, our estimators, the same folds.

Refit the published runs and compare the test scores. There is no search: each published fold stores
the hyper-parameters that were chosen for it, so that one fit per fold shows how well our models
agree with the paper's.
"""

import argparse
import functools
import json
from pathlib import Path

import pandas as pd

from experiments.commands.arguments import add_folds, add_published_runs, add_selection
from experiments.data.protocols import load_rows
from experiments.data.published import read_published
from experiments.data.tables import Table, find_data_folder, known_table, select_tables
from experiments.models.recipes import build
from experiments.models.scoring import Scores, fit_and_score
from experiments.models.variants import Variant, select_variants, variant_names
from experiments.reports.replay import FOLD_COLUMNS, dataset_rows, fold_rows, markdown_report
from experiments.requests import UsageError
from experiments.runs.files import write_report, write_table
from experiments.runs.jobs import Job, provenances
from experiments.runs.pool import run_jobs

NAME = "replay"
SUMMARY = "refit the paper's published runs with their own hyper-parameters and compare"
PROTOCOL = "paper"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_selection(parser, variant_names(), out="experiments-output/replay")
    add_folds(parser)
    add_published_runs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check the whole request, then fit, compare and write; 1 if a fit failed."""
    variants = select_variants(arguments.models)
    data = find_data_folder(arguments.data)
    tables = select_tables(data, arguments.tables)
    published = read_published(arguments.published_runs, data)
    jobs = plan(published, tables, variants, arguments.folds)

    results = run_jobs(
        jobs,
        functools.partial(refit, data=data),
        arguments.out,
        arguments.jobs,
        mix_commits=arguments.mix_commits,
    )
    failures = [result for result in results if result.error is not None]
    folds = fold_rows(results, published, variants)
    datasets = dataset_rows(folds)
    made_with = provenances(results)
    write_table(arguments.out / "replay-folds.csv", folds[FOLD_COLUMNS], made_with)
    write_table(arguments.out / "replay.csv", datasets, made_with)
    text = markdown_report(datasets, failures)
    report = write_report(arguments.out / "replay.md", text, made_with)
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
    """Fit and score one job; the fold is the seed, so that a refit gives the same model."""
    fold = load_rows(job.protocol, job.dataset, data).fold(job.fold)
    model = build(job.recipe, len(fold.y_train), random_state=job.fold)
    return fit_and_score(model, fold, known_table(job.dataset).task)
