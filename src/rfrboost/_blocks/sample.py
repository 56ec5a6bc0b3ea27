"""A first look at row blocks: how many rows there are, and evenly spaced ones of them."""

import sys
from typing import Any

import numpy as np
from scipy import sparse

from rfrboost._blocks.block import rows_of
from rfrboost._blocks.reader import BlockArrays, named
from rfrboost._numerics.sizes import SIZES, Sizes


class Glance:
    """Every ``every``-th row of some blocks, ``every`` a power of two, and how many there are.

    Which rows are kept depends on their numbers, not on how they are cut into blocks.
    """

    def __init__(self, source: BlockArrays, sizes: Sizes = SIZES) -> None:
        self.sizes = sizes
        self.n_rows = 0
        self.every = 1
        self._kept: list[tuple[Any, np.ndarray, np.ndarray | None]] = []
        kind = None
        for block in source.blocks.labelled():
            y, w = source.beside(block)
            kind = kind or kind_of(block.X)
            with named(block):
                if kind_of(block.X) != kind:
                    raise TypeError(f"X is {kind_of(block.X)}, but {kind} in the first block.")
            self._add(block.X, y, w)

    def _add(self, X: Any, y: np.ndarray, w: np.ndarray | None) -> None:
        begin, stop = -self.n_rows % self.every, len(y)
        self.n_rows += stop
        if begin < stop:
            some = slice(begin, None, self.every)
            self._kept.append((rows_of(X, some), y[some], None if w is None else w[some]))
        while -(-self.n_rows // self.every) > self.sizes.sampled_rows:
            self.every *= 2
            self._thin()

    def _thin(self) -> None:
        """Keep every other row of those kept."""
        kept, self._kept, number = self._kept, [], 0
        for X, y, w in kept:
            some = slice(number % 2, None, 2)
            number += len(y)
            if len(y[some]):
                self._kept.append((rows_of(X, some), y[some], None if w is None else w[some]))

    def sample(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """X, y and weights of the rows kept, X of the kind it came in."""
        if not self._kept:
            raise ValueError("There are no rows to fit: every block is empty.")
        X, y, w = zip(*self._kept, strict=True)
        return joined(X), np.concatenate(y), None if w[0] is None else np.concatenate(w)


def library_of(frame: Any) -> str:
    """pandas or polars."""
    return type(frame).__module__.partition(".")[0]


def kind_of(X: Any) -> str:
    """What can be put below each other."""
    if sparse.issparse(X):
        return "a sparse matrix"
    return f"a data frame of {library_of(X)}" if hasattr(X, "columns") else "an array"


def joined(parts: tuple[Any, ...]) -> Any:
    """Data frames of one library, sparse matrices or arrays, one below the other."""
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    if hasattr(parts[0], "columns"):
        # pandas and polars alike: the library is there if its frames are.
        return sys.modules[library_of(parts[0])].concat(list(parts))
    return np.concatenate(parts)
