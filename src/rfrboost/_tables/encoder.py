"""Centring and scaling that survives heavy tails.

The bulk of a column, between two quantiles and a margin beyond, is standardised and nothing else;
only what lies further out is drawn in, smoothly and in order, so that a few wild values neither
set the scale of all others nor end up far away from them.

The kinds of columns: each turns columns of a table into columns of plain numbers.

What they write may hold NaN for holes; filling and scaling come after, for all kinds alike.

From a table to the array of numbers that the mathematics works on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.sizes import BATCH_ROWS
from rfrboost._tables.table import Table, read_table
from rfrboost._typing import Array, Indices

# How far beyond them values are left as they are; further out they go on as a logarithm, whose
# slope has fallen to a half after another REACH.
MARGIN, REACH = 0.5, 0.5


# Keeps quotients of finite numbers finite.
LARGEST_QUOTIENT = 1e300


def squash(t: Array) -> Array:
    """The identity on [−MARGIN, 1 + MARGIN], a logarithm beyond; smooth and increasing."""
    inside = within_margin(t)
    beyond = np.clip(t - inside, -LARGEST_QUOTIENT, LARGEST_QUOTIENT)
    return inside + np.copysign(REACH * np.log1p(np.abs(beyond) / REACH), beyond)


def within_margin(t: Array) -> Array:
    """What is not squashed; mean and spread are taken of this, so that wild values count little."""
    return np.clip(t, -MARGIN, 1 + MARGIN)


class Scale(NamedTuple):
    """One column: gain · (squash((x − start) / width) − mean), holes filled beforehand."""

    fill: float
    start: float
    width: float
    mean: float
    gain: float


@dataclass(frozen=True)
class Scaling:
    """A :class:`Scale` for every column, as arrays."""

    fill: Array
    start: Array
    width: Array
    mean: Array
    gain: Array

    def __call__(self, x: Array) -> None:
        """Scale x (n, D) in place."""
        for begin in range(0, len(x), BATCH_ROWS):
            block = x[begin : begin + BATCH_ROWS]
            np.copyto(block, self.fill, where=np.isnan(block))
            with np.errstate(over="ignore"):
                t = (block - self.start) / self.width
            block[:] = (squash(t) - self.mean) * self.gain

    def slopes(self, x: Array) -> Array:
        """The derivative of every number that comes out in the one that went in; 0 for holes."""
        with np.errstate(over="ignore", invalid="ignore"):
            t = (x - self.start) / self.width
            beyond = np.abs(t - within_margin(t))
            slopes = self.gain / self.width / (1 + beyond / REACH)
        return np.where(np.isnan(x), 0.0, slopes)


def stack(scales: list[Scale]) -> Scaling:
    """One scaling of all columns."""
    table = np.array(scales, dtype=float).reshape(-1, len(Scale._fields))
    return Scaling(*(frozen(column) for column in table.T))


#: the cycles of a date in seconds; the mean year, which goes with the calendar to a day or two
CYCLES = {"year": 365.2425 * 86400, "week": 7 * 86400.0, "day": 86400.0}


# 1970, where seconds are counted from, began on a Thursday.
MONDAY = 4 * 86400


#: what can be made of a date
DATE_PARTS = ("time", *(f"{cycle} {wave}" for cycle in CYCLES for wave in ("sin", "cos")))


class ColumnEncoder(Protocol):
    """Writes ``width`` columns of numbers, each made of one column of the table."""

    @property
    def sources(self) -> tuple[int, ...]:
        """The column of the table that every written column is made of."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What tells the columns made of one column apart."""

    def __call__(self, table: Table, out: Array) -> None:
        """Write to ``out`` (n, width)."""


@dataclass(frozen=True)
class NumberColumns:
    """Columns of numbers as they are, then, for those in ``holes``, whether a number is missing."""

    columns: tuple[int, ...]
    holes: tuple[int, ...]

    @property
    def sources(self) -> tuple[int, ...]:
        return self.columns + self.holes

    @property
    def suffixes(self) -> tuple[str, ...]:
        return ("",) * len(self.columns) + (" missing",) * len(self.holes)

    def __call__(self, table: Table, out: Array) -> None:
        written = len(self.columns)
        table.numbers(self.columns, out[:, :written])
        place = {j: k for k, j in enumerate(self.columns)}
        for k, j in enumerate(self.holes, start=written):
            column = out[:, place[j]] if j in place else table.number(j)
            out[:, k] = np.isnan(column)


@dataclass(frozen=True)
class DateColumn:
    """One column of dates: the time that has passed, and where in the year, week and day it is.

    ``parts`` are those of :data:`DATE_PARTS` that vary; ``holes`` adds whether it is missing.
    """

    column: int
    parts: tuple[str, ...]
    holes: bool

    @property
    def sources(self) -> tuple[int, ...]:
        return (self.column,) * (len(self.parts) + self.holes)

    @property
    def suffixes(self) -> tuple[str, ...]:
        return tuple(f" {part}" for part in self.parts) + (" missing",) * self.holes

    def __call__(self, table: Table, out: Array) -> None:
        seconds = table.column(self.column).seconds()
        for k, part in enumerate(self.parts):
            out[:, k] = date_part(seconds, part)
        if self.holes:
            out[:, -1] = np.isnan(seconds)


