"""Training rows in chunks: the interface between a fit and its data.

Everything a fit computes from its rows is a sum over rows. It takes such sums
(``Chunks.total``) and stores values per row (``Chunks.set``), each by a function of one
:class:`Chunk`. The fit does not know whether the chunks are in memory (:class:`InMemory`), on disk
(:mod:`rfrboost._rows.streamed`) or on the workers of a Dask cluster (:mod:`rfrboost._dask.chunks`).

A block or partition is what the user hands in, a chunk what sums are taken over, a batch what is
computed at a time. Rows are cut into chunks of ``Sizes.chunk_rows`` from the first row on, and a
chunk is visited in batches of ``Sizes.batch_rows``. Sums are taken in a fixed order, so that a fit
gives the same bits wherever its rows are.

The functions are top-level functions and their arguments plain data, so that they can be sent to
other processes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from threading import local
from typing import Any, Protocol, Self

import numpy as np

from rfrboost._model.network import LayerFeatures
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._typing import Array, Indices

# Number of parts that a node of the tree of sums adds up. With eight the tree has few levels, and
# enough groups of chunks for the workers of a cluster to share.
FAN_IN = 8

# Rows whose weight is at most about this fraction of the largest are left out. In every sum such a
# row is lost by rounding, and products with its weight may underflow.
NEGLIGIBLE_WEIGHT = 1e-60

# Which rows of a chunk a batch has, and their weights (None if rows have no weights).
Batch = tuple[slice, Array | None]


class ThreadBuffer(local):
    """One array for each thread."""

    array: Array | None = None


class FeatureCache:
    """The random features of the layer being fitted, kept between its two passes over the rows.

    One cache serves all rows of a fit. Features are kept for as many rows, from the first on, as
    fit into ``most_bytes``; those of later rows are computed again in the second pass, in one
    buffer for each thread. Arrays are reused from layer to layer.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kept: dict[tuple[int, int], Array] = {}
        self._computed: set[tuple[int, int]] = set()
        self._feature_map: object = None
        self._buffer = ThreadBuffer()

    def features(
        self,
        feature_map: Any,
        rows: tuple[int, int],
        compute: Callable[[Array], None],
    ) -> Array:
        """The features of the rows from ``rows[0]`` up to ``rows[1]``, an array (rows, width).

        The array has the ``width`` and ``dtype`` of the ``feature_map``; another map than before
        empties the cache. ``compute`` writes the features into the array it is given.
        """
        if feature_map is not self._feature_map:
            self._feature_map = feature_map
            self._computed = set()
        width = feature_map.width
        dtype = feature_map.dtype
        shape = (rows[1] - rows[0], width)
        if rows[1] * width * dtype.itemsize > self.most_bytes:
            out = self._buffer.array = buffer_like(self._buffer.array, shape, dtype)
            compute(out)
            return out
        out = self._kept[rows] = buffer_like(self._kept.get(rows), shape, dtype)
        if rows not in self._computed:
            compute(out)
            self._computed.add(rows)
        return out


def buffer_like(old: Array | None, shape: tuple[int, int], dtype: np.dtype) -> Array:
    """The old array if it has this shape and dtype, else a new one, in Fortran order."""
    if old is not None and old.shape == shape and old.dtype == dtype:
        return old
    return np.empty(shape, dtype, order="F")


