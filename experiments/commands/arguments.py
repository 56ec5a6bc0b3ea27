"""Options that several commands share, and readers of their values."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from experiments.data.protocols import N_FOLDS
from experiments.requests import UsageError


def add_selection(parser: argparse.ArgumentParser, models: list[str], out: str) -> None:
    """``--tables --models --out --jobs --data``, for commands on OpenML tables."""
    add_tables(parser)
    add_common(parser, models, out)
    add_data(parser)


def add_tables(parser: argparse.ArgumentParser) -> None:
    """``--tables``, the ids of OpenML tables."""
    parser.add_argument(
        "--tables",
        type=integers,
        metavar="ID,ID",
        help="OpenML ids, as in experiments/tables.csv (default: every table in the data folder)",
    )


def add_named_selection(
    parser: argparse.ArgumentParser, tables: list[str], models: list[str], out: str
) -> None:
    """``--tables --models --out --jobs``, for commands on tables that have names and no ids."""
    parser.add_argument(
        "--tables",
        type=words,
        metavar="NAME,NAME",
        help=f"which tables (default: all), of {', '.join(tables)}",
    )
    add_common(parser, models, out)


def add_common(parser: argparse.ArgumentParser, models: list[str], out: str) -> None:
    """``--models --out --jobs``."""
    add_models(parser, models, unnamed="all")
    add_out(parser, out)
    add_jobs(parser, os.cpu_count() or 1, unnamed="the number of cores")


def add_jobs(parser: argparse.ArgumentParser, default: int, unnamed: str = "%(default)s") -> None:
    """``--jobs``; ``unnamed`` is the default as the help prints it."""
    parser.add_argument(
        "--jobs",
        type=at_least(1, "--jobs"),
        metavar="N",
        default=default,
        help=f"processes, each with one thread (default: {unnamed})",
    )


def add_models(parser: argparse.ArgumentParser, models: list[str], unnamed: str) -> None:
    """``--models``; ``unnamed`` is the default as the help prints it."""
    parser.add_argument(
        "--models",
        type=words,
        metavar="NAME,NAME",
        help=f"which models (default: {unnamed}), of {', '.join(models)}",
    )


def add_out(parser: argparse.ArgumentParser, out: str) -> None:
    """``--out`` and ``--mix-commits``, for commands that store or read results."""
    parser.add_argument(
        "--out",
        type=folder,
        metavar="DIR",
        default=Path(out),
        help="folder of the results; stored results are not computed again (default: %(default)s)",
    )
    parser.add_argument(
        "--mix-commits",
        action="store_true",
        help="allow stored results of different commits in one table, which then says so "
        "(default: refuse)",
    )


def add_data(parser: argparse.ArgumentParser) -> None:
    """``--data``, for commands that read tables."""
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder of the tables (default: $RFRBOOST_DATA, else ../shared/data, else OpenML)",
    )


def add_folds(parser: argparse.ArgumentParser) -> None:
    """``--folds``, for commands that fit."""
    parser.add_argument(
        "--folds",
        type=fold_numbers,
        metavar="K,K",
        default=list(range(N_FOLDS)),
        help="which of the folds 0-4 to fit, for example 0,1 (default: all five)",
    )


def add_published_runs(parser: argparse.ArgumentParser) -> None:
    """``--published-runs``, for commands that compare with the paper."""
    parser.add_argument(
        "--published-runs",
        type=Path,
        metavar="FILE",
        help="the published runs (default: paper/openml_folds.parquet beside the data folder)",
    )


def words(text: str) -> list[str]:
    """Comma-separated names."""
    return [word.strip() for word in text.split(",")]


def integers(text: str) -> list[int]:
    """Comma-separated whole numbers."""
    return [int(word) for word in words(text)]


def fold_numbers(text: str) -> list[int]:
    """Comma-separated fold numbers from 0 to 4."""
    folds = integers(text)
    if not set(folds) <= set(range(N_FOLDS)):
        raise UsageError(f"The folds are 0 to {N_FOLDS - 1}; --folds names {text}.")
    return folds


def at_least(minimum: int, option: str) -> Callable[[str], int]:
    """A reader of whole numbers of at least ``minimum``; ``option`` is named in its error."""

    def read(text: str) -> int:
        if int(text) < minimum:
            raise UsageError(f"{option} must be at least {minimum}, not {text}.")
        return int(text)

    return read


def folder(text: str) -> Path:
    """A folder, which need not exist yet."""
    path = Path(text)
    if path.exists() and not path.is_dir():
        raise UsageError(f"--out {path} is a file; name a folder for the results.")
    return path
