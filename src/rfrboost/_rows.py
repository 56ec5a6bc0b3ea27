"""A chunk of the training rows, visited block by block.

All the algorithm knows of the data between two layers is one record a row: its input x, its
target y, its representation φ and a few numbers made of them. Blocks are of a fixed size, so that
sums over rows are taken in the same order whatever the data came in.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from rfrboost._network import LayerFeatures
from rfrboost._typing import Array, Indices

BLOCK_ROWS = 4096
# Features kept between the two passes of a layer; the blocks beyond are computed twice.
KEPT_BYTES = 2**29


class Rows:
    """Consecutive rows, the first of which is number ``first`` of all.

    ``x`` (n, D+1) and ``phi`` are homogeneous: their last column is one. ``raw``, ``outputs`` and
    ``moves`` are of use within a step only; ``x_key``, ``y_key`` and ``code`` order the rows.
    ``parts`` cuts them into equal runs, one a layer, for sample splitting; ``part`` says which
    one the present layer is fitted on.
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

    def __init__(self, first: int, size: int, kept: "KeptFeatures", parts: int = 1) -> None:
        self.first, self.size = first, size
        self.parts, self.part = parts, 0
        self._kept = kept

    def blocks(self, first: int = 0, stop: int | None = None) -> Iterator["Block"]:
        """All rows, or a run of them."""
        stop = self.size if stop is None else stop
        for begin in range(first, stop, BLOCK_ROWS):
            yield Block(self, slice(begin, min(begin + BLOCK_ROWS, stop)))

    def fitting_blocks(self) -> Iterator["Block"]:
        """The rows the present layer is fitted on: all, or one part."""
        size = self.size // self.parts
        return self.blocks(self.part * size, (self.part + 1) * size)

    def features(self, block: "Block", layer: LayerFeatures) -> Array:
        """f_t on a block; computed once a layer for as many rows as there is room to keep."""
        return self._kept.features(self.first, block, layer)

    def at(self, name: str, rows: Indices) -> Array:
        """What some of the rows have under a name."""
        return getattr(self, name)[rows]


@dataclass(frozen=True)
class Block:
    """Views of consecutive rows of a chunk, looked up when they are asked for."""

    chunk: Rows
    rows: slice

    @property
    def x(self) -> Array:
        return self.chunk.x[self.rows]

    @property
    def y(self) -> Array:
        return self.chunk.y[self.rows]

    @property
    def w(self) -> Array | None:
        return None if self.chunk.w is None else self.chunk.w[self.rows]

    @property
    def phi(self) -> Array:
        return self.chunk.phi[self.rows]

    def __len__(self) -> int:
        return self.rows.stop - self.rows.start


@dataclass(eq=False)
class KeptFeatures:
    """Features f_t of the first blocks of all, as many as there is room for; none if not ``room``.

    One for all chunks of a fit: the room is shared, and so is the place where the features of a
    block that is not kept are written.
    """

    room: bool = True
    buffers: dict[tuple[int, int], Array] = field(default_factory=dict)
    computed: set[tuple[int, int]] = field(default_factory=set)
    layer: LayerFeatures | None = None

    def features(self, first: int, block: Block, layer: LayerFeatures) -> Array:
        """f_t on a block of the chunk that begins with row number ``first``."""
        if layer is not self.layer:
            self.layer, self.computed = layer, set()
        rows = (first + block.rows.start, first + block.rows.stop)
        kept = self.room and rows[1] * layer.width * layer.dtype.itemsize <= KEPT_BYTES
        out = self._buffer(rows if kept else (0, 0), (len(block), layer.width), layer.dtype)
        if rows not in self.computed:
            layer(block.phi, block.x, out)
        if kept:
            self.computed.add(rows)
        return out

    def _buffer(self, key: tuple[int, int], shape: tuple[int, int], dtype: np.dtype) -> Array:
        """Room for a block's features, used again by the next layer."""
        buffer = self.buffers.get(key)
        if buffer is None or buffer.shape != shape or buffer.dtype != dtype:
            buffer = self.buffers[key] = np.empty(shape, dtype, order="F")
        return buffer


def largest_entry(A: Array) -> float:
    """max|A|, without the copy that np.abs makes."""
    return float(max(A.max(), -A.min()))


def content_order(x: Array, y: Array, rng: Generator) -> Indices:
    """An order of rows that depends on their content alone: by a random projection of x, then y."""
    x_key, y_key = (projection(A, rng.standard_normal(A.shape[1:])) for A in (x, y))
    return np.lexsort((y_key, x_key))


def projection(A: Array, direction: Array) -> Array:
    """A number for every row, the same for equal rows: each is summed by itself in a fixed way."""
    keys = np.empty(len(A))
    for begin in range(0, len(A), BLOCK_ROWS):
        s = slice(begin, begin + BLOCK_ROWS)
        keys[s] = (np.ascontiguousarray(A[s]) * direction).sum(axis=1)
    return keys
