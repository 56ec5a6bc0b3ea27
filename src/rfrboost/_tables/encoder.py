"""The fitted encoder: what turns a table into the array of numbers that a model computes with.

An :class:`Encoder` applies what :mod:`rfrboost._tables.fit` has learned from the training table, in
three steps: the number and names of the table's columns are checked; column encoders (numbers,
dates, levels) write columns of numbers, NaN where missing; a :class:`Scaling` fills the NaN and
brings every column to a common size. Applied to the training table it does not give the array that
the model was fitted on where columns are target-encoded
(see :func:`~rfrboost._tables.fit.fit_encoder`).

*Scaling.* The bulk of a column, between two quantiles and a margin beyond, is centred and divided
by a constant. Values further out are compressed logarithmically, in order, so that a few outliers
neither set the scale of all other values nor end up far away from them. A number outside the range
of the training rows is moved to the nearest end of that range, so that a model predicts there what
it predicts at the end.

Everything here is immutable. Model files store the names of these fields, so they cannot be
changed; ``holes`` means missing values.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple, Protocol
from zlib import crc32

import numpy as np

from rfrboost._numerics.sizes import BATCH_ROWS
from rfrboost._numerics.threads import side_by_side
from rfrboost._tables.report import ColumnReport, UnseenValuesWarning
from rfrboost._tables.spellings import SpelledColumn
from rfrboost._tables.table import Table, by_name, lacking_and_extra, read_table
from rfrboost._typing import Array, Indices, Mask

# In units of the bulk's width. Values are scaled linearly up to MARGIN beyond the bulk, which
# includes 99.9 % of a normal distribution; further out they follow a logarithm, whose slope has
# fallen to one half after another REACH.
MARGIN = 0.5
REACH = 0.5

# Replaces an overflowed quotient, so that its logarithm is finite.
LARGEST_QUOTIENT = 1e300

# A number this far beyond those of training, as a share of their range, is reported.
FAR = 0.5

#: the cycles of a date, in seconds; a year is the mean year, so that phases differ from the
#: calendar's by up to two days
CYCLES = {"year": 365.2425 * 86400, "week": 7 * 86400.0, "day": 86400.0}

# The first Monday in 1970, in seconds: 1970, from which seconds are counted, began on a Thursday.
# All cycles start here, so that the year starts on 5 January.
MONDAY = 4 * 86400

#: the numbers that a date can be turned into
DATE_PARTS = ("time", *(f"{cycle} {wave}" for cycle in CYCLES for wave in ("sin", "cos")))


# Scaling


def squash(t: Array) -> Array:
    """t on [−MARGIN, 1 + MARGIN], a logarithm of t beyond; increasing, with a continuous slope."""
    inside = within_margin(t)
    beyond = np.clip(t - inside, -LARGEST_QUOTIENT, LARGEST_QUOTIENT)
    return inside + np.copysign(REACH * np.log1p(np.abs(beyond) / REACH), beyond)


def within_margin(t: Array) -> Array:
    """t clipped to [−MARGIN, 1 + MARGIN], where :func:`squash` leaves it unchanged.

    A column's mean and spread are taken of this, so that outliers count little in them.
    """
    return np.clip(t, -MARGIN, 1 + MARGIN)


class Scale(NamedTuple):
    """One column: gain · (squash((x − start) / width) − mean), missing values set to ``fill``.

    Before that x is clipped to [low, high], the range of the training rows.
    """

    fill: float
    start: float
    width: float
    mean: float
    gain: float
    low: float
    high: float


@dataclass(frozen=True)
class Scaling:
    """The :class:`Scale` of every column, as arrays (D,).

    ``low`` and ``high`` are None in models of older versions, which clip nothing.
    """

    fill: Array
    start: Array
    width: Array
    mean: Array
    gain: Array
    low: Array | None = None
    high: Array | None = None

    def __call__(self, x: Array) -> None:
        """Fill and scale x (n, D) in place."""

        def scale(begin: int) -> None:
            batch = x[begin : begin + BATCH_ROWS]
            np.copyto(batch, self.fill, where=np.isnan(batch))
            if self.low is not None:
                np.clip(batch, self.low, self.high, out=batch)
            with np.errstate(over="ignore"):
                t = (batch - self.start) / self.width
            batch[:] = (squash(t) - self.mean) * self.gain

        if len(x) <= BATCH_ROWS:
            scale(0)
        else:
            side_by_side(scale, list(range(0, len(x), BATCH_ROWS)))

    def slopes(self, x: Array) -> Array:
        """d scaled / d x, elementwise (n, D); 0 where x is missing or clipped."""
        with np.errstate(over="ignore", invalid="ignore"):
            t = (x - self.start) / self.width
            beyond = np.abs(t - within_margin(t))
            slopes = self.gain / self.width / (1 + beyond / REACH)
        flat = np.isnan(x)
        if self.low is not None and self.high is not None:
            flat |= (x < self.low) | (x > self.high)
        return np.where(flat, 0.0, slopes)


# Column encoders


class ColumnEncoder(Protocol):
    """Writes some columns of numbers, each made of one column of the table."""

    @property
    def sources(self) -> tuple[int, ...]:
        """For every written column, the index of the table's column that it is made of."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """For every written column, what is appended to the name of its source."""

    def __call__(self, table: Table, out: Array) -> Mask | None:
        """Write to ``out`` (n, len(sources)); NaN where a number is missing.

        Returns a mask (n,) of the rows that hold something that no training row had, or None if
        that cannot be told.
        """


