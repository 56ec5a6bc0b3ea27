"""Reading tables: data frames, arrays, sparse matrices and lists become columns of four kinds.

A column holds *numbers*, *dates*, *levels* (text or categories) or *nothing* (missing values only).
Its kind follows from its type or, where the type says nothing (objects), from its cells. A
categorical type always means levels, even of whole numbers. Text means levels unless a fit has
found how numbers or dates are spelled in it (:mod:`rfrboost._tables.spellings`). None, NaN, NaT and
NA are missing values everywhere.

:func:`read_table` accepts whatever a user passes as X and gives a :class:`Table`, whose columns are
read when they are first used. What is learned from the columns is in :mod:`rfrboost._tables.fit`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date
from decimal import Decimal, InvalidOperation
from functools import singledispatch
from numbers import Integral, Number, Real
from typing import Any

import numpy as np
from scipy import sparse

from rfrboost._numerics.sizes import BATCH_ROWS, LARGEST_INPUT
from rfrboost._tables.spellings import SpelledColumn, Spelling
from rfrboost._typing import Array, Indices

#: the kinds of columns; a column without any value fits every kind
NUMBERS, DATES, LEVELS, NOTHING = "numbers", "dates", "levels", "nothing"

#: the kinds in error messages
KIND_WORDS = {
    NUMBERS: "numbers",
    DATES: "dates",
    LEVELS: "text or categories",
}

#: what a user can do about a column that had another kind in fit
CONVERSIONS = {
    NUMBERS: "convert it first, for example with pandas.to_numeric",
    DATES: "convert it first, for example with pandas.to_datetime",
}

#: how the names of categorical types begin, in lower case: pandas, polars, Arrow
CATEGORICAL = ("category", "categorical", "enum", "dictionary")

#: the kinds of NumPy's types, by their letter; durations ("m") are numbers of seconds
ARRAY_KINDS = {**dict.fromkeys("biufm", NUMBERS), "M": DATES, "U": LEVELS}

#: the kinds of Python's types; text beside other types makes levels, compared as text
CELL_KINDS = {
    LEVELS: (str,),
    NUMBERS: (Real, Decimal, np.bool_),
    DATES: (date, np.datetime64),
}

#: the kinds of types that cannot be imported without pandas, by name; a period is its first moment
NAMED_KINDS = {"Interval": LEVELS, "Period": DATES}

# Names of the types of missing values, which cannot be imported without pandas.
MISSING_TYPES = ("NoneType", "NAType", "NaTType")

# Types that have a NaN or NaT, which stands for a missing value and is not equal to itself.
MAY_BE_NAN = (float, np.floating, np.datetime64)

# scikit-learn's checks of estimators look for "argument must be a string" in such errors.
WANTED = "every argument must be a string, a number, a date or missing"

#: whole numbers of polars that NumPy cannot hold, in lower case
WIDE_INTEGERS = ("int128", "uint128")

#: what Python raises for numbers that no float can hold
UNREADABLE = (OverflowError, InvalidOperation)

#: NumPy's units of time that are longer than a microsecond
COARSE_UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms")

# Bytes (256 MiB) up to which a sparse matrix is converted to an ordinary array. Columns of larger
# ones are read one by one.
LARGEST_DENSE = 2**28


# One column


@dataclass(frozen=True)
class Column:
    """The cells of a column (n,), their kind, and the column's name in error messages."""

    cells: np.ndarray
    kind: str
    label: str
    #: whether the column's type says that it holds categories
    declared: bool = False

    def numbers(self) -> Array:
        """The column as numbers (n,); NaN for missing values."""
        self._check(NUMBERS)
        if self.cells.dtype.kind == "m":
            return as_seconds(self.cells, self.label)
        if self.cells.dtype == object:
            try:
                return from_cells(self.cells, lambda cells: cells.astype(float))
            except OverflowError as error:
                raise ValueError(
                    f"{self.label} of X holds a whole number beyond 1.8e308, which no float can "
                    "hold. Rescale it, for example by a logarithm."
                ) from error
        return self.cells.astype(float, copy=False)

    def seconds(self) -> Array:
        """Dates as seconds since 1970 in UTC (n,); NaN for missing values."""
        self._check(DATES)
        if self.cells.dtype.kind == "M":
            return as_seconds(self.cells, self.label)
        return from_cells(self.cells.astype(object), self._object_seconds)

    def _object_seconds(self, cells: np.ndarray) -> Array:
        """Dates as objects, none of them missing, as seconds since 1970."""
        for cell in cells:
            if type(cell) is np.datetime64:
                in_microseconds(np.array([cell]), self.label)
        try:
            return as_seconds(to_dates(cells), self.label)
        except OverflowError as error:
            raise ValueError(out_of_range(self.label)) from error

    def texts(self) -> list[str | None]:
        """Every cell as text; None for missing values."""
        cells = self.cells.tolist()
        # Equal cells have equal texts, so each distinct cell is converted once.
        try:
            distinct = set(cells)
        except TypeError:
            # Decimal's signaling NaN cannot be put into a set.
            cells = [None if is_missing(cell) else cell for cell in cells]
            distinct = set(cells)
        known = {cell: None if is_missing(cell) else text(cell) for cell in distinct}
        return [known[cell] for cell in cells]

    def spelled(self, spelling: Spelling) -> "Column":
        """A column of text as the numbers or dates that are written in it."""
        try:
            numbers = spelling.numbers(self.texts())
        except ValueError as error:
            raise ValueError(
                f"{self.label} held {spelling.what} written as text in fit, and holds "
                f"{str(error)!r} now: write it in the same way, or leave it out."
            ) from error
        if spelling.what != DATES:
            return Column(numbers, NUMBERS, self.label)
        known = ~np.isnan(numbers)
        dates = np.full(len(numbers), np.datetime64("NaT", "us"))
        dates[known] = np.round(numbers[known] * 1e6).astype(np.int64).astype("datetime64[us]")
        return Column(dates, DATES, self.label)

    def _check(self, kind: str) -> None:
        """Refuse a column of another kind than the one in fit."""
        if self.kind not in (kind, NOTHING):
            raise ValueError(
                f"{self.label} held {KIND_WORDS[kind]} in fit and holds {KIND_WORDS[self.kind]} "
                f"now: {CONVERSIONS[kind]}."
            )


