"""A first pass over row blocks: the number of rows, and evenly spaced rows as a sample.

If the rows are few, the sample is all of them. Encoders of large tables are fitted to the sample.
A column must hold the same kind of values in all blocks: numbers in one and text in another would
silently become text when the blocks are concatenated.
"""

import sys
import warnings
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rfrboost._blocks.block import rows_of
from rfrboost._blocks.reader import BlockArrays, naming
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._tables.table import CONVERSIONS, KIND_WORDS, NOTHING, read_table


class BlockSample:
    """The rows whose indices are multiples of ``every``, and the number ``n_rows`` of all rows.

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
        first = SameColumns()
        for block in source.blocks.labelled():
            X, y, w = source.unread(block)
            with naming(block):
                first.check(contents_of(X))
            self._add(X, y, w)
            if perf_counter() >= deadline:
                warn_of_unread(self.n_rows)
                self.complete = False
                break
        self.largest_weight = source.largest_weight

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


class Contents(NamedTuple):
    """What a block holds: the kind of its table, the names of its columns in errors, their kinds.

    Sparse matrices, arrays of numbers and blocks without rows name no columns.
    """

    table: str
    columns: tuple[str, ...]
    kinds: tuple[str, ...]


def contents_of(X: Any) -> Contents:
    """What the X of a block holds."""
    if sparse.issparse(X) or not np.shape(X)[0]:
        return Contents(kind_of(X), (), ())
    table = read_table(X)
    if table.array is not None:
        return Contents(kind_of(X), (), ())
    columns = [table.column(j) for j in range(table.shape[1])]
    return Contents(kind_of(X), tuple(c.label for c in columns), tuple(c.kind for c in columns))


class SameColumns:
    """Refuses blocks that are not like those before; columns without values agree with all."""

    def __init__(self) -> None:
        self.table = ""
        self.kinds: dict[str, str] = {}

    def check(self, found: Contents) -> None:
        """Refuse a block of another kind of table, or with a column of another kind."""
        self.table = self.table or found.table
        if found.table != self.table:
            raise ValueError(f"X is {found.table}, but {self.table} in the first block.")
        for column, kind in zip(found.columns, found.kinds, strict=True):
            known = self.kinds.setdefault(column, kind)
            if NOTHING in (kind, known):
                self.kinds[column] = known if kind == NOTHING else kind
            elif kind != known:
                raise ValueError(
                    f"{column} holds {KIND_WORDS[kind]}, but {KIND_WORDS[known]} in the blocks "
                    f"before: {CONVERSIONS.get(known, 'make it one type in all of them')}."
                )


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
        with warnings.catch_warnings():
            # pandas 2 warns that columns which are empty in a block will have another type. That
            # does not matter, because columns are read by what is in their cells.
            warnings.simplefilter("ignore", FutureWarning)
            return sys.modules[library_of(parts[0])].concat(list(parts))
    return np.concatenate(parts)
