"""The ``replay`` command: published hyper-parameters, our estimators, the same folds.

Refit the published runs and compare the test scores. No search is made: each published fold
stores the hyper-parameters that were chosen for it, so a refit tells how far our models agree
with the paper's, at the price of one fit a fold.
"""

import argparse
import functools
import json
import os
from pathlib import Path

import pandas as pd

from experiments.comparison import dataset_rows, fold_rows, markdown_report
from experiments.datasets import Table, find_data_folder, known_table, load_table, select_tables
from experiments.errors import UsageError
from experiments.files import write_atomically
from experiments.jobs import Job
from experiments.models import build
from experiments.pool import run_jobs
from experiments.protocols import N_FOLDS, PROTOCOLS, Fold
from experiments.published import Variant, read_published, select_variants, variant_names
from experiments.scoring import Scores, fit_and_score

NAME = "replay"
SUMMARY = "refit the paper's published runs with their own hyper-parameters and compare"
PROTOCOL = "paper"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "--tables",
        type=_integers,
        metavar="ID,ID",
        help="OpenML ids, as in experiments/tables.csv (default: every table in the data folder)",
    )
    parser.add_argument(
        "--models",
        type=_words,
        metavar="NAME,NAME",
        help=f"which models to refit (default: all), of {', '.join(variant_names())}",
    )
    parser.add_argument(
        "--folds",
        type=_integers,
        metavar="K,K",
        default=list(range(N_FOLDS)),
        help="which of the folds 0-4 to fit, e.g. 0,1 for a quick look (default: all five)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        default=Path("experiments-output/replay"),
        help="where results are kept; what is there is not fitted again (default: %(default)s)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        default=os.cpu_count() or 1,
        help="processes, each with one thread (default: the number of cores)",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="the folder of the tables (default: $RFRBOOST_DATA, else ../shared/data)",
    )
    parser.add_argument(
        "--published-runs",
        type=Path,
        metavar="FILE",
        help="the published runs (default: paper/openml_folds.parquet beside the data folder)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Check the whole request, then fit, compare and write; 1 when a fit failed."""
    _check_numbers(arguments.folds, arguments.jobs)
    _check_out(arguments.out)
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
    fold = prepared_folds(job.protocol, job.dataset, data)[job.fold]
    model = build(job.recipe, len(fold.y_train), random_state=job.fold)
    return fit_and_score(model, fold, known_table(job.dataset).task)


# Jobs come grouped by dataset: one table in use, and the next one at the change-over.
@functools.lru_cache(maxsize=2)
def prepared_folds(protocol: str, dataset: int, data: Path) -> list[Fold]:
    """The folds of a table, kept for the next job of the same process."""
    table = known_table(dataset)
    return PROTOCOLS[protocol](load_table(table, data), table.task)


def _check_numbers(folds: list[int], jobs: int) -> None:
    if not set(folds) <= set(range(N_FOLDS)):
        raise UsageError(f"The folds are 0 to {N_FOLDS - 1}; --folds names {folds}.")
    if jobs < 1:
        raise UsageError(f"--jobs is the number of processes and must be at least 1, not {jobs}.")


def _check_out(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file; name a folder for the results.")


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def _integers(text: str) -> list[int]:
    return [int(word) for word in _words(text)]