def unreadable(name: str) -> ValueError:
    """The error about numbers that no float can hold."""
    return ValueError(
        f"{name} holds a number that no float can hold, such as a whole number beyond 1.8e308 "
        "or Decimal('sNaN'): rescale it, or replace it by NaN if it is missing."
    )


def read_column(cells: Any, label: str) -> Column:
    """A column of a data frame (anything with a ``dtype`` and ``to_numpy``) or of an array."""
    # The name of a type of NumPy is not needed, and takes longer than all else.
    name = "" if isinstance(cells.dtype, np.dtype) else str(cells.dtype).lower()
    categorical = name.startswith(CATEGORICAL)
    if getattr(cells.dtype, "tz", None) is not None:
        # Dates with a time zone are converted to UTC; pandas' to_numpy would give objects.
        values = np.asarray(cells, dtype="datetime64[us]")
    elif name in WIDE_INTEGERS:
        # NumPy has no type of 128 bits, so the cells are Python's whole numbers.
        values = np.array(cells.to_list(), dtype=object)
    else:
        values = cells.to_numpy() if hasattr(cells, "to_numpy") else cells
    if values.dtype.kind == "M":
        # All dates in one unit: in different units equal dates would differ as text.
        values = in_microseconds(values, label)
    kind = kind_of_cells(values, label) if values.dtype == object else kind_of(values, label)
    categorical = categorical and kind != NOTHING
    return Column(values, LEVELS if categorical else kind, label, categorical)


def kind_of(values: np.ndarray, label: str) -> str:
    """The kind of an array that is not of objects."""
    kind = ARRAY_KINDS.get(values.dtype.kind)
    if kind is None:
        raise TypeError(f"{label} has type {values.dtype}; {WANTED}.")
    # A column whose values are all missing here may be of another kind in the rest of the table.
    empty = values.dtype.kind == "f" and np.isnan(values[:1]).all() and np.isnan(values).all()
    return NOTHING if empty else kind


def kind_of_cells(cells: np.ndarray, label: str) -> str:
    """The kind that all cells have in common; levels if they differ, compared as text."""
    kinds = set()
    for cell_type in set(map(type, cells)):
        if holds_nothing(cells, cell_type):
            continue
        kind = next((k for k, bases in CELL_KINDS.items() if issubclass(cell_type, bases)), None)
        kind = kind or NAMED_KINDS.get(cell_type.__name__)
        if kind is None:
            raise TypeError(f"{label} holds a {cell_type.__name__}; {WANTED}.")
        kinds.add(kind)
    return next(iter(kinds), NOTHING) if len(kinds) < 2 else LEVELS


