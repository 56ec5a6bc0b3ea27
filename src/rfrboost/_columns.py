"""One column of a table as numbers, dates or levels, whatever the table is.

The kind of a column is that of its type, or, where the type says nothing (objects), that of its
cells. A categorical type makes levels of anything, whole numbers too; text is never taken for
numbers. None, NaN, NaT and NA are holes everywhere.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date
from decimal import Decimal
from functools import singledispatch
from numbers import Integral, Number, Real
from typing import Any

import numpy as np

from rfrboost._typing import Array

#: what a column may hold; one that holds nothing at all fits every kind
NUMBERS, DATES, LEVELS, NOTHING = "numbers", "dates", "levels", "nothing"

#: how the names of categorical types begin, in lower case: pandas, polars, Arrow
CATEGORICAL = ("category", "categorical", "enum", "dictionary")

#: kinds of NumPy's types; durations are numbers of seconds
ARRAY_KINDS = {**dict.fromkeys("biufm", NUMBERS), "M": DATES, "U": LEVELS}

#: kinds of cells; text among anything else makes levels, compared as text
CELL_KINDS = {
    LEVELS: (str,),
    NUMBERS: (Real, Decimal, np.bool_),
    DATES: (date, np.datetime64),
}
MISSING_TYPES = ("NoneType", "NAType", "NaTType")
MAY_BE_NAN = (float, np.floating, Decimal, np.datetime64)
WANTED = "every argument must be a string, a number, a date or missing"


@dataclass(frozen=True)
class Column:
    """The cells of a column, what kind they are, and how errors call it."""

    cells: np.ndarray
    kind: str
    label: str

    def numbers(self) -> Array:
        """Numbers; NaN for holes."""
        self._check(NUMBERS)
        if self.cells.dtype.kind == "m":
            return as_seconds(self.cells)
        if self.cells.dtype == object:
            return from_cells(self.cells, lambda cells: cells.astype(float))
        return self.cells.astype(float, copy=False)

    def seconds(self) -> Array:
        """Dates as seconds since 1970, in UTC; NaN for holes."""
        self._check(DATES)
        if self.cells.dtype.kind == "M":
            return as_seconds(self.cells)
        return from_cells(self.cells.astype(object), lambda cells: as_seconds(to_dates(cells)))

    def texts(self) -> list[str | None]:
        """Every cell as text; None for holes."""
        cells = self.cells.tolist()
        # Equal cells have equal texts, so that one of each is enough.
        known = {cell: None if is_missing(cell) else text(cell) for cell in set(cells)}
        return [known[cell] for cell in cells]

    def _check(self, kind: str) -> None:
        if self.kind not in (kind, NOTHING):
            raise ValueError(
                f"{self.label} held {kind} in fit and holds {self.kind} now: convert it first."
            )


def read_column(cells: Any, label: str) -> Column:
    """A column of a frame (anything with a ``dtype`` and ``to_numpy``) or of an array."""
    categorical = str(cells.dtype).lower().startswith(CATEGORICAL)
    if getattr(cells.dtype, "tz", None) is not None:
        # In UTC; pandas would give objects.
        values = np.asarray(cells, dtype="datetime64[us]")
    else:
        values = cells.to_numpy() if hasattr(cells, "to_numpy") else cells
    if values.dtype.kind == "M":
        # One unit for all, or equal dates would differ as text.
        values = values.astype("datetime64[us]", copy=False)
    kind = kind_of_cells(values, label) if values.dtype == object else kind_of(values, label)
    return Column(values, LEVELS if categorical and kind != NOTHING else kind, label)


def kind_of(values: np.ndarray, label: str) -> str:
    """The kind of an array that is not of objects."""
    kind = ARRAY_KINDS.get(values.dtype.kind)
    if kind is None:
        raise TypeError(f"{label} has type {values.dtype}; {WANTED}.")
    return kind


def kind_of_cells(cells: np.ndarray, label: str) -> str:
    """The kind that all cells agree on; where they do not, levels, compared as text."""
    kinds = set()
    for cell_type in set(map(type, cells[~missing(cells)])):
        kind = next((k for k, bases in CELL_KINDS.items() if issubclass(cell_type, bases)), None)
        if kind is None:
            raise TypeError(f"{label} holds a {cell_type.__name__}; {WANTED}.")
        kinds.add(kind)
    return next(iter(kinds), NOTHING) if len(kinds) < 2 else LEVELS


def missing(cells: np.ndarray) -> np.ndarray:
    """Which cells are holes."""
    return np.fromiter(map(is_missing, cells), bool, len(cells))


def is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, NaT or NA."""
    # NA cannot be compared, so that it is known by its type; the others differ from themselves.
    named = type(cell).__name__ in MISSING_TYPES
    return named or bool(isinstance(cell, MAY_BE_NAN) and cell != cell)


def from_cells(cells: np.ndarray, convert: Callable[[np.ndarray], Array]) -> Array:
    """The cells that are there, converted; NaN for holes."""
    present = ~missing(cells)
    values = np.full(len(cells), np.nan)
    values[present] = convert(cells[present])
    return values


def to_dates(cells: np.ndarray) -> np.ndarray:
    """Dates of any class; a time of day without a time zone is read as if it were UTC."""
    zones = [getattr(cell, "tzinfo", None) for cell in cells]
    naive = [
        cell if zone is None else cell.astimezone(UTC).replace(tzinfo=None)
        for cell, zone in zip(cells, zones, strict=True)
    ]
    return np.array(naive, dtype="datetime64[us]")


def as_seconds(times: np.ndarray) -> Array:
    """Dates or durations as a number of seconds; NaN for NaT."""
    ticks = times.astype(f"{times.dtype.kind}8[us]").astype(np.int64)
    return np.where(np.isnat(times), np.nan, ticks / 1e6)


@singledispatch
def text(cell: Any) -> str:
    """A cell as text. Equal cells have equal texts: holes turn whole numbers into floats."""
    return str(cell)


@text.register(Number)
def _(cell: Any) -> str:
    number = float(cell)
    return str(int(number)) if number.is_integer() else repr(number)


@text.register(Integral)
@text.register(np.bool_)
def _(cell: Any) -> str:
    return str(int(cell))
