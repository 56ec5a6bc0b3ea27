"""The kinds of columns: each turns columns of a table into columns of plain numbers.

What they write may hold NaN for holes; filling and scaling come after, for all kinds alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rfrboost._table import Table
from rfrboost._typing import Array, Indices

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