def holds_nothing(cells: np.ndarray, cell_type: type) -> bool:
    """Whether all cells of this type are missing values.

    For most types that is known from the type, so that not every cell has to be looked at.
    """
    if not issubclass(cell_type, (*MAY_BE_NAN, Decimal)):
        return cell_type.__name__ in MISSING_TYPES
    return all(is_missing(cell) for cell in cells if type(cell) is cell_type)


def missing(cells: np.ndarray) -> np.ndarray:
    """Which cells are missing values, as booleans (n,)."""
    return np.fromiter(map(is_missing, cells), bool, len(cells))


def is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, NaT or NA."""
    # NA cannot be compared and is known by the name of its type; the others differ from themselves.
    if isinstance(cell, Decimal):
        # Decimal's signaling NaN cannot be compared either.
        return cell.is_nan()
    named = type(cell).__name__ in MISSING_TYPES
    return named or bool(isinstance(cell, MAY_BE_NAN) and cell != cell)


def from_cells(cells: np.ndarray, convert: Callable[[np.ndarray], Array]) -> Array:
    """The cells that are not missing, converted; NaN for the others."""
    present = ~missing(cells)
    values = np.full(len(cells), np.nan)
    values[present] = convert(cells[present])
    return values


def to_dates(cells: np.ndarray) -> np.ndarray:
    """Dates of any class as NumPy's; a time of day without a time zone is taken to be UTC."""
    cells = np.array([getattr(cell, "start_time", cell) for cell in cells], dtype=object)
    zones = [getattr(cell, "tzinfo", None) for cell in cells]
    naive = [
        cell if zone is None else cell.astimezone(UTC).replace(tzinfo=None)
        for cell, zone in zip(cells, zones, strict=True)
    ]
    return np.array(naive, dtype="datetime64[us]")


def as_seconds(times: np.ndarray, label: str) -> Array:
    """Dates or durations as a number of seconds; NaN for NaT."""
    ticks = in_microseconds(times, label).astype(np.int64)
    return np.where(np.isnat(times), np.nan, ticks / 1e6)


def in_microseconds(times: np.ndarray, label: str) -> np.ndarray:
    """Dates or durations in microseconds; refuses those that NumPy would wrap around."""
    ticks = times.astype(f"{times.dtype.kind}8[us]", copy=False)
    if np.datetime_data(times.dtype)[0] in COARSE_UNITS:
        wrapped = ~np.isnat(times) & (ticks.astype(times.dtype) != times)
        if wrapped.any():
            raise ValueError(out_of_range(label))
    return ticks


def out_of_range(label: str) -> str:
    """The error message about dates and durations that have no number of microseconds."""
    return (
        f"{label} of X holds a date or duration that is too far away to be counted in microseconds "
        "(292,000 years, or the years 1 to 9999 in UTC for objects of datetime). Pass it as a "
        "number, for example of years."
    )


@singledispatch
def text(cell: Any) -> str:
    """A cell as text. Equal cells have equal texts: 1 and 1.0 are both "1".

    pandas turns whole numbers into floats as soon as a value is missing; the levels must not change
    by that.
    """
    return str(cell)


@text.register(Number)
def _(cell: Any) -> str:
    number = float(cell)
    return str(int(number)) if number.is_integer() else repr(number)


@text.register(Integral)
@text.register(np.bool_)
def _(cell: Any) -> str:
    return str(int(cell))


# The whole table


