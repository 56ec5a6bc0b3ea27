"""Finding, checking and loading the OpenML tables of the paper, and further tables.

A table is one parquet file, ``<folder>/<task>/<id>_<name>.parquet``, whose last column is
the label ``target``. The tables are not part of the repository; ``experiments/tables.csv`` lists
the id, name, task and shape of each, and a file of another shape is refused. Further public tables,
which the paper does not have, are listed in ``experiments/further_tables.csv`` under numbers of
our own; their files are ``<task>/<name>.parquet`` in a folder that ``--data`` names. Without a data
folder the paper's tables are fetched by OpenML's client and kept in the layout of a data folder, so
that all later steps are the same.
"""

import csv
import functools
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow.parquet

from experiments.requests import UsageError, require

REPOSITORY = Path(__file__).resolve().parents[2]
FACTS = REPOSITORY / "experiments" / "tables.csv"
FURTHER_FACTS = REPOSITORY / "experiments" / "further_tables.csv"
# Our numbers of further tables begin here, above all ids of OpenML.
FIRST_FURTHER = 1_000_001
DATA_VARIABLE = "RFRBOOST_DATA"
LABEL = "target"


@dataclass(frozen=True)
class Table:
    """Id, name, task and shape of one table; ``columns`` counts the inputs, without the label."""

    id: int
    name: str
    task: str
    rows: int
    columns: int

    def path(self, folder: Path) -> Path:
        """The file of this table in a data folder."""
        stem = self.name if self.id >= FIRST_FURTHER else f"{self.id}_{self.name}"
        return folder / self.task / f"{stem}.parquet"


@functools.cache
def known_tables() -> dict[int, Table]:
    """The tables of the paper by their OpenML id, then further tables by our number."""
    return {table.id: table for facts in (FACTS, FURTHER_FACTS) for table in listed_tables(facts)}


def listed_tables(facts: Path) -> list[Table]:
    """The tables that a file of facts lists."""
    with facts.open(newline="", encoding="utf-8") as stream:
        return [
            Table(int(row["id"]), row["name"], row["task"], int(row["rows"]), int(row["columns"]))
            for row in csv.DictReader(stream)
        ]


def find_data_folder(argument: Path | None) -> Path:
    """The argument, else $RFRBOOST_DATA, else ``../shared/data``, else the fetched tables."""
    named = argument or os.environ.get(DATA_VARIABLE)
    neighbour = REPOSITORY.parent / "shared" / "data"
    if not named:
        return neighbour if neighbour.is_dir() else openml_folder()
    if not Path(named).is_dir():
        raise UsageError(
            f"No data folder at {named}: pass --data DIR or set {DATA_VARIABLE} to the folder "
            "that holds regression/ and classification/."
        )
    return Path(named)


def available_tables(folder: Path) -> list[Table]:
    """The known tables that have a file in the folder, in the order of ``tables.csv``."""
    tables = [table for table in known_tables().values() if table.path(folder).is_file()]
    if not tables:
        raise UsageError(
            f"No known table is in {folder}; one would be regression/44956_abalone.parquet."
        )
    return tables


def select_tables(folder: Path, ids: list[int] | None) -> list[Table]:
    """The tables with these ids, checked; all available tables when ``ids`` is None."""
    if folder == openml_folder():
        every = [table.id for table in listed_tables(FACTS)]
        return _fetched_tables(folder, every if ids is None else ids)
    tables = available_tables(folder) if ids is None else [known_table(id) for id in ids]
    for table in tables:
        check_table(table, folder)
    return tables


def _fetched_tables(folder: Path, ids: list[int]) -> list[Table]:
    tables = [known_table(id) for id in ids]
    for table in tables:
        if not table.path(folder).is_file():
            print(f"Fetching {table.id} ({table.name}) from OpenML.", file=sys.stderr)
            _keep(fetch_table(table.id, LABEL), table, folder)
        check_table(table, folder)
    return tables


def _keep(frame: pd.DataFrame, table: Table, folder: Path) -> None:
    """Check the shape of a fetched table and write it to the folder, atomically."""
    path = table.path(folder)
    _check_shape(table, f"OpenML's table {table.id}", len(frame), frame.shape[1] - 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        frame.to_parquet(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def known_table(id: int) -> Table:
    """The table with this OpenML id."""
    table = known_tables().get(id)
    if table is None:
        raise UsageError(
            f"Unknown table {id}: the ids of the paper's tables are in experiments/tables.csv, "
            "our numbers of further tables in experiments/further_tables.csv."
        )
    return table


def check_table(table: Table, folder: Path) -> None:
    """Raise UsageError for a table that is absent, unreadable or not of the known shape.

    Only the file's footer is read, so that all tables of a run are checked before the first fit.
    """
    path = table.path(folder)
    if not path.is_file():
        raise UsageError(f"Table {table.id} ({table.name}) has no file at {path}.")
    try:
        footer = pyarrow.parquet.ParquetFile(path)
    except pyarrow.ArrowInvalid as error:
        raise UsageError(
            f"{path} is not a readable parquet file ({error}); fetch it again."
        ) from error
    if footer.schema_arrow.names[-1] != LABEL:
        raise UsageError(
            f"{path} has no last column '{LABEL}'; it is not one of the prepared tables."
        )
    _check_shape(table, str(path), footer.metadata.num_rows, footer.metadata.num_columns - 1)


def _check_shape(table: Table, where: str, rows: int, columns: int) -> None:
    if (rows, columns) != (table.rows, table.columns):
        raise UsageError(
            f"{where} has {rows} rows and {columns} inputs, but table {table.id} ({table.name}) "
            f"has {table.rows} and {table.columns}: it is another version or cut off."
        )


def load_table(table: Table, folder: Path) -> pd.DataFrame:
    """The whole table, checked, with its label in the column ``target``; text as categories."""
    check_table(table, folder)
    frame = pd.read_parquet(table.path(folder))
    texts = frame.drop(columns=LABEL).select_dtypes(["object", "string", "bool"])
    return frame.astype(dict.fromkeys(texts.columns, "category"))


def openml_folder() -> Path:
    """The folder of fetched tables."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "rfrboost" / "tables"


def fetch_table(id: int, label: str) -> pd.DataFrame:
    """A table from OpenML: nominal columns as categories, the target last, named ``label``."""
    require("openml", "experiments", "Fetching a table, where there is no data folder,")
    import openml

    try:
        dataset = openml.datasets.get_dataset(id, download_data=True)
        inputs, target, nominal, _ = dataset.get_data(target=dataset.default_target_attribute)
    except Exception as error:  # the client raises many kinds: network, server, file
        raise UsageError(
            f"OpenML's table {id} could not be fetched ({type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else 'no message'}); pass --data DIR to "
            "use a folder of tables instead."
        ) from error
    levels = {name: "category" for name, is_level in zip(inputs, nominal, strict=True) if is_level}
    return inputs.astype(levels).assign(**{label: target})
