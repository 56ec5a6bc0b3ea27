"""The four tables of the larger-scale experiments: their files, splits and preparation.

Inputs and, for regression, labels are scaled by the training rows alone. Columns whose values are
all 0 or 1 are not scaled.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.data.protocols import SEED, Fold, fill_missing, label_codes, one_hot
from experiments.data.tables import LABEL, Table, load_table
from experiments.requests import UsageError

# Training rows of the smallest fit, as published.
SMALLEST_SIZE = 2000
# Added to a standard deviation, as published, so that a constant column becomes zeros.
STD_OFFSET = 1e-6
Split = Callable[[int], list[NDArray]]


@dataclass(frozen=True)
class LargeTable(Table):
    """A table; ``id`` is its name in ``--tables``, ``published`` its name in the published runs.

    ``split`` maps the number of rows to the positions of training and of test rows.
    """

    file: str
    split: Split
    published: str | None

    def path(self, folder: Path) -> Path:
        """The file of this table in a data folder."""
        return folder / self.task / self.file


def random_split(test_share: float) -> Split:
    """The published random split, with this share of the rows for testing."""

    def split(n_rows: int) -> list[NDArray]:
        from sklearn.model_selection import train_test_split

        return train_test_split(np.arange(n_rows), test_size=test_share, random_state=SEED)

    return split


def first_rows(n_train: int) -> Split:
    """The first ``n_train`` rows for training, the others for testing."""
    return lambda n_rows: [np.arange(n_train), np.arange(n_train, n_rows)]


# 23517 has no published name: its published scores are areas under the ROC curve, which cannot be
# compared with accuracies.
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
    """The named tables. A missing file is an error if ``asked``, else the table is left out."""
    tables = [LARGE_TABLES[name] for name in names]
    missing = [table for table in tables if not table.path(folder).is_file()]
    if missing and (asked or missing == tables):
        files = ", ".join(str(table.path(folder)) for table in missing)
        raise UsageError(f"No file for {', '.join(t.id for t in missing)}; expected: {files}.")
    return [table for table in tables if table not in missing]


def training_sizes(table: LargeTable) -> list[int]:
    """2,000 rows, 4,000, 8,000 and so on, and at last all training rows."""
    n_train = len(table.split(table.rows)[0])
    doublings = int(np.log2(n_train / SMALLEST_SIZE))
    sizes = [SMALLEST_SIZE * 2**k for k in range(doublings + 1)]
    # The two tables of about 64,000 training rows end at 64,000, as published.
    return sizes if n_train < 1.1 * sizes[-1] else [*sizes, n_train]


def prepare(table: LargeTable, folder: Path) -> Fold:
    """The whole table, split and scaled."""
    frame = load_table(table, folder)
    train, test = table.split(len(frame))
    X = scaled(one_hot(fill_missing(frame.drop(columns=LABEL))), train)
    y = labels(frame[LABEL], table.task, train)
    return Fold(X[train], y[train], X[test], y[test])


def scaled(X: NDArray, train: NDArray) -> NDArray:
    """X with each column that is not an indicator standardised, in place, by the training rows."""
    for column in X.T:
        if not np.isin(column, (0, 1)).all():
            seen = column[train].astype(np.float64)
            column -= seen.mean()
            column /= seen.std() + STD_OFFSET
    return X


def labels(values: pd.Series, task: str, train: NDArray) -> NDArray:
    """Class labels as codes; regression targets standardised by the training rows."""
    if task == "classification":
        return label_codes(values)
    return scaled(values.to_numpy(dtype=np.float64)[:, None].copy(), train)[:, 0]


def subsample(fold: Fold, size: int, seed: int) -> Fold:
    """The training rows of the published run with this size and seed, and all test rows.

    The published way of drawing leaves out at least one row: the largest size is all rows but one.
    """
    from sklearn.model_selection import train_test_split

    size = min(size, len(fold.y_train) - 1)
    rows, _ = train_test_split(np.arange(len(fold.y_train)), train_size=size, random_state=seed)
    return Fold(fold.X_train[rows], fold.y_train[rows], fold.X_test, fold.y_test)


@functools.lru_cache(maxsize=1)
def prepared(name: str, data: Path) -> Fold:
    """The split and scaled table, cached for the next job of the same process."""
    return prepare(LARGE_TABLES[name], data)