class Chunk:
    """Consecutive training rows; ``first`` is the index of the first one among all rows.

    ``x`` is (n, D) as read, and (n, D+1) with a last column of ones once the fit has centred it;
    ``phi`` (n, width+1) has such a column too. ``y`` is (n, k), ``w`` (n,) or None. The other
    arrays exist only while they are needed: ``raw``, ``outputs`` and ``moves`` within a step;
    ``x_key``, ``y_key`` and ``code`` once rows can be drawn. For sample splitting, ``parts`` is the
    number of consecutive slices of equal length that rows are cut into (a remainder is unused), and
    ``part`` is the index of the slice that the present layer is fitted on.
    """

    x: Array
    y: Array
    w: Array | None
    phi: Array
    raw: Array
    outputs: Array
    moves: Array
    x_key: Array
    y_key: Array
    code: Indices

    def __init__(
        self,
        first: int,
        size: int,
        cache: FeatureCache,
        sizes: Sizes = SIZES,
        parts: int = 1,
    ) -> None:
        self.first = first
        self.size = size
        self.sizes = sizes
        self.parts = parts
        self.part = 0
        self._cache = cache

    def batches(self) -> list[Batch]:
        """All rows, in batches."""
        return self._batches(0, self.size)

    def fitting_batches(self) -> list[Batch]:
        """The rows that the present layer is fitted on: all, or its part under sample splitting."""
        size = self.size // self.parts
        return self._batches(self.part * size, (self.part + 1) * size)

    def _batches(self, first: int, stop: int) -> list[Batch]:
        """The rows from ``first`` up to ``stop``, in batches."""
        begins = range(first, stop, self.sizes.batch_rows)
        places = [slice(begin, min(begin + self.sizes.batch_rows, stop)) for begin in begins]
        return [(rows, None if self.w is None else self.w[rows]) for rows in places]

    def features(self, rows: slice, layer: LayerFeatures) -> Array:
        """f_t of a batch, computed once per layer as far as the cache has room."""
        indices = (self.first + rows.start, self.first + rows.stop)
        return self._cache.features(
            layer, indices, lambda out: layer(self.phi[rows], self.x[rows], out)
        )

    def at(self, name: str, rows: Indices) -> Array:
        """The values of the array called ``name`` at some of the chunk's rows."""
        values: Array = getattr(self, name)
        return values[rows]


class Chunks(Protocol):
    """All training rows, in chunks."""

    #: number, weight and extremes of the rows as read; in classification y has a column for each
    #: class, and its extremes are those of these columns
    facts: "Facts"
    #: how many rows are taken at a time
    sizes: Sizes

    @property
    def remembers(self) -> bool:
        """Whether Φ, once set, is kept; otherwise it is computed again whenever it is needed."""

    def total(self, function: Callable[..., Any], *args: Any) -> Any:
        """The sum of ``function(chunk, *args)`` over all chunks, in the order of :class:`TreeSum`.

        What the function returns must have a method ``take(other)`` that adds another result.
        """

    def set(self, name: str, function: Callable[..., Any], *args: Any) -> None:
        """Set ``chunk.name = function(chunk, *args)`` in all chunks, now or when it is needed.

        The function may read the chunk's other values, and the former value of ``x``, ``y``, ``w``
        or ``phi``; only ``phi`` may be changed in place. What is set for ``x``, ``y`` or ``w`` must
        be computed row by row, from the former value of the same name alone.
        """


class RunningSum:
    """A sum by ``take``, and the number of parts in it."""

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
    """A sum taken in groups of eight consecutive parts, then in groups of eight sums, and so on.

    Several machines can add their own groups, and a single machine rounds as they do.
    """

    def __init__(self) -> None:
        self.levels = [RunningSum()]

    def add(self, part: Any) -> None:
        """Add the next part, which may be changed in place."""
        for level, running in enumerate(self.levels):
            running.add(part)
            if running.count < FAN_IN:
                return
            part = running.total
            self.levels[level] = RunningSum()
        self.levels.append(RunningSum())
        self.levels[-1].add(part)

    def total(self) -> Any:
        """The sum of all parts, once the last one has been added."""
        for below, above in pairwise(self.levels):
            if below.count:
                above.add(below.total)
        return self.levels[-1].total


class Sums:
    """Several values added side by side with +: numbers and arrays are summed, lists joined."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def take(self, part: "Sums") -> None:
        self.values = tuple(a + b for a, b in zip(self.values, part.values, strict=True))


@dataclass
class Facts:
    """What a first pass over rows finds: their number, Σw, Σw·x, and every column's extremes."""

    n_rows: int
    weight: float
    x_sum: Array
    x_low: Array
    x_high: Array
    y_low: Array
    y_high: Array

    def take(self, part: Self) -> None:
        """Add the facts of other rows."""
        self.n_rows += part.n_rows
        self.weight += part.weight
        self.x_sum = self.x_sum + part.x_sum
        self.x_low = np.minimum(self.x_low, part.x_low)
        self.x_high = np.maximum(self.x_high, part.x_high)
        self.y_low = np.minimum(self.y_low, part.y_low)
        self.y_high = np.maximum(self.y_high, part.y_high)