@dataclass(frozen=True)
class NumberColumns:
    """The ``columns`` of numbers unchanged, then an indicator of missing values for those in
    ``holes``.

    Both are indices of the table's columns. Of columns with missing values in the same rows, one
    only is in ``holes``.
    """

    columns: tuple[int, ...]
    holes: tuple[int, ...]

    @property
    def sources(self) -> tuple[int, ...]:
        return self.columns + self.holes

    @property
    def suffixes(self) -> tuple[str, ...]:
        return ("",) * len(self.columns) + (" missing",) * len(self.holes)

    def __call__(self, table: Table, out: Array) -> Mask | None:
        written = len(self.columns)
        table.numbers(self.columns, out[:, :written])
        place = {j: k for k, j in enumerate(self.columns)}
        for k, j in enumerate(self.holes, start=written):
            column = out[:, place[j]] if j in place else table.number(j)
            out[:, k] = np.isnan(column)
        return None


@dataclass(frozen=True)
class DateColumn:
    """One column of dates: the time since 1970, and its place in the year, the week and the day.

    ``parts`` are those of :data:`DATE_PARTS` that vary in training; ``holes`` adds an indicator of
    missing values.
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

    def __call__(self, table: Table, out: Array) -> Mask | None:
        seconds = table.seconds(self.column)
        for k, part in enumerate(self.parts):
            out[:, k] = date_part(seconds, part)
        if self.holes:
            out[:, -1] = np.isnan(seconds)
        return None


def date_part(seconds: Array, part: str) -> Array:
    """One of :data:`DATE_PARTS`, of dates in seconds since 1970."""
    if part == "time":
        return seconds
    cycle, wave = part.split()
    phase = 2 * np.pi * (np.mod(seconds - MONDAY, CYCLES[cycle]) / CYCLES[cycle])
    return np.sin(phase) if wave == "sin" else np.cos(phase)


@dataclass(frozen=True)
class LevelColumn:
    """One column of categories: each level has a row of ``values`` (levels + 1, columns).

    The last row is for all other levels: rare ones, unseen ones, and missing values unless None is
    among ``levels``. Indicator columns and target encodings differ only in these values. ``rare``
    are the checksums of the rare levels of the training rows, None if they were not kept.
    """

    column: int
    levels: tuple[str | None, ...]
    values: Array
    suffixes: tuple[str, ...]
    rare: Array | None = None

    @property
    def sources(self) -> tuple[int, ...]:
        return (self.column,) * int(self.values.shape[1])

    def __call__(self, table: Table, out: Array) -> Mask | None:
        texts = table.texts(self.column)
        codes = level_codes(self.levels, texts)
        out[:] = self.values[codes]
        others = np.flatnonzero(codes == len(self.levels))
        if self.rare is None or not len(others):
            return None
        unseen = np.zeros(len(texts), bool)
        known = np.isin([checksum(texts[i]) for i in others], self.rare)
        unseen[others] = [texts[i] is not None for i in others] & ~known
        return unseen


def level_codes(levels: Sequence[str | None], texts: list[str | None]) -> Indices:
    """The index of each text among the levels; ``len(levels)`` for texts that are not there."""
    places = {level: i for i, level in enumerate(levels)}
    found = map(places.get, texts, repeat(len(places)))
    return np.fromiter(found, np.intp, len(texts))


def checksum(text: str | None) -> float:
    """A number that two different texts hardly ever share."""
    return float(crc32((text or "").encode("utf-8", "surrogatepass")))


# The encoder of a table


@dataclass(frozen=True)
class Encoder:
    """A callable that encodes tables; holds what was learned about a training table's columns.

    ``names`` are the names of the table's columns, or None if it had none; ``n_columns`` is their
    number. ``columns`` are the column encoders, which write side by side, and ``scaling`` is
    applied to everything that they write. ``spelled`` are the columns of text that stand for
    numbers or dates, ``report`` says what became of each column; both are None in models of older
    versions.
    """

    names: tuple[str, ...] | None
    n_columns: int
    columns: tuple[ColumnEncoder, ...]
    scaling: Scaling
    spelled: tuple[SpelledColumn, ...] | None = None
    report: tuple[ColumnReport, ...] | None = None
    #: for every encoded column, the index of the table's column that it is made of
    sources: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sources = tuple(j for encoder in self.columns for j in encoder.sources)
        object.__setattr__(self, "sources", sources)

    @property
    def width(self) -> int:
        """The number of encoded columns."""
        return len(self.scaling.fill)

    @property
    def names_out(self) -> tuple[str, ...]:
        """Names of the encoded columns; a table without names has columns x0, x1, …"""
        names = self._names
        return tuple(f"{names[j]}{suffix}" for j, suffix in self._sources_and_suffixes())

    def _sources_and_suffixes(self) -> Iterator[tuple[int, str]]:
        for encoder in self.columns:
            yield from zip(encoder.sources, encoder.suffixes, strict=True)

    def __call__(self, X: Any, warn: bool = True) -> Array:
        """The array (n, width) of a table with the training table's columns, found by name.

        ``warn`` is as in :meth:`encode`.
        """
        table = read_table(by_name(X, self.names))
        self._check(table)
        return self.encode(table, warn)

    def encode(self, table: Table, warn: bool = False) -> Array:
        """The array (n, width) of a table whose columns are known to be right.

        With ``warn``, rows that hold values unlike those of training are counted and reported.
        """
        if self.spelled:
            table = table.spelled(self.spelled)
        out = np.empty((table.shape[0], self.width))
        begin = 0
        unseen: dict[int, Mask] = {}
        for encoder in self.columns:
            end = begin + len(encoder.sources)
            found = encoder(table, out[:, begin:end])
            if found is not None and found.any():
                unseen[encoder.sources[0]] = found
            begin = end
        if warn:
            self._warn(out, unseen)
        self.scaling(out)
        return out

    def _warn(self, raw: Array, unseen: dict[int, Mask]) -> None:
        """Warn of rows with unseen categories, or with numbers (in ``raw``) far from training's."""
        columns, low, high = self._far
        least = np.fmin.reduce(raw, axis=0, initial=np.inf)[columns]
        most = np.fmax.reduce(raw, axis=0, initial=-np.inf)[columns]
        for k in np.flatnonzero((least < low) | (most > high)):
            x = raw[:, columns[k]]
            unseen[self.sources[columns[k]]] = (x < low[k]) | (x > high[k])
        if unseen:
            rows = int(np.any(list(unseen.values()), axis=0).sum())
            named = {self._names[j]: int(unseen[j].sum()) for j in sorted(unseen)}
            warnings.warn(UnseenValuesWarning(rows, len(raw), named), stacklevel=2)

    @cached_property
    def _far(self) -> tuple[Indices, Array, Array]:
        """The encoded columns that are numbers of the table, and the least and the largest number
        of each that is not reported as far away."""
        columns = np.array(list(self._number_columns()), dtype=np.intp)
        low, high = self.scaling.low, self.scaling.high
        if low is None or high is None:
            # Models of older versions do not know the range of the training rows.
            return columns[:0], np.empty(0), np.empty(0)
        margin = FAR * (high - low)
        return columns, (low - margin)[columns], (high + margin)[columns]

    @property
    def _names(self) -> tuple[str, ...]:
        """The names of the table's columns; without names they are x0, x1, …"""
        return self.names or tuple(f"x{j}" for j in range(self.n_columns))

    def pull(self, X: Any, gradient: Array) -> Array:
        """The chain rule back through the encoding.

        From derivatives with respect to encoded columns (n, width, d) to derivatives with respect
        to the table's number columns. The result is (n, n_columns, d); columns of categories and of
        dates have derivatives of 0.
        """
        table = read_table(by_name(X, self.names)).spelled(self.spelled or ())
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
        """For the index of each encoded column that is a number column of the table, the index of
        that column."""
        places = enumerate(self._sources_and_suffixes())
        return {k: j for k, (j, suffix) in places if suffix == ""}

    def _check(self, table: Table) -> None:
        """Refuse other columns than those of the training table, by name where both have names."""
        if self.names is None or table.names is None:
            if table.shape[1] != self.n_columns:
                raise ValueError(
                    f"X has {table.shape[1]} columns, but the model was fitted on "
                    f"{self.n_columns}: pass the same columns as in fit."
                )
            return
        if table.names == self.names:
            return
        what = differences(*lacking_and_extra(self.names, table.names))
        raise ValueError(
            f"The columns of X are not those of fit: {what}. Pass the same columns as in fit."
        )


def differences(lacking: list[str], extra: list[str]) -> str:
    """Which columns are missing and which are new, in words, up to five of each."""
    parts = [(lacking, "is missing", "are missing"), (extra, "is new", "are new")]
    return ", ".join(
        f"{', '.join(map(repr, names[:5]))}{' and more' if len(names) > 5 else ''} "
        f"{one if len(names) == 1 else several}"
        for names, one, several in parts
        if names
    )
