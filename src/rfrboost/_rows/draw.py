"""Drawing rows by their content: which ones are drawn depends on the rows, not on their order.

Rows are sorted by two *keys*: a random projection of x and, where these are equal, one of y. Equal
rows have equal keys. A draw is a random place in that order, in proportion to weight
(:class:`ContentOrder`). If there is one chunk only, all its rows are sorted. More rows are first
counted in bins of the first key. Only the rows of bins that a draw falls into are then sorted, so
that the memory of a draw grows with the number of rows drawn. Where bins end decides how much work
there is, not which rows are drawn.

Under sample splitting the rows, which must be in memory, are shuffled and cut into equal parts, one
for each layer, and a layer draws from its own part (:func:`split_into_parts`, :class:`PartOrder`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.random import Generator

from rfrboost._model.features import FeatureMap
from rfrboost._model.samplers import Sampler
from rfrboost._numerics.arrays import content_order, projection
from rfrboost._rows.chunks import Chunk, Chunks, InMemory, Sums, gather
from rfrboost._typing import Array, Indices


class Order(Protocol):
    """A way to draw rows."""

    def draw(self, size: int, rng: Generator) -> Indices:
        """The indices of ``size`` rows, drawn with replacement in proportion to weight."""


def draw_features(
    chunks: Chunks, order: Order, sampler: Sampler, name: str, n_features: int, rng: Generator
) -> FeatureMap:
    """Random features of ``name``, "x" or "phi", from the number of rows that the sampler needs."""
    drawn = order.draw(sampler.n_rows(n_features), rng)
    Z = gather(chunks, name, drawn)
    Y = gather(chunks, "y", drawn)
    return sampler.sample(np.ascontiguousarray(Z[:, :-1]), Y, n_features, rng)


@dataclass
class KeyedRows:
    """Keys, weights, bins and indices of m rows, an array (m,) each."""

    x_key: Array
    y_key: Array
    w: Array
    code: Indices
    row: Indices

    def take(self, part: "KeyedRows") -> None:
        """Append other rows."""
        self.x_key = np.concatenate([self.x_key, part.x_key])
        self.y_key = np.concatenate([self.y_key, part.y_key])
        self.w = np.concatenate([self.w, part.w])
        self.code = np.concatenate([self.code, part.code])
        self.row = np.concatenate([self.row, part.row])

    def chosen(self, at: Indices) -> "KeyedRows":
        """The rows at these places."""
        return KeyedRows(self.x_key[at], self.y_key[at], self.w[at], self.code[at], self.row[at])

    def in_order(self) -> "KeyedRows":
        """The rows sorted by their keys."""
        return self.chosen(np.lexsort((self.y_key, self.x_key)))

    def collapsed(self) -> "KeyedRows":
        """The rows sorted, with equal rows as one row that has the sum of their weights."""
        rows = self.in_order()
        new = np.ones(len(rows.row), bool)
        new[1:] = (np.diff(rows.x_key) != 0) | (np.diff(rows.y_key) != 0)
        first = np.flatnonzero(new)
        weights = np.add.reduceat(rows.w, first) if len(first) else rows.w
        rows = rows.chosen(first)
        rows.w = weights
        return rows


class ContentOrder:
    """All rows in the order of their keys. The ``x`` of chunks must be homogeneous already.

    ``counts`` is the number of rows in every bin, ``ends`` the weight of all rows up to its end.
    The rows of a single chunk are one bin, sorted once (``whole``).
    """

    def __init__(self, chunks: Chunks, rng: Generator) -> None:
        self.chunks = chunks
        facts = chunks.facts
        chunks.set("x_key", key_of, "x", rng.standard_normal(len(facts.x_low) + 1))
        chunks.set("y_key", key_of, "y", rng.standard_normal(len(facts.y_low)))
        self.whole: KeyedRows | None = None
        if facts.n_rows <= chunks.sizes.chunk_rows:
            self.whole = chunks.total(all_rows).in_order()
            self.ends = np.cumsum(self.whole.w)[-1:]
            self.counts = np.array([facts.n_rows])
            return
        every = -(-facts.n_rows // chunks.sizes.draw_bins)
        edges = np.unique(np.concatenate(chunks.total(every_nth_key, every).values[0]))
        chunks.set("code", bin_of, edges)
        self.counts, weights = chunks.total(histogram, len(edges) + 1).values
        self.ends = np.cumsum(weights)

    def draw(self, size: int, rng: Generator) -> Indices:
        total = self.ends[-1]
        # A product that is rounded up to the total weight would lie beyond the last row.
        places = np.minimum(rng.random(size) * total, np.nextafter(total, 0))
        bins = np.searchsorted(self.ends, places, side="right")
        drawn = np.empty(size, np.intp)
        for some in self._groups(np.unique(bins)):
            rows = self._rows_of(some)
            here = (some[0] <= bins) & (bins <= some[-1])
            drawn[here] = self._found(rows, places[here], bins[here])
        return drawn

    def _groups(self, bins: Indices) -> Iterator[Indices]:
        """The bins in groups of about ``Sizes.sorted_rows`` rows; a larger bin is a group alone."""
        group = np.cumsum(self.counts[bins]) // self.chunks.sizes.sorted_rows
        for number in np.unique(group):
            yield bins[group == number]

    def _rows_of(self, bins: Indices) -> KeyedRows:
        """The rows of these bins, sorted."""
        if self.whole is not None:
            return self.whole
        wanted = np.zeros(len(self.ends), bool)
        wanted[bins] = True
        rows: KeyedRows = self.chunks.total(rows_in_bins, wanted)
        return rows.collapsed()

    def _found(self, rows: KeyedRows, places: Array, bins: Indices) -> Indices:
        """The index of the row at every place; ``rows`` are all rows of the bins, sorted."""
        cumulative = np.cumsum(rows.w)
        first, stop = (np.searchsorted(rows.code, bins, side=side) for side in ("left", "right"))
        before = np.where(first > 0, cumulative[first - 1], 0.0)
        begins = np.where(bins > 0, self.ends[bins - 1], 0.0)
        index = np.searchsorted(cumulative, places - begins + before, side="right")
        return rows.row[np.clip(index, first, stop - 1)]


def key_of(chunk: Chunk, name: str, direction: Array) -> Array:
    """A random projection of every row's x or y."""
    return projection(getattr(chunk, name), direction)


