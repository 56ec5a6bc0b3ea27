"""Rows drawn by their content: which ones depends on the rows there are, not on where they are.

Rows are ordered by a random projection of x, then of y; equal rows have equal keys. A draw is a
place in that order, in proportion to weight. Few rows are simply sorted. Of many, bins of the first
key are counted, a draw says which bins it falls into, and only the rows of these are sorted: the
memory of a draw grows with the number of rows drawn. Where the bins end decides how much work
there is, not what comes out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator

from rfrboost._chunks import CHUNK_ROWS, Chunks, Sums, weights_of
from rfrboost._features import FeatureMap, Sampler
from rfrboost._rows import Rows, projection
from rfrboost._typing import Array, Indices

MOST_BINS = 2**16
# Rows that are sorted at a time.
MOST_SORTED = 2**21


class Order(Protocol):
    """A way to draw rows."""

    def draw(self, size: int, rng: Generator) -> Indices:
        """Numbers of ``size`` rows, drawn with replacement, in proportion to weight."""


@dataclass
class Keyed:
    """Some rows: their keys, weights, bins and numbers."""

    x_key: Array
    y_key: Array
    w: Array
    code: Indices
    row: Indices

    def take(self, part: "Keyed") -> None:
        for name, own in vars(self).items():
            setattr(self, name, np.concatenate([own, getattr(part, name)]))

    def chosen(self, rows: Indices) -> "Keyed":
        """Some of them."""
        return Keyed(*(values[rows] for values in vars(self).values()))

    def in_order(self) -> "Keyed":
        """The same, sorted."""
        return self.chosen(np.lexsort((self.y_key, self.x_key)))

    def collapsed(self) -> "Keyed":
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
        self.whole: Keyed | None = None
        if facts.n_rows <= CHUNK_ROWS:
            self.whole = chunks.total(all_rows).in_order()
            self.ends = np.cumsum(self.whole.w)[-1:]
            self.counts = np.array([facts.n_rows])
            return
        every = -(-facts.n_rows // MOST_BINS)
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
        before = np.cumsum(self.counts[bins]) // MOST_SORTED
        for run in np.unique(before):
            yield bins[before == run]

    def _rows_of(self, bins: Indices) -> Keyed:
        if self.whole is not None:
            return self.whole
        wanted = np.zeros(len(self.ends), bool)
        wanted[bins] = True
        return self.chunks.total(rows_in_bins, wanted).collapsed()

    def _found(self, rows: Keyed, places: Array, bins: Indices) -> Indices:
        """The row at every place; ``rows`` are those of the bins, sorted."""
        cumulative = np.cumsum(rows.w)
        first, stop = (np.searchsorted(rows.code, bins, side=side) for side in ("left", "right"))
        before = np.where(first > 0, cumulative[first - 1], 0.0)
        begins = np.where(bins > 0, self.ends[bins - 1], 0.0)
        index = np.searchsorted(cumulative, places - begins + before, side="right")
        return rows.row[np.clip(index, first, stop - 1)]


def key_of(rows: Rows, name: str, direction: Array) -> Array:
    """A random projection of every row's x or y."""
    return projection(getattr(rows, name), direction)


def thinned_keys(rows: Rows, every: int) -> Sums:
    """The first key of every so manieth row of all."""
    return Sums([rows.x_key[-rows.first % every :: every]])


def bin_of(rows: Rows, edges: Array) -> Indices:
    """The number of the bin that each row falls into."""
    return np.searchsorted(edges, rows.x_key, side="right").astype(np.int32)


def histogram(rows: Rows, n_bins: int) -> Sums:
    """How many rows every bin holds, and how much they weigh."""
    counts = np.bincount(rows.code, minlength=n_bins)
    weights = counts.astype(float)
    if rows.w is not None:
        weights = np.bincount(rows.code, rows.w, minlength=n_bins)
    return Sums(counts, weights)


def all_rows(rows: Rows) -> Keyed:
    """All rows of a chunk, in one bin."""
    code, number = np.zeros(rows.size, np.intp), rows.first + np.arange(rows.size)
    return Keyed(rows.x_key, rows.y_key, weights_of(rows), code, number)


def rows_in_bins(rows: Rows, wanted: Array) -> Keyed:
    """The rows of a chunk that fall into some of the bins."""
    chosen = np.flatnonzero(wanted[rows.code])
    if not len(chosen):
        nothing = np.empty(0)
        return Keyed(nothing, nothing, nothing, rows.code[:0], chosen)
    w = np.ones(len(chosen)) if rows.w is None else rows.w[chosen]
    code, number = rows.code[chosen], rows.first + chosen
    return Keyed(rows.x_key[chosen], rows.y_key[chosen], w, code, number).collapsed()


def gather(chunks: Chunks, name: str, numbers: Indices) -> Array:
    """What the rows of these numbers have under a name."""
    distinct, places = np.unique(numbers, return_inverse=True)
    found = chunks.total(rows_at, name, distinct).values[0]
    return np.concatenate(found)[places] if len(found) > 1 else found[0][places]


def rows_at(rows: Rows, name: str, numbers: Indices) -> Sums:
    """The same of one chunk, for those numbers that are its own, which rise."""
    own = slice(*np.searchsorted(numbers, [rows.first, rows.first + rows.size]))
    here = numbers[own] - rows.first
    return Sums([rows.at(name, here)] if len(here) else [])


def draw_features(
    chunks: Chunks, order: Order, sampler: Sampler, name: str, n_features: int, rng: Generator
) -> FeatureMap:
    """Draw features of x or φ, showing the sampler as many rows as it asks for."""
    drawn = order.draw(sampler.n_rows(n_features), rng)
    Z, Y = gather(chunks, name, drawn), gather(chunks, "y", drawn)
    return sampler.sample(np.ascontiguousarray(Z[:, :-1]), Y, n_features, rng)
