"""The four tables of the larger-scale experiments: their files, splits and preparation.

Inputs and, for regression, labels are scaled by the training rows alone. Columns that hold
nothing but 0 and 1 stay as they are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.datasets import LABEL, Table, load_table
from experiments.errors import UsageError
from experiments.protocols import SEED, Fold, fill_holes, label_codes, one_hot

SMALLEST_SIZE = 2000
# As published, added to a standard deviation so that a constant column becomes zeros.
STD_OFFSET = 1e-6

Split = Callable[[int], list[NDArray]]


@dataclass(frozen=True)
class LargeTable(Table):
    """One table; ``id`` is the name to ask for it by, ``published`` its name in their runs."""

    file: str
    split: Split
    published: str | None

    def path(self, folder: Path) -> Path:
        """Where this table lies in a data folder."""
        return folder / self.task / self.file


def random_split(test_share: float) -> Split:
    """The published random split, with this share of the rows for testing."""

    def split(n_rows: int) -> list[NDArray]:
        from sklearn.model_selection import train_test_split

        return train_test_split(np.arange(n_rows), test_size=test_share, random_state=SEED)

    return split


def first_rows(n_train: int) -> Split:
    """The first rows for training, the others for testing."""
    return lambda n_rows: [np.arange(n_train), np.arange(n_train, n_rows)]


# The published scores of 23517 are areas under the ROC curve: no curve to set beside an accuracy.
LARGE_TABLES = {
    table.id: table
    for table in (
        LargeTable(
            "covtype",
            "CoverType",
            "classification",
            581_012,
            54,
            "covtype.parquet",
            random_split(0.2),
            "CoverType",
        ),
        LargeTable(
            "year",
            "YearPredictionMSD",
            "regression",
            515_345,
            90,
            "YearPredictionMSD.parquet",
            first_rows(463_715),
            "YPMSD",
        ),
        LargeTable(
            "44975",
            "wave_energy",
            "regression",
            72_000,
            48,
            "44975_wave_energy.parquet",
            random_split(0.11),
            "wave_energy_44975",
        ),
        LargeTable(
            "23517",
            "numerai28.6",
            "classification",
            96_320,
            21,
            "23517_numerai28.6.parquet",
            random_split(0.336),
            None,
        ),
    )
}


def select_large_tables(names: list[str], folder: Path, asked: bool) -> list[LargeTable]:
    """The named tables; of those that nobody asked for by name, only what has a file."""
    tables = [LARGE_TABLES[name] for name in names]
    missing = [table for table in tables if not table.path(folder).is_file()]
    if missing and (asked or missing == tables):
        files = ", ".join(str(table.path(folder)) for table in missing)
        raise UsageError(f"No file for {', '.join(t.id for t in missing)}; expected: {files}.")
    return [table for table in tables if table not in missing]


def training_sizes(table: LargeTable) -> list[int]:
    """2,000 rows, doubled as long as there are more, and then all training rows."""
    n_train = len(table.split(table.rows)[0])
    doublings = int(np.log2(n_train / SMALLEST_SIZE))
    sizes = [SMALLEST_SIZE * 2**k for k in range(doublings + 1)]
    # The two tables of 64,000 training rows end there, as published.
    return sizes if n_train < 1.1 * sizes[-1] else [*sizes, n_train]


def prepare(table: LargeTable, folder: Path) -> Fold:
    """The whole table, split and scaled."""
    frame = load_table(table, folder)
    train, test = table.split(len(frame))
    X = scaled(one_hot(fill_holes(frame.drop(columns=LABEL))), train)
    y = labels(frame[LABEL], table.task, train)
    return Fold(X[train], y[train], X[test], y[test])


def scaled(X: NDArray, train: NDArray) -> NDArray:
    """Every column that is not an indicator, by its mean and spread over the training rows."""
    for column in X.T:
        if not np.isin(column, (0, 1)).all():
            seen = column[train].astype(np.float64)
            column -= seen.mean()
            column /= seen.std() + STD_OFFSET
    return X


def labels(values: pd.Series, task: str, train: NDArray) -> NDArray:
    """Classes as codes; numbers scaled like the inputs."""
    if task == "classification":
        return label_codes(values)
    return scaled(values.to_numpy(dtype=np.float64)[:, None].copy(), train)[:, 0]


def subsample(fold: Fold, size: int, seed: int) -> Fold:
    """The training rows that the published run with this size and seed had.

    Their way of drawing leaves at least one row out: the largest size is all rows but one.
    """
    from sklearn.model_selection import train_test_split

    size = min(size, len(fold.y_train) - 1)
    rows, _ = train_test_split(np.arange(len(fold.y_train)), train_size=size, random_state=seed)
    return Fold(fold.X_train[rows], fold.y_train[rows], fold.X_test, fold.y_test)
