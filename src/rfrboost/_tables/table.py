"""One column of a table as numbers, dates or levels, whatever the table is.

The kind of a column is that of its type, or, where the type says nothing (objects), that of its
cells. A categorical type makes levels of anything, whole numbers too; text is never taken for
numbers. None, NaN, NaT and NA are holes everywhere.

A table, whatever it came in: data frame, array of numbers or objects, sparse matrix, lists.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from decimal import Decimal
from functools import singledispatch
from numbers import Integral, Number, Real
from typing import Any

import numpy as np
from scipy import sparse

from rfrboost._numerics.sizes import BATCH_ROWS, LARGEST_INPUT
from rfrboost._typing import Array, Indices

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


# A sparse matrix that takes more than this when it is written out (2 GiB) is refused.
LARGEST_DENSE = 2**31


@dataclass(frozen=True)
class Table:
    """Columns by number, read when they are asked for.

    ``names`` are those of a data frame whose column names are all text, as scikit-learn has it;
    ``array`` is the whole table where it is an array of numbers, which then needs no reading.
    """

    shape: tuple[int, int]
    cells: Callable[[int], Any]
    names: tuple[str, ...] | None = None
    array: Array | None = None

    def label(self, j: int) -> str:
        """What errors call a column."""
        return f"Column {j if self.names is None else repr(self.names[j])}"

    def column(self, j: int) -> Column:
        """One column."""
        return read_column(self.cells(j), self.label(j))

    def number(self, j: int) -> Array:
        """One column of numbers, NaN for holes; infinities are refused."""
        x = self.column(j).numbers()
        self._check(x[:, None], [j])
        return x

    def numbers(self, columns: Sequence[int], out: Array) -> None:
        """Several columns of numbers, written to ``out``."""
        if self.array is None:
            for k, j in enumerate(columns):
                out[:, k] = self.column(j).numbers()
        else:
            for begin in range(0, len(out), BATCH_ROWS):
                rows = slice(begin, begin + BATCH_ROWS)
                out[rows] = self.array[rows][:, columns]
        self._check(out, columns)

    def _check(self, x: Array, columns: Sequence[int]) -> None:
        high = np.fmax.reduce(x, axis=0, initial=0.0)
        low = np.fmin.reduce(x, axis=0, initial=0.0)
        largest = np.maximum(high, -low)
        for k in np.flatnonzero(largest > LARGEST_INPUT)[:1]:
            raise ValueError(too_large(self.label(columns[k]), largest[k]))

    def rows(self, chosen: Indices) -> "Table":
        """The table of some of the rows."""
        if self.array is not None:
            return from_array(self.array[chosen])

        def cells(j: int) -> Any:
            column = self.cells(j)
            return column.iloc[chosen] if hasattr(column, "iloc") else column[chosen]

        return Table((len(chosen), self.shape[1]), cells, self.names)


def too_large(label: str, value: float) -> str:
    """What is wrong with a value that is infinite or nearly so."""
    if np.isinf(value):
        return f"{label} of X holds infinity; make it missing (NaN) or a number."
    return (
        f"{label} of X holds values as large as {value:.3g}; beyond {LARGEST_INPUT:g} "
        "sums over rows overflow. Rescale it, for example by a logarithm."
    )


def read_table(X: Any) -> Table:
    """The table that a user passed in."""
    if sparse.issparse(X):
        return from_sparse(X)
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        return from_frame(X)
    # Lists as objects: in an array of one type, numbers beside text would become text.
    return from_array(np.asarray(X) if hasattr(X, "__array__") else np.asarray(X, dtype=object))


def from_frame(X: Any) -> Table:
    """A data frame: anything with ``columns``, which it gives by name."""
    names = list(X.columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has several columns named {twice!r}; names must differ.")
    texts = tuple(map(str, names)) if all(isinstance(name, str) for name in names) else None
    return Table((len(X), len(names)), lambda j: X[names[j]], texts)


def from_array(X: np.ndarray) -> Table:
    """An array with two axes, of numbers or of objects."""
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead. Reshape your data either using "
            "array.reshape(-1, 1) if it has one column or array.reshape(1, -1) if it has one row."
        )
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: pass real and imaginary parts as columns.")
    plain = X if X.dtype.kind in "biuf" else None
    return Table((X.shape[0], X.shape[1]), lambda j: X[:, j], None, plain)


def from_sparse(X: Any) -> Table:
    """A sparse matrix, written out, if it is not too large for that."""
    size = 8 * X.shape[0] * X.shape[1]
    if size > LARGEST_DENSE:
        raise ValueError(
            f"X is sparse and would take {size / 2**30:.1f} GiB written out, more than the "
            f"{LARGEST_DENSE / 2**30:g} GiB allowed: reduce its columns first, for example with "
            "sklearn.decomposition.TruncatedSVD."
        )
    return from_array(X.toarray())
