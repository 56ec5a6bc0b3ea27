"""The training rows, visited block by block.

All the algorithm knows of the data between two layers is one record a row: its input x, its
target y, its representation φ and its raw prediction. Blocks are of a fixed size, so that
sums over rows are taken in the same order whatever the data came in.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from rfrboost._features import FeatureMap, Sampler
from rfrboost._network import LayerFeatures
from rfrboost._typing import Array, Indices

BLOCK_ROWS = 4096
# Features kept between the two passes of a layer; the blocks beyond are computed twice.
KEPT_BYTES = 2**29


@dataclass(frozen=True)
class Block:
    """Views of consecutive rows. ``x`` and ``phi`` are homogeneous: their last column is one."""

    rows: slice
    x: Array
    y: Array
    w: Array | None
    phi: Array
    raw: Array


@dataclass
class Rows:
    """Rows in memory: x (n, D+1), y (n, k), weights, and the state of the algorithm on them.

    ``parts`` cuts them into equal runs, one a layer, for sample splitting; ``part`` says which
    one the present layer is fitted on. ``order`` sorts the rows by their content, so that what
    is drawn depends on which rows there are and how much they weigh, not on how they are laid out.
    """

    x: Array
    y: Array
    w: Array | None
    order: Indices
    parts: int = 1
    part: int = 0
    phi: Array = field(init=False)
    raw: Array = field(init=False)
    largest_x: float = field(init=False)

    def __post_init__(self) -> None:
        self.y = np.asfortranarray(self.y)
        self.largest_x = largest_entry(self.x)
        self._buffers: dict[tuple[int, int], Array] = {}
        self._kept_for: LayerFeatures | None = None
        self._computed: set[tuple[int, int]] = set()

    def start(self, phi: Array, n_outputs: int) -> None:
        """Set Φ₀ and make room for predictions."""
        self.phi = phi
        # Column by column: what losses do across a row's few outputs is then fast.
        self.raw = np.empty((len(phi), n_outputs), order="F")

    def blocks(self, first: int = 0, stop: int | None = None) -> Iterator[Block]:
        """All rows, or a run of them."""
        stop = len(self.y) if stop is None else stop
        for begin in range(first, stop, BLOCK_ROWS):
            s = slice(begin, min(begin + BLOCK_ROWS, stop))
            w = None if self.w is None else self.w[s]
            yield Block(s, self.x[s], self.y[s], w, self.phi[s], self.raw[s])

    def fitting_blocks(self) -> Iterator[Block]:
        """The rows the present layer is fitted on: all, or one part."""
        size = len(self.y) // self.parts
        return (
            self.blocks(self.part * size, (self.part + 1) * size)
            if self.parts > 1
            else self.blocks()
        )

    def fitting_weight(self) -> float:
        """Σw over those rows."""
        return sum(len(b.y) if b.w is None else float(b.w.sum()) for b in self.fitting_blocks())

    def draw(self, size: int, rng: Generator) -> Indices:
        """Indices of ``size`` rows to fit on, drawn with replacement, in proportion to weight."""
        n = len(self.y) // self.parts
        order = self.order[self.part * n : (self.part + 1) * n] if self.parts > 1 else self.order
        u = rng.random(size)
        if self.w is None:
            return order[(u * len(order)).astype(np.intp)]
        cumulative = np.cumsum(self.w[order])
        return order[np.searchsorted(cumulative, u * cumulative[-1], side="right")]

    def sample(self, sampler: Sampler, z: Array, n_features: int, rng: Generator) -> FeatureMap:
        """Draw features of ``z`` (x or Φ), showing the sampler as many rows as it asks for."""
        drawn = self.draw(sampler.n_rows(n_features), rng)
        return sampler.sample(z[drawn, :-1], self.y[drawn], n_features, rng)

    def features(self, block: Block, layer: LayerFeatures) -> Array:
        """f_t on a block; computed once a layer for as many rows as there is room to keep."""
        if layer is not self._kept_for:
            self._kept_for, self._computed = layer, set()
        rows = (block.rows.start, block.rows.stop)
        kept = block.rows.stop * layer.width * layer.dtype.itemsize <= KEPT_BYTES
        out = self._buffer(rows if kept else (0, 0), (len(block.y), layer.width), layer.dtype)
        if rows not in self._computed:
            layer(block.phi, block.x, out)
        if kept:
            self._computed.add(rows)
        return out

    def _buffer(self, key: tuple[int, int], shape: tuple[int, int], dtype: np.dtype) -> Array:
        """Room for a block's features, used again by the next layer."""
        buffer = self._buffers.get(key)
        if buffer is None or buffer.shape != shape or buffer.dtype != dtype:
            buffer = self._buffers[key] = np.empty(shape, dtype, order="F")
        return buffer


def largest_entry(A: Array) -> float:
    """max|A|, without the copy that np.abs makes."""
    return float(max(A.max(), -A.min()))


def content_order(x: Array, y: Array, rng: Generator) -> Indices:
    """An order of rows that depends on their content alone: by a random projection of x, then y.

    Rows are summed one by one in a fixed way, so that equal rows get equal keys.
    """
    x_direction, y_direction = rng.standard_normal(x.shape[1]), rng.standard_normal(y.shape[1])
    x_key, y_key = np.empty(len(x)), np.empty(len(x))
    for begin in range(0, len(x), BLOCK_ROWS):
        s = slice(begin, begin + BLOCK_ROWS)
        x_key[s] = (x[s] * x_direction).sum(axis=1)
        y_key[s] = (y[s] * y_direction).sum(axis=1)
    return np.lexsort((y_key, x_key))
