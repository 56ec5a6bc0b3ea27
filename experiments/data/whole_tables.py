"""Whole tables as data frames, for models that are compared as the number of rows grows.

Nothing is prepared but the label: missing values and categories are as in the file, and labels of
regression are divided by the standard deviation of the training rows. A fifth of the rows, drawn
once, is for testing. For CoverType these are the rows that the published runs were tested on.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.data.protocols import SEED, Fold, label_codes
from experiments.data.synthetic import mixed_table
from experiments.data.tables import LABEL, known_tables
from experiments.requests import UsageError

TEST_SHARE = 0.2
COVERTYPE_ROWS = 581_012
# Rows of the generated table, and those of them that are tested.
GENERATED_ROWS = 10_100_000
GENERATED_TEST_ROWS = 100_000
# Where further tables are, beside the folder of the paper's tables.
FURTHER_FOLDER = "more_tables"


@dataclass(frozen=True)
class WholeTable:
    """A table by its name: the task, its rows, and how they are read from a data folder."""

    name: str
    task: str
    read: Callable[[Path], pd.DataFrame]
    n_rows: int
    n_test: int


def from_file(name: str) -> WholeTable:
    """A table of the paper or a further table, by its name."""
    table = next(table for table in known_tables().values() if table.name == name)

    def read(data: Path) -> pd.DataFrame:
        places = [table.path(data), table.path(data.parent / FURTHER_FOLDER)]
        return read_first(name, places)

    return WholeTable(name, table.task, read, table.rows, test_rows(table.rows))


def covertype() -> WholeTable:
    """CoverType, whose file has no number."""

    def read(data: Path) -> pd.DataFrame:
        return read_first("covtype", [data / "classification" / "covtype.parquet"])

    return WholeTable("covtype", "classification", read, COVERTYPE_ROWS, test_rows(COVERTYPE_ROWS))


def generated() -> WholeTable:
    """Ten million training rows of 20 numbers."""
    rows, test = GENERATED_ROWS, GENERATED_TEST_ROWS
    return WholeTable("generated", "regression", lambda _: mixed_table(rows, SEED), rows, test)


def read_first(name: str, places: list[Path]) -> pd.DataFrame:
    """The first of these files that exists."""
    for path in places:
        if path.is_file():
            return pd.read_parquet(path)
    expected = " or ".join(map(str, places))
    raise UsageError(f"No file for {name}; expected: {expected}.")


def test_rows(n_rows: int) -> int:
    """The number of test rows, as train_test_split rounds it."""
    return int(np.ceil(TEST_SHARE * n_rows))


#: those on which models are compared as the number of rows grows
GROWING = (
    "covtype",
    "sleep",
    "fars",
    "physiochemical_protein",
    "diamonds",
    "electricity",
    "generated",
)
#: all tables of more than 13,000 rows that are compared whole
LARGER = (
    "california_housing",
    "diamonds",
    "physiochemical_protein",
    "kings_county",
    "fifa",
    "beijing_pm25",
    "metro_traffic",
    "adult",
    "bank-marketing",
    "electricity",
    "jungle_chess_2pcs_raw_endgame_complete",
    "connect-4",
    "letter",
    "sleep",
    "fars",
    "shuttle",
    "MagicTelescope",
)


def whole_table(name: str) -> WholeTable:
    """The table of this name."""
    special = {"covtype": covertype, "generated": generated}
    return special[name]() if name in special else from_file(name)


@functools.lru_cache(maxsize=1)
def split_table(name: str, data: Path) -> Fold:
    """All rows, split; cached for the next fit of the same process."""
    from sklearn.model_selection import train_test_split

    table = whole_table(name)
    frame = table.read(data)
    train, test = train_test_split(np.arange(len(frame)), test_size=table.n_test, random_state=SEED)
    if table.task == "classification":
        y = label_codes(frame[LABEL])
    else:
        y = frame[LABEL].to_numpy(dtype=np.float64)
        y = (y - y[train].mean()) / y[train].std()
    X = frame.drop(columns=LABEL)
    return Fold(X.iloc[train], y[train], X.iloc[test], y[test])


def first_rows(fold: Fold, size: int) -> Fold:
    """The first training rows, which are in random order, and all test rows.

    Every size has the rows of the smaller ones.
    """
    return Fold(fold.X_train[:size], fold.y_train[:size], fold.X_test, fold.y_test)


def training_sizes(name: str) -> list[int]:
    """1,000 training rows, 10,000 and so on, and all."""
    table = whole_table(name)
    n_train = table.n_rows - table.n_test
    powers = [10**k for k in range(3, 9) if 10**k < 0.9 * n_train]
    return [*powers, n_train]
