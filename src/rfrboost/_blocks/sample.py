"""A first pass over row blocks: the number of rows, and evenly spaced rows as a sample.

If the rows are few, the sample is all of them. Encoders of large tables are fitted to the sample.
"""

import sys
import warnings
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from rfrboost._blocks.block import rows_of
from rfrboost._blocks.reader import BlockArrays, naming
from rfrboost._numerics.sizes import SIZES, Sizes


class BlockSample:
    """The rows whose numbers are multiples of ``every``, and the number ``n_rows`` of all rows.

    ``every`` is the least power of two that leaves at most ``Sizes.sampled_rows`` rows. Blocks
    beyond the ``deadline``, a reading of ``time.perf_counter``, are not read.
    """

    def __init__(self, source: BlockArrays, sizes: Sizes = SIZES, deadline: float = np.inf) -> None:
        self.sizes = sizes
        self.n_rows = 0
        self.complete = True
        self.n_workers = 1
        self.every = 1
        self._kept: list[tuple[Any, np.ndarray, np.ndarray | None]] = []
        kind = None
        for block in source.blocks.labelled():
            y, w = source.beside(block)
            kind = kind or kind_of(block.X)
            with naming(block):
                if kind_of(block.X) != kind:
                    raise TypeError(f"X is {kind_of(block.X)}, but {kind} in the first block.")
            self._add(block.X, y, w)
            if perf_counter() >= deadline:
                warn_of_unread(self.n_rows)
                self.complete = False
                break

    def _add(self, X: Any, y: np.ndarray, w: np.ndarray | None) -> None:
        """Count the rows of a block, and keep some of them."""
        begin = -self.n_rows % self.every
        self.n_rows += len(y)
        if begin < len(y):
            some = slice(begin, None, self.every)
            self._kept.append((rows_of(X, some), y[some], None if w is None else w[some]))
        while -(-self.n_rows // self.every) > self.sizes.sampled_rows:
            self.every *= 2
            self._thin()

    def _thin(self) -> None:
        """Drop every other row of those kept."""
        kept = self._kept
        self._kept = []
        number = 0
        for X, y, w in kept:
            some = slice(number % 2, None, 2)
            number += len(y)
            if len(y[some]):
                self._kept.append((rows_of(X, some), y[some], None if w is None else w[some]))

    def sample(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """X, y and weights of the rows kept; X is of the same type as in the blocks."""
        if not self._kept:
            raise ValueError("There are no rows to fit: every block is empty.")
        X, y, w = zip(*self._kept, strict=True)
        return concatenated(X), np.concatenate(y), None if w[0] is None else np.concatenate(w)


def warn_of_unread(n_rows: int) -> None:
    """Tell the user that a time limit ends the reading of blocks."""
    warnings.warn(
        f"max_seconds is too short to read all blocks: the model is fitted on the first {n_rows:,} "
        "rows. Allow more time to fit them all.",
        UserWarning,
        stacklevel=2,
    )


def library_of(frame: Any) -> str:
    """The library that a data frame is of: "pandas" or "polars"."""
    return type(frame).__module__.partition(".")[0]


def kind_of(X: Any) -> str:
    """The kind of table; tables of one kind can be concatenated."""
    if sparse.issparse(X):
        return "a sparse matrix"
    return f"a data frame of {library_of(X)}" if hasattr(X, "columns") else "an array"


def concatenated(parts: tuple[Any, ...]) -> Any:
    """Data frames of one library, sparse matrices or arrays as one table of all rows."""
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    if hasattr(parts[0], "columns"):
        # pandas and polars both have concat; the library is imported if its frames exist.
        return sys.modules[library_of(parts[0])].concat(list(parts))
    return np.concatenate(parts)