def every_nth_key(chunk: Chunk, n: int) -> Sums:
    """The first keys of the rows whose indices among all rows are multiples of n."""
    return Sums([chunk.x_key[-chunk.first % n :: n]])


def bin_of(chunk: Chunk, edges: Array) -> Indices:
    """The index of the bin that each row is in."""
    return np.searchsorted(edges, chunk.x_key, side="right").astype(np.int32)


def histogram(chunk: Chunk, n_bins: int) -> Sums:
    """The number of rows in every bin, and their weight."""
    counts = np.bincount(chunk.code, minlength=n_bins)
    weights = counts.astype(float)
    if chunk.w is not None:
        weights = np.bincount(chunk.code, chunk.w, minlength=n_bins)
    return Sums(counts, weights)


def all_rows(chunk: Chunk) -> KeyedRows:
    """All rows of a chunk, in one bin."""
    return keyed_rows(chunk, np.arange(chunk.size), np.zeros(chunk.size, np.intp))


def rows_in_bins(chunk: Chunk, wanted: Array) -> KeyedRows:
    """The rows of a chunk in the bins that are ``wanted``, equal rows as one."""
    chosen = np.flatnonzero(wanted[chunk.code])
    if not len(chosen):
        nothing = np.empty(0)
        return KeyedRows(nothing, nothing, nothing, chunk.code[:0], chosen)
    return keyed_rows(chunk, chosen, chunk.code[chosen]).collapsed()


def keyed_rows(chunk: Chunk, places: Indices, code: Indices) -> KeyedRows:
    """The rows at these places of a chunk; ``code`` are the indices of their bins."""
    w = np.ones(len(places)) if chunk.w is None else chunk.w[places]
    return KeyedRows(chunk.x_key[places], chunk.y_key[places], w, code, chunk.first + places)


@dataclass(frozen=True)
class PartOrder:
    """Draws from the part of the rows that the present layer is fitted on."""

    rows: Chunk

    def draw(self, size: int, rng: Generator) -> Indices:
        n = self.rows.size // self.rows.parts
        first = self.rows.part * n
        u = rng.random(size)
        if self.rows.w is None:
            return first + (u * n).astype(np.intp)
        cumulative = np.cumsum(self.rows.w[first : first + n])
        places: Indices = np.searchsorted(cumulative, u * cumulative[-1], side="right")
        return first + places


def split_into_parts(chunks: InMemory, rng: Generator) -> PartOrder:
    """Shuffle the rows of the only chunk, which is then cut into equal parts.

    The shuffled order does not depend on the order in which rows were passed. Rows that are left
    over, fewer than there are parts, are dropped.
    """
    (rows,) = chunks.chunks
    order = content_order(rows.x, rows.y, rng)
    kept = order[rng.permutation(rows.size)[: rows.size // rows.parts * rows.parts]]
    rows.x = rows.x[kept]
    rows.y = rows.y[kept]
    rows.w = None if rows.w is None else rows.w[kept]
    rows.size = len(kept)
    chunks.facts = replace(chunks.facts, n_rows=len(kept))
    return PartOrder(rows)