def date_part(seconds: Array, part: str) -> Array:
    """One of :data:`DATE_PARTS`."""
    if part == "time":
        return seconds
    cycle, wave = part.split()
    phase = 2 * np.pi * (np.mod(seconds - MONDAY, CYCLES[cycle]) / CYCLES[cycle])
    return np.sin(phase) if wave == "sin" else np.cos(phase)


@dataclass(frozen=True)
class LevelColumn:
    """One column of categories: every level stands for a row of ``values``.

    The last row is for all other levels: those that were rare in training, those never seen, and
    holes, unless None is among ``levels``. Indicator columns and target encodings differ only in
    what the rows hold.
    """

    column: int
    levels: tuple[str | None, ...]
    values: Array
    suffixes: tuple[str, ...]

    @property
    def sources(self) -> tuple[int, ...]:
        return (self.column,) * self.values.shape[1]

    def __call__(self, table: Table, out: Array) -> None:
        out[:] = self.values[level_codes(self.levels, table.column(self.column).texts())]


def level_codes(levels: Sequence[str | None], texts: list[str | None]) -> Indices:
    """The place of each text among the levels, or their number for all others."""
    places = {level: i for i, level in enumerate(levels)}
    return np.fromiter((places.get(text, len(places)) for text in texts), np.intp, len(texts))


@dataclass(frozen=True)
class Encoder:
    """What was learned about the columns of a training table.

    ``names`` are the names of the table's columns, or None if it had none, ``n_columns`` how many
    there are, ``columns`` the encoders of columns, side by side, and ``scaling`` what is done to
    all that they write.
    """

    names: tuple[str, ...] | None
    n_columns: int
    columns: tuple[ColumnEncoder, ...]
    scaling: Scaling

    @property
    def width(self) -> int:
        """The number of columns that come out."""
        return len(self.scaling.fill)

    @property
    def sources(self) -> tuple[int, ...]:
        """For every column that comes out, the number of the column that it is made of."""
        return tuple(j for encoder in self.columns for j in encoder.sources)

    @property
    def names_out(self) -> tuple[str, ...]:
        """Names of the columns that come out; without names to begin with they start with x0."""
        names = self.names or tuple(f"x{j}" for j in range(self.n_columns))
        return tuple(
            f"{names[j]}{suffix}"
            for encoder in self.columns
            for j, suffix in zip(encoder.sources, encoder.suffixes, strict=True)
        )

    def __call__(self, X: Any) -> Array:
        """The array (n, width) of a table with the same columns in the same order."""
        table = read_table(X)
        self._check(table)
        return self.encode(table)

    def encode(self, table: Table) -> Array:
        """The array of a table that is known to have the right columns."""
        out = np.empty((table.shape[0], self.width))
        begin = 0
        for encoder in self.columns:
            end = begin + len(encoder.sources)
            encoder(table, out[:, begin:end])
            begin = end
        self.scaling(out)
        return out

    def pull(self, X: Any, gradient: Array) -> Array:
        """Derivatives (n, width, d) in what comes out, as derivatives in the table's numbers.

        Categories have no derivatives and dates none to speak of: theirs are 0.
        """
        table = read_table(X)
        numbers = self._number_columns()
        raw = np.full((table.shape[0], self.width), np.nan)
        for k, j in numbers.items():
            raw[:, k] = table.number(j)
        slopes = self.scaling.slopes(raw)
        total = np.zeros((len(raw), self.n_columns, gradient.shape[2]))
        for k, j in numbers.items():
            total[:, j] += slopes[:, k, None] * gradient[:, k]
        return total

    def _number_columns(self) -> dict[int, int]:
        """The columns that come out and are numbers of the table, with the columns they are."""
        places = enumerate(
            (j, suffix)
            for encoder in self.columns
            for j, suffix in zip(encoder.sources, encoder.suffixes, strict=True)
        )
        return {k: j for k, (j, suffix) in places if suffix == ""}

    def _check(self, table: Table) -> None:
        """Refuse other columns than those of the training table, by name where there are names."""
        if self.names is None or table.names is None:
            if table.shape[1] != self.n_columns:
                raise ValueError(
                    f"X has {table.shape[1]} columns, but the model was fitted on {self.n_columns}."
                )
            return
        if table.names == self.names:
            return
        lacking = [name for name in self.names if name not in set(table.names)]
        extra = [name for name in table.names if name not in set(self.names)]
        if lacking or extra:
            raise ValueError(
                f"The columns of X are not those of fit: {differences(lacking, extra)}."
            )
        raise ValueError(
            "The columns of X are those of fit in another order: pass X[model.feature_names_in_]."
        )


def differences(lacking: list[str], extra: list[str]) -> str:
    """Which columns are lacking and which are new, in words."""
    parts = [(lacking, "is missing", "are missing"), (extra, "is new", "are new")]
    return ", ".join(
        f"{', '.join(map(repr, names[:5]))}{' and more' if len(names) > 5 else ''} "
        f"{one if len(names) == 1 else several}"
        for names, one, several in parts
        if names
    )
