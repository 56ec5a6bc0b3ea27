"""The ``raw-tables`` command: ``rfrboost evaluate`` on raw tables, as a user would call it.

Run ``rfrboost evaluate TABLE --target target`` without any other option on every table, with its
holes and categories as they are, each in a process of its own. Then, on the ten tables with most
categories or holes, the same model on the same folds behind the encoding that people make by hand:
the median or the most frequent level for holes, and one column for every level. What is stored in
--out is not run again; a table that fails is listed, and makes the exit code 1.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

from experiments.arguments import add_data, add_out, add_tables, at_least
from experiments.datasets import LABEL, Table, find_data_folder, load_table, select_tables
from experiments.files import write_atomically
from experiments.raw_by_hand import hand_made, most_irregular
from experiments.raw_report import report

NAME = "raw-tables"
SUMMARY = "rfrboost evaluate on every raw table, and beside an encoding made by hand"
# Which rows a quick look takes.
SEED = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_tables(parser)
    add_out(parser, "experiments-output/raw-tables")
    add_data(parser)
    parser.add_argument(
        "--format",
        choices=["parquet", "csv"],
        default="parquet",
        help="which kind of file to evaluate; CSV has no types (default: %(default)s)",
    )
    parser.add_argument(
        "--rows",
        type=at_least(100, "--rows"),
        metavar="N",
        help="take so many random rows of longer tables, for a quick look (default: all)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Evaluate every table, then write the report."""
    data = find_data_folder(arguments.data)
    tables = select_tables(data, arguments.tables)
    part = "all-rows" if arguments.rows is None else f"rows-{arguments.rows}"
    folder = arguments.out / arguments.format / part
    irregular = most_irregular(tables, data)
    scores, failures = {}, {}
    with tempfile.TemporaryDirectory() as temporary:
        for table in tables:
            file = Path(temporary) / f"{table.id}.{arguments.format}"
            stored = folder / f"{table.id}.csv"
            said = evaluated(table, data, file, arguments.rows, stored)
            if said is not None:
                failures[table.name] = said
                continue
            scores[table.id] = pd.read_csv(stored)
            by_hand = folder / "by-hand" / f"{table.id}.csv"
            if table.id in irregular and not by_hand.is_file():
                write_file(table, data, file, arguments.rows)
                write_atomically(by_hand, hand_made(file).to_csv(index=False))
            file.unlink(missing_ok=True)
    beside = {id: pd.read_csv(path) for id in scores if (path := hand_path(folder, id)).is_file()}
    text = report(tables, scores, beside, failures)
    write_atomically(folder / "raw-tables.md", text)
    print(text)
    return 1 if failures else 0


def hand_path(folder: Path, id: int) -> Path:
    """Where the scores of a table encoded by hand are kept."""
    return folder / "by-hand" / f"{id}.csv"


def write_file(table: Table, data: Path, file: Path, rows: int | None) -> None:
    """The table as a file of its own, all of it or some of its rows."""
    frame = load_table(table, data)
    if rows is not None and rows < len(frame):
        frame = frame.sample(rows, random_state=SEED)
    if file.suffix == ".csv":
        frame.to_csv(file, index=False)
    else:
        frame.to_parquet(file, index=False)


def evaluated(table: Table, data: Path, file: Path, rows: int | None, stored: Path) -> str | None:
    """Let ``rfrboost evaluate`` score a table; None, or what it said when it failed."""
    if stored.is_file():
        return None
    print(f"Evaluating {table.id} ({table.name}).", file=sys.stderr, flush=True)
    write_file(table, data, file, rows)
    command = [sys.executable, "-m", "rfrboost.cli", "evaluate", str(file), "--target", LABEL]
    ran = subprocess.run([*command, "--out", "-"], capture_output=True, text=True, check=False)
    if ran.returncode:
        return (ran.stderr.splitlines() or [f"exit code {ran.returncode}"])[-1]
    write_atomically(stored, ran.stdout)
    return None
