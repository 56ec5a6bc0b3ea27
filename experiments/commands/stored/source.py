"""The runs that a table or figure is made from: stored results, or the published runs."""

import argparse
from pathlib import Path

import pandas as pd

from experiments.commands.arguments import add_published_runs, add_selection
from experiments.data.protocols import PROTOCOLS
from experiments.data.published import read_published
from experiments.data.tables import find_data_folder
from experiments.models.naming import LOOKS, with_our_names
from experiments.requests import UsageError
from experiments.runs.files import write_table
from experiments.runs.jobs import read_results
from experiments.runs.provenance import Provenance, check_one_code, current

FOLD_COLUMNS = ["task", "dataset", "model", "fold", "test_score", "fit_seconds"]


def add_source(parser: argparse.ArgumentParser, out: str) -> None:
    """The options that choose the runs: ``--published --protocol --tables --models --out`` …"""
    add_selection(parser, list(LOOKS), out)
    add_published_runs(parser)
    parser.add_argument(
        "--published",
        action="store_true",
        help="read the paper's published runs instead of our results",
    )
    parser.add_argument(
        "--protocol",
        choices=list(PROTOCOLS),
        default="paper",
        help="protocol of our results (default: %(default)s)",
    )


def target_folder(arguments: argparse.Namespace) -> Path:
    """The folder to write to; each source has its own, so that ours and published never mix."""
    return arguments.out / ("published" if arguments.published else arguments.protocol)


def read_runs(arguments: argparse.Namespace) -> pd.DataFrame:
    """The chosen runs under our names. No runs, or results of several commits, are an error."""
    if arguments.published:
        runs = published_runs(arguments)
    else:
        runs = read_results(arguments.out, arguments.protocol)
        if runs.empty:
            raise UsageError(
                f"No results of the protocol '{arguments.protocol}' in {arguments.out}: "
                "make some first, pass --out DIR, or pass --published."
            )
    runs = _keep(runs, "dataset", arguments.tables, "table")
    runs = _keep(runs, "model", arguments.models, "model")
    check_one_code(made_with(arguments, runs), arguments.mix_commits)
    return runs


def published_runs(arguments: argparse.Namespace) -> pd.DataFrame:
    """All published runs, under our names."""
    # The data folder is needed only to find the file of the runs beside it.
    named = arguments.published_runs
    folder = named.parent if named else find_data_folder(arguments.data)
    return with_our_names(read_published(named, folder))


def _keep(runs: pd.DataFrame, column: str, wanted: list | None, what: str) -> pd.DataFrame:
    if wanted is None:
        return runs
    unknown = [str(value) for value in wanted if value not in set(runs[column])]
    if unknown:
        known = ", ".join(str(value) for value in sorted(runs[column].unique()))
        raise UsageError(
            f"There are no runs of {what} {', '.join(unknown)}; there are runs of {known}."
        )
    return runs[runs[column].isin(wanted)]


def made_with(arguments: argparse.Namespace, runs: pd.DataFrame) -> list[Provenance]:
    """What the runs were made with; for published runs, what their table is computed with."""
    return [current()] if arguments.published else list(runs["provenance"])


def write_folds(arguments: argparse.Namespace, runs: pd.DataFrame, name: str) -> None:
    """Write our runs, one row per fold; the published runs have a file already."""
    if not arguments.published:
        commits = [provenance.code for provenance in runs["provenance"]]
        rows = runs[FOLD_COLUMNS].assign(commit=commits)
        write_table(target_folder(arguments) / name, rows, runs["provenance"])
