"""The ``exports`` command: whether a model says the same elsewhere as where it was fitted.

Fit our estimator as it comes on some rows of every raw table, with its holes and categories, and
ask for other rows: the model itself, on one thread; the model saved, and loaded by a new process,
on two; the model as an ONNX graph in onnxruntime, fed with single precision. A table takes seconds.
What is stored in --out is not run again; a table that fails is listed, and makes the exit code 1.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from experiments.arguments import add_data, add_out, add_tables, at_least
from experiments.datasets import Table, find_data_folder, load_table, select_tables
from experiments.exported import Exported, compared
from experiments.exports_report import report
from experiments.files import write_atomically
from experiments.libraries import require

NAME = "exports"
SUMMARY = "models in a file and in ONNX beside the models they were made of, on raw tables"
ROWS = 2000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_tables(parser)
    add_out(parser, "experiments-output/exports")
    add_data(parser)
    parser.add_argument(
        "--rows",
        type=at_least(50, "--rows"),
        metavar="N",
        default=ROWS,
        help="fit on so many random rows, or two thirds of a table (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Compare on every table, then write the report."""
    for library in ("onnx", "onnxruntime", "safetensors"):
        require(library, "experiments", NAME)
    data = find_data_folder(arguments.data)
    tables = select_tables(data, arguments.tables)
    folder = arguments.out / f"rows-{arguments.rows}"
    found: dict[int, Exported] = {}
    failures: dict[str, str] = {}
    for table in tables:
        try:
            found[table.id] = stored_or_compared(table, data, arguments.rows, folder)
        except Exception as error:  # what goes wrong on one table must not stop the others
            failures[table.name] = f"{type(error).__name__}: {error}"
    text = report(tables, found, failures)
    write_atomically(folder / "exports.md", text)
    print(text)
    return 1 if failures else 0


def stored_or_compared(table: Table, data: Path, rows: int, folder: Path) -> Exported:
    """What was found on a table, now or the last time."""
    path = folder / f"{table.id}.json"
    if path.is_file():
        return Exported(**json.loads(path.read_text(encoding="utf-8")))
    print(f"Exporting {table.id} ({table.name}).", file=sys.stderr, flush=True)
    found = compared(load_table(table, data), table.task, rows)
    write_atomically(path, json.dumps(asdict(found), indent=1) + "\n")
    return found
