"""Splits whose test rows are unlike the training rows: later ones, or those of other groups.

A split is ordered by columns, or by the order of the file, and the last 30 % of the rows are its
test rows; or it is grouped by a column, and 30 % of the groups are. At most ``MOST_ROWS`` rows of a
table are used, evenly spaced, so that all fits together take minutes. One table is split whole:
the file of Miami housing goes from north to south, its first ``FIRST_ROWS`` rows are for training,
and all others, which lie further south, for the test.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.data.tables import LABEL, known_table, load_table

MOST_ROWS = 2500
TEST_SHARE = 0.3
SEED = 42
ORDERED, GROUPED, WHOLE = "ordered", "grouped", "whole"
FIRST_ROWS = 8000


@dataclass(frozen=True)
class Shift:
    """A table, the kind of its split, and the columns that order or group its rows, if any."""

    dataset: int
    kind: str
    by: tuple[str, ...] = ()


SHIFTS = (
    Shift(44983, ORDERED),
    Shift(44989, ORDERED, ("date_year", "date_month", "date_day")),
    Shift(41021, ORDERED, ("year",)),
    Shift(44959, ORDERED),
    Shift(44977, ORDERED),
    Shift(45402, ORDERED),
    Shift(41021, GROUPED, ("team",)),
    Shift(44957, GROUPED, ("Displ",)),
    Shift(44960, GROUPED, ("X1",)),
    Shift(44989, GROUPED, ("zipcode",)),
    Shift(44983, WHOLE),
)


@dataclass(frozen=True)
class ShiftedRows:
    """Training rows with their groups (None if ordered), and test rows."""

    X_train: pd.DataFrame
    y_train: NDArray
    groups: NDArray | None
    X_test: pd.DataFrame
    y_test: NDArray


def load_shift(shift: Shift, folder: Path) -> ShiftedRows:
    """The rows of a split; training rows are in their order."""
    return cut(load_table(known_table(shift.dataset), folder), shift)


def cut(frame: pd.DataFrame, shift: Shift) -> ShiftedRows:
    """Training and test rows of a table."""
    if shift.kind == ORDERED and shift.by:
        frame = frame.sort_values(list(shift.by), kind="stable")
    if len(frame) > MOST_ROWS and shift.kind != WHOLE:
        frame = frame.iloc[np.linspace(0, len(frame) - 1, MOST_ROWS).astype(int)]
    groups = None
    first = FIRST_ROWS if shift.kind == WHOLE else (1 - TEST_SHARE) * len(frame)
    later = np.arange(len(frame)) >= first
    if shift.kind == GROUPED:
        (column,) = shift.by
        groups, names = pd.factorize(frame[column], sort=True)
        drawn = np.random.RandomState(SEED).permutation(len(names))
        later = np.isin(groups, drawn[: round(TEST_SHARE * len(names))])
    X, y = frame.drop(columns=LABEL), frame[LABEL].to_numpy(float)
    return ShiftedRows(
        X[~later], y[~later], None if groups is None else groups[~later], X[later], y[later]
    )
