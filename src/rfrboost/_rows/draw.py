"""Rows drawn by their content: which ones depends on the rows there are, not on where they are.

Rows are ordered by a random projection of x, then of y; equal rows have equal keys. A draw is a
place in that order, in proportion to weight. Few rows are simply sorted. Of many, bins of the first
key are counted, a draw says which bins it falls into, and only the rows of these are sorted: the
memory of a draw grows with the number of rows drawn. Where the bins end decides how much work
there is, not what comes out.

Sample splitting: rows in memory, shuffled and cut into equal runs, one for every layer.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.random import Generator

from rfrboost._model.features import FeatureMap
from rfrboost._model.samplers import Sampler
from rfrboost._numerics.arrays import content_order, projection
from rfrboost._rows.chunks import Chunk, Chunks, InMemory, Sums, weights_of
from rfrboost._typing import Array, Indices


class Order(Protocol):
    """A way to draw rows."""

    def draw(self, size: int, rng: Generator) -> Indices:
        """Numbers of ``size`` rows, drawn with replacement, in proportion to weight."""


@dataclass
class KeyedRows:
    """Some rows: their keys, weights, bins and numbers."""

    x_key: Array
    y_key: Array
    w: Array
    code: Indices
    row: Indices

    def take(self, part: "KeyedRows") -> None:
        for name, own in vars(self).items():
            setattr(self, name, np.concatenate([own, getattr(part, name)]))

    def chosen(self, rows: Indices) -> "KeyedRows":
        """Some of them."""
        return KeyedRows(*(values[rows] for values in vars(self).values()))

    def in_order(self) -> "KeyedRows":
        """The same, sorted."""
        return self.chosen(np.lexsort((self.y_key, self.x_key)))

    def collapsed(self) -> "KeyedRows":
        """The same, sorted, with the first of equal rows standing for all of them."""
        rows = self.in_order()
        new = np.ones(len(rows.row), bool)
        new[1:] = (np.diff(rows.x_key) != 0) | (np.diff(rows.y_key) != 0)
        first = np.flatnonzero(new)
        weights = np.add.reduceat(rows.w, first) if len(first) else rows.w
        rows = rows.chosen(first)
        rows.w = weights
        return rows


class ContentOrder:
    """The order of all rows by content. ``ends`` is the weight up to the end of every bin."""

    def __init__(self, chunks: Chunks, rng: Generator) -> None:
        self.chunks, facts = chunks, chunks.facts
        for name, low in (("x", facts.x_low), ("y", facts.y_low)):
            direction = rng.standard_normal(len(low) + (name == "x"))
            chunks.set(f"{name}_key", key_of, name, direction)
        self.whole: KeyedRows | None = None
        if facts.n_rows <= chunks.sizes.chunk_rows:
            self.whole = chunks.total(all_rows).in_order()
            self.ends = np.cumsum(self.whole.w)[-1:]
            self.counts = np.array([facts.n_rows])
            return
        every = -(-facts.n_rows // chunks.sizes.draw_bins)
        edges = np.unique(np.concatenate(chunks.total(thinned_keys, every).values[0]))
        chunks.set("code", bin_of, edges)
        counts, weights = chunks.total(histogram, len(edges) + 1).values
        self.counts, self.ends = counts, np.cumsum(weights)

    def draw(self, size: int, rng: Generator) -> Indices:
        total = self.ends[-1]
        # A product that is rounded up would lie behind the last row.
        places = np.minimum(rng.random(size) * total, np.nextafter(total, 0))
        bins = np.searchsorted(self.ends, places, side="right")
        drawn = np.empty(size, np.intp)
        for some in self._groups(np.unique(bins)):
            rows = self._rows_of(some)
            here = (some[0] <= bins) & (bins <= some[-1])
            drawn[here] = self._found(rows, places[here], bins[here])
        return drawn

    def _groups(self, bins: Indices) -> Iterator[Indices]:
        """Bins in runs that hold so many rows as are sorted at a time, or one bin each."""
        before = np.cumsum(self.counts[bins]) // self.chunks.sizes.sorted_rows
        for run in np.unique(before):
            yield bins[before == run]

    def _rows_of(self, bins: Indices) -> KeyedRows:
        if self.whole is not None:
            return self.whole
        wanted = np.zeros(len(self.ends), bool)
        wanted[bins] = True
        return self.chunks.total(rows_in_bins, wanted).collapsed()

    def _found(self, rows: KeyedRows, places: Array, bins: Indices) -> Indices:
        """The row at every place; ``rows`` are those of the bins, sorted."""
        cumulative = np.cumsum(rows.w)
        first, stop = (np.searchsorted(rows.code, bins, side=side) for side in ("left", "right"))
        before = np.where(first > 0, cumulative[first - 1], 0.0)
        begins = np.where(bins > 0, self.ends[bins - 1], 0.0)
        index = np.searchsorted(cumulative, places - begins + before, side="right")
        return rows.row[np.clip(index, first, stop - 1)]


def key_of(chunk: Chunk, name: str, direction: Array) -> Array:
    """A random projection of every row's x or y."""
    return projection(getattr(chunk, name), direction)