def facts_of(chunk: Chunk) -> Facts:
    """The facts of one chunk; if weights have not been scaled, sums of them may overflow."""
    x = chunk.x
    w = chunk.w
    with np.errstate(over="ignore", invalid="ignore"):
        weight = len(x) if w is None else float(w.sum())
        x_sum = x.sum(axis=0, dtype=float) if w is None else w @ x
    return Facts(
        n_rows=len(x),
        weight=weight,
        x_sum=x_sum,
        x_low=x.min(axis=0).astype(float),
        x_high=x.max(axis=0).astype(float),
        y_low=chunk.y.min(axis=0),
        y_high=chunk.y.max(axis=0),
    )


class InMemory:
    """Chunks of arrays X (n, D), y (n, k) and weights w (n,) or None.

    With ``parts`` above 1 (sample splitting) all rows are one chunk.
    """

    remembers = True

    def __init__(
        self, X: Array, y: Array, w: Array | None, parts: int = 1, sizes: Sizes = SIZES
    ) -> None:
        self.sizes = sizes
        rows_each = sizes.chunk_rows if parts == 1 else len(y)
        cache = FeatureCache(sizes.cached_bytes)
        self.chunks = []
        for first in range(0, len(y), rows_each):
            rows = slice(first, first + rows_each)
            chunk = Chunk(first, len(y[rows]), cache, sizes, parts)
            chunk.x = X[rows]
            chunk.y = np.asfortranarray(y[rows])
            chunk.w = None if w is None else w[rows]
            self.chunks.append(chunk)
        self.facts: Facts = self.total(facts_of)

    def total(self, function: Callable[..., Any], *args: Any) -> Any:
        tree = TreeSum()
        for chunk in self.chunks:
            tree.add(function(chunk, *args))
        return tree.total()

    def set(self, name: str, function: Callable[..., Any], *args: Any) -> None:
        for chunk in self.chunks:
            setattr(chunk, name, function(chunk, *args))


def own_rows(chunk: Chunk, values: Array) -> Array:
    """The chunk's rows of an array (n, …) that has a row for each row of the fit."""
    return values[chunk.first : chunk.first + chunk.size]


def gather(chunks: Chunks, name: str, indices: Indices) -> Array:
    """The values of the array called ``name`` at the rows with these indices, in their order."""
    distinct, places = np.unique(indices, return_inverse=True)
    found = chunks.total(values_at, name, distinct).values[0]
    return np.concatenate(found)[places] if len(found) > 1 else found[0][places]


def values_at(chunk: Chunk, name: str, indices: Indices) -> Sums:
    """The values at those of these indices, sorted ascending, that are rows of the chunk."""
    own = slice(*np.searchsorted(indices, [chunk.first, chunk.first + chunk.size]))
    here = indices[own] - chunk.first
    return Sums([chunk.at(name, here)] if len(here) else [])


def thinned_targets(chunks: Chunks) -> tuple[Array, Array]:
    """Targets (m, k) and weights (m,) of every n-th row.

    n is the least number that leaves at most ``Sizes.chunk_rows`` rows; it is 1 if there are no
    more rows than that. For statistics that need all targets at once, such as medians.
    """
    every = -(-chunks.facts.n_rows // chunks.sizes.chunk_rows)
    y, w = chunks.total(every_nth_target, every).values
    return (y[0], w[0]) if len(y) == 1 else (np.concatenate(y), np.concatenate(w))


def every_nth_target(chunk: Chunk, n: int) -> Sums:
    """Targets and weights of the chunk's rows whose indices among all rows are multiples of n."""
    some = slice(-chunk.first % n, None, n)
    return Sums([chunk.y[some]], [weights_of(chunk)[some]])


def target_powers(chunk: Chunk, shift: Array | float, scale: Array, power: int) -> Sums:
    """Σw·((y − shift)/scale)^power of every output, and Σw."""
    return weighted_sums(((chunk.y - shift) / scale) ** power, chunk.w)


def weights_of(chunk: Chunk) -> Array:
    """The chunk's weights; ones if it has none."""
    return np.ones(chunk.size) if chunk.w is None else chunk.w


def weighted_sums(values: Array, w: Array | None) -> Sums:
    """Σw·v over rows v of an array (n, k), and Σw."""
    if w is None:
        return Sums(values.sum(axis=0), len(values))
    return Sums(np.multiply(values, w[:, None]).sum(axis=0), w.sum())
