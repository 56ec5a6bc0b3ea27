"""The runs a table or figure is made from: the published ones, or results of our own."""

import argparse
from pathlib import Path

import pandas as pd

from experiments.arguments import add_published_runs, add_selection
from experiments.datasets import find_data_folder
from experiments.errors import UsageError
from experiments.naming import IID, LOOKS, with_our_names
from experiments.protocols import PROTOCOLS
from experiments.published import read_published
from experiments.results import read_results

TASKS = ("regression", "classification")


def add_source(parser: argparse.ArgumentParser, out: str) -> None:
    """Which runs to read: ``--published`` or the results in ``--out``, and which of them."""
    add_selection(parser, list(LOOKS), out)
    add_published_runs(parser)
    parser.add_argument(
        "--published",
        action="store_true",
        help="read the paper's published runs instead of results of our own",
    )
    parser.add_argument(
        "--protocol",
        choices=list(PROTOCOLS),
        default="paper",
        help="which of our results to read (default: %(default)s)",
    )


def target_folder(arguments: argparse.Namespace) -> Path:
    """Where the command writes: one folder a source, so that ours and published never mix."""
    return arguments.out / ("published" if arguments.published else arguments.protocol)


def read_runs(arguments: argparse.Namespace) -> pd.DataFrame:
    """The runs that were asked for, under our names; an empty answer is refused."""
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
    return _keep(runs, "model", arguments.models, "model")


def published_runs(arguments: argparse.Namespace) -> pd.DataFrame:
    """All published runs, under our names."""
    # A data folder is needed only for finding the file of the runs beside it.
    named = arguments.published_runs
    folder = named.parent if named else find_data_folder(arguments.data)
    return with_our_names(read_published(named, folder))


def _keep(runs: pd.DataFrame, column: str, wanted: list | None, what: str) -> pd.DataFrame:
    if wanted is None:
        return runs
    unknown = [str(value) for value in wanted if value not in set(runs[column])]
    if unknown:
        there = ", ".join(str(value) for value in sorted(runs[column].unique()))
        raise UsageError(
            f"There are no runs of {what} {', '.join(unknown)}; there are some of {there}."
        )
    return runs[runs[column].isin(wanted)]


def without_twins(runs: pd.DataFrame, named: list[str] | None) -> pd.DataFrame:
    """The runs without the i.i.d. twin of each model, which the ablation is about.

    A rank depends on who takes part; the paper's main tables have the SWIM models only.
    """
    return runs if named else runs[~runs["model"].str.endswith(IID)]
