"""The interface between a fit and its data: sums over chunks of rows.

Every sub-problem of the method is a sum over rows. A fit asks for such sums (``total``), and has
numbers set for every row (``set``), by functions of one chunk of rows. Where the chunks are (in
memory, on disk, on other machines) and when they are visited is not its affair. Chunks are cut
from the first row on, ``CHUNK_ROWS`` rows each, and summed in a fixed order: what comes out is the
same to the bit wherever they are.

The functions are top-level functions and their arguments plain data, so that they can be sent to
other processes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np

from rfrboost._rows import BLOCK_ROWS, KeptFeatures, Rows
from rfrboost._typing import Array, frozen

CHUNK_ROWS = 16 * BLOCK_ROWS
# So many sums are added up one after the other, before those sums are.
FAN_IN = 8


class Chunks(Protocol):
    """All training rows, in chunks."""

    @property
    def facts(self) -> "Facts":
        """What is known of the rows as they came."""

    @property
    def remembers(self) -> bool:
        """Whether φ, once set, is kept; otherwise it is made again whenever it is needed."""

    def total(self, function: Callable[..., Any], *args: Any) -> Any:
        """The sum of ``function(rows, *args)`` over all chunks, as :class:`TreeSum` has it."""

    def set(self, name: str, function: Callable[..., Any], *args: Any) -> None:
        """Set ``rows.name = function(rows, *args)`` in all chunks, now or when it is needed.

        The function may read what the rows have under other names, and, of x, y and phi, what they
        had under this one (and change it in place).
        """


class Running:
    """A sum by ``take``, and how many parts are in it."""

    def __init__(self) -> None:
        self.total: Any = None
        self.count = 0

    def add(self, part: Any) -> None:
        self.count += 1
        if self.total is None:
            self.total = part
        else:
            self.total.take(part)


class TreeSum:
    """Parts added up eight by eight in their order, then those sums likewise, and so on.

    That is how several machines add up what each of them has, and one rounds as they do.
    """

    def __init__(self) -> None:
        self.levels = [Running()]

    def add(self, part: Any) -> None:
        """Take in the next part, which is not anybody else's."""
        for level, running in enumerate(self.levels):
            running.add(part)
            if running.count < FAN_IN:
                return
            part, self.levels[level] = running.total, Running()
        self.levels.append(Running())
        self.levels[-1].add(part)

    def total(self) -> Any:
        """The sum of all parts, when there are no more."""
        for below, above in pairwise(self.levels):
            if below.count:
                above.add(below.total)
        return self.levels[-1].total


class Sums:
    """Several sums that are taken together."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def take(self, part: "Sums") -> None:
        self.values = tuple(a + b for a, b in zip(self.values, part.values, strict=True))


@dataclass
class Facts:
    """Of the rows as they came: how many, Σw, Σw·x, and the extremes of every column."""

    n_rows: int
    weight: float
    x_sum: Array
    x_low: Array
    x_high: Array
    y_low: Array
    y_high: Array

    def take(self, part: Self) -> None:
        """Take in the rows of another."""
        self.n_rows += part.n_rows
        self.weight += part.weight
        self.x_sum = self.x_sum + part.x_sum
        for name, extreme in EXTREMES.items():
            setattr(self, name, extreme(getattr(self, name), getattr(part, name)))

    @property
    def x_mean(self) -> Array:
        """The rows' mean. Translating x changes neither SWIM features nor a head with an intercept,
        and keeps differences of large numbers out of every product."""
        return frozen(self.x_sum / self.weight)

    def largest_from(self, mean: Array) -> Array:
        """max|x − mean| of every column, rounded as the differences are."""
        return np.maximum(self.x_high - mean, mean - self.x_low)


EXTREMES = {
    "x_low": np.minimum,
    "x_high": np.maximum,
    "y_low": np.minimum,
    "y_high": np.maximum,
}


def facts_of(rows: Rows) -> Facts:
    """The facts of a chunk."""
    x, y, w = rows.x, rows.y, rows.w
    return Facts(
        n_rows=len(x),
        weight=len(x) if w is None else float(w.sum()),
        x_sum=x.sum(axis=0, dtype=float) if w is None else w @ x,
        x_low=x.min(axis=0).astype(float),
        x_high=x.max(axis=0).astype(float),
        y_low=y.min(axis=0),
        y_high=y.max(axis=0),
    )


class InMemory:
    """Chunks of arrays X (n, D), y (n, k) and weights. With ``parts`` all rows are one chunk."""

    remembers = True

    def __init__(self, X: Array, y: Array, w: Array | None, parts: int = 1) -> None:
        size = CHUNK_ROWS if parts == 1 else len(y)
        kept = KeptFeatures()
        self.chunks = []
        for first in range(0, len(y), size):
            s = slice(first, first + size)
            rows = Rows(first, len(y[s]), kept, parts)
            rows.x, rows.y, rows.w = X[s], y[s], None if w is None else w[s]
            self.chunks.append(rows)

    @cached_property
    def facts(self) -> Facts:
        """Asked for before anything is set."""
        return self.total(facts_of)

    def total(self, function: Callable[..., Any], *args: Any) -> Any:
        tree = TreeSum()
        for rows in self.chunks:
            tree.add(function(rows, *args))
        return tree.total()

    def set(self, name: str, function: Callable[..., Any], *args: Any) -> None:
        for rows in self.chunks:
            setattr(rows, name, function(rows, *args))


def thinned_targets(chunks: Chunks) -> tuple[Array, Array]:
    """Targets and weights of all rows, or of evenly spaced ones where they are many.

    For what needs them side by side, such as medians.
    """
    every = -(-chunks.facts.n_rows // CHUNK_ROWS)
    y, w = chunks.total(every_so_manieth, every).values
    return (y[0], w[0]) if len(y) == 1 else (np.concatenate(y), np.concatenate(w))


def every_so_manieth(rows: Rows, every: int) -> Sums:
    """The targets and weights of a chunk's rows whose numbers are multiples of ``every``."""
    some = slice(-rows.first % every, None, every)
    return Sums([rows.y[some]], [weights_of(rows)[some]])


def weights_of(rows: Rows) -> Array:
    """Weights, ones if there are none."""
    return np.ones(rows.size) if rows.w is None else rows.w


def weighted_sums(values: Array, w: Array | None) -> Sums:
    """Σw·v over rows v, and Σw."""
    if w is None:
        return Sums(values.sum(axis=0), len(values))
    return Sums(np.multiply(values, w[:, None]).sum(axis=0), w.sum())