@dataclass(frozen=True)
class Table:
    """Columns by index, read when they are first used.

    ``shape`` is (rows, columns) and ``cells(j)`` gives the cells of column j. ``names`` are those
    of a data frame whose column names are all text, as in scikit-learn, else None. ``array`` is the
    whole table if it is an array of numbers, which is then copied without reading columns.
    ``usable`` are the columns that a model may use, None for all. ``known`` are columns of text
    that have been read as numbers or dates, by their index.
    """

    shape: tuple[int, int]
    cells: Callable[[int], Any]
    names: tuple[str, ...] | None = None
    array: Array | None = None
    usable: tuple[int, ...] | None = None
    known: Mapping[int, Column] = field(default_factory=dict)

    def label(self, j: int) -> str:
        """The name of a column in error messages."""
        return f"Column {j if self.names is None else repr(self.names[j])}"

    def column(self, j: int) -> Column:
        """One column, of any kind."""
        return self.known[j] if j in self.known else read_column(self.cells(j), self.label(j))

    def spelled(self, columns: Sequence[SpelledColumn]) -> "Table":
        """The table with some columns of text read as what is written in them."""
        read = {s.column: (self.column(s.column), s.spelling) for s in columns}
        text = {j: column.spelled(s) for j, (column, s) in read.items() if column.kind == LEVELS}
        return replace(self, known={**self.known, **text}) if text else self

    def number(self, j: int) -> Array:
        """One column of numbers (n,), NaN for missing values; infinite values are refused."""
        x = self.column(j).numbers()
        self._check(x[:, None], [j])
        return x

    def numbers(self, columns: Sequence[int], out: Array) -> None:
        """Write several columns of numbers to ``out`` (n, columns)."""
        if self.array is None:
            for k, j in enumerate(columns):
                out[:, k] = self.column(j).numbers()
        else:
            for begin in range(0, len(out), BATCH_ROWS):
                rows = slice(begin, begin + BATCH_ROWS)
                out[rows] = self.array[rows][:, columns]
        self._check(out, columns)

    def seconds(self, j: int) -> Array:
        """One column of dates as seconds since 1970 (n,), NaN for missing values."""
        return self.column(j).seconds()

    def texts(self, j: int) -> list[str | None]:
        """One column as text, None for missing values."""
        return self.column(j).texts()

    def _check(self, x: Array, columns: Sequence[int]) -> None:
        """Refuse infinite values, and finite ones whose sums would be infinite."""
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

        return Table((len(chosen), self.shape[1]), cells, self.names, usable=self.usable)


def too_large(label: str, value: float) -> str:
    """The error message about a value that is infinite or too large to sum."""
    if np.isinf(value):
        return f"{label} of X holds infinity: replace it by a number, or by NaN if it is missing."
    return (
        f"{label} of X holds values as large as {value:.3g}; beyond {LARGEST_INPUT:g} "
        "sums over rows overflow. Rescale it, for example by a logarithm."
    )


def read_table(X: Any) -> Table:
    """The table that a user passed as X."""
    if sparse.issparse(X):
        return from_sparse(X)
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        return from_frame(X)
    # Lists become arrays of objects: in an array of one type, numbers beside text would be text.
    return from_array(np.asarray(X) if hasattr(X, "__array__") else np.asarray(X, dtype=object))


def without_arrow(X: Any) -> Any:
    """A table of Arrow as a data frame of pandas; anything else as it is."""
    return X.to_pandas() if hasattr(X, "column_names") and hasattr(X, "to_pandas") else X


def by_name(X: Any, names: Iterable[str] | None) -> Any:
    """The named columns of a data frame in the order of the names, whatever others it has.

    What has no names, and a frame that lacks one of them, is returned as it is.
    """
    if names is None or not hasattr(X, "columns") or sparse.issparse(X):
        return X
    present, wanted = list(X.columns), list(names)
    if present == wanted or not (chosen := set(wanted)) <= set(present):
        return X
    refuse_twice([name for name in present if name in chosen])
    return X[wanted]


def lacking_and_extra(wanted: Iterable[str], present: Iterable[str]) -> tuple[list[str], list[str]]:
    """The names that are wanted but not present, and those that are present but not wanted."""
    wanted, present = dict.fromkeys(wanted), dict.fromkeys(present)
    lacking = [name for name in wanted if name not in present]
    return lacking, [name for name in present if name not in wanted]


def refuse_twice(names: list[Any]) -> None:
    """Refuse columns of which several have the same name."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(
            f"X has several columns named {twice!r}: rename them, because columns are told apart "
            "by name."
        )


def from_frame(X: Any) -> Table:
    """The table of a data frame: anything that gives each of its ``columns`` by name."""
    names = list(X.columns)
    refuse_twice(names)
    texts = tuple(map(str, names)) if all(isinstance(name, str) for name in names) else None
    return Table((len(X), len(names)), lambda j: X[names[j]], texts)


def from_array(X: np.ndarray) -> Table:
    """The table of an array with two axes, of numbers or of objects."""
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead. Reshape your data either using "
            "array.reshape(-1, 1) if it has one column or array.reshape(1, -1) if it has one row."
        )
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: pass real and imaginary parts as columns.")
    plain = X if X.dtype.kind in "biuf" else None
    return Table((X.shape[0], X.shape[1]), lambda j: X[:, j], None, plain)


def from_sparse(X: Any, largest_bytes: int = LARGEST_DENSE) -> Table:
    """The table of a sparse matrix, converted to an ordinary array if it is not too large."""
    if 8 * X.shape[0] * X.shape[1] <= largest_bytes:
        return from_array(X.toarray())
    columns = X.tocsc()
    return Table(X.shape, lambda j: columns[:, [j]].toarray()[:, 0])