def thinned_keys(chunk: Chunk, every: int) -> Sums:
    """The first key of every so manieth row of all."""
    return Sums([chunk.x_key[-chunk.first % every :: every]])


def bin_of(chunk: Chunk, edges: Array) -> Indices:
    """The number of the bin that each row falls into."""
    return np.searchsorted(edges, chunk.x_key, side="right").astype(np.int32)


def histogram(chunk: Chunk, n_bins: int) -> Sums:
    """How many rows every bin holds, and how much they weigh."""
    counts = np.bincount(chunk.code, minlength=n_bins)
    weights = counts.astype(float)
    if chunk.w is not None:
        weights = np.bincount(chunk.code, chunk.w, minlength=n_bins)
    return Sums(counts, weights)


def all_rows(chunk: Chunk) -> KeyedRows:
    """All rows of a chunk, in one bin."""
    code, number = np.zeros(chunk.size, np.intp), chunk.first + np.arange(chunk.size)
    return KeyedRows(chunk.x_key, chunk.y_key, weights_of(chunk), code, number)


def rows_in_bins(chunk: Chunk, wanted: Array) -> KeyedRows:
    """The rows of a chunk that fall into some of the bins."""
    chosen = np.flatnonzero(wanted[chunk.code])
    if not len(chosen):
        nothing = np.empty(0)
        return KeyedRows(nothing, nothing, nothing, chunk.code[:0], chosen)
    w = np.ones(len(chosen)) if chunk.w is None else chunk.w[chosen]
    code, number = chunk.code[chosen], chunk.first + chosen
    return KeyedRows(chunk.x_key[chosen], chunk.y_key[chosen], w, code, number).collapsed()


def gather(chunks: Chunks, name: str, numbers: Indices) -> Array:
    """What the rows of these numbers have under a name."""
    distinct, places = np.unique(numbers, return_inverse=True)
    found = chunks.total(rows_at, name, distinct).values[0]
    return np.concatenate(found)[places] if len(found) > 1 else found[0][places]


def rows_at(chunk: Chunk, name: str, numbers: Indices) -> Sums:
    """The same of one chunk, for those numbers that are its own, which rise."""
    own = slice(*np.searchsorted(numbers, [chunk.first, chunk.first + chunk.size]))
    here = numbers[own] - chunk.first
    return Sums([chunk.at(name, here)] if len(here) else [])


def draw_features(
    chunks: Chunks, order: Order, sampler: Sampler, name: str, n_features: int, rng: Generator
) -> FeatureMap:
    """Draw features of x or φ, showing the sampler as many rows as it asks for."""
    drawn = order.draw(sampler.n_rows(n_features), rng)
    Z, Y = gather(chunks, name, drawn), gather(chunks, "y", drawn)
    return sampler.sample(np.ascontiguousarray(Z[:, :-1]), Y, n_features, rng)


@dataclass(frozen=True)
class RunOrder:
    """Draws rows of the run that the present layer is fitted on."""

    rows: Chunk

    def draw(self, size: int, rng: Generator) -> Indices:
        n = self.rows.size // self.rows.parts
        first, u = self.rows.part * n, rng.random(size)
        if self.rows.w is None:
            return first + (u * n).astype(np.intp)
        cumulative = np.cumsum(self.rows.w[first : first + n])
        return first + np.searchsorted(cumulative, u * cumulative[-1], side="right")


def split(chunks: InMemory, rng: Generator) -> RunOrder:
    """Shuffle the rows, by their content and not by their order; what is too many is left out."""
    (rows,) = chunks.chunks
    order = content_order(rows.x, rows.y, rng)
    kept = order[rng.permutation(rows.size)[: rows.size // rows.parts * rows.parts]]
    rows.x, rows.y, rows.w = rows.x[kept], rows.y[kept], None if rows.w is None else rows.w[kept]
    rows.size = len(kept)
    chunks.facts = replace(chunks.facts, n_rows=len(kept))
    return RunOrder(rows)
