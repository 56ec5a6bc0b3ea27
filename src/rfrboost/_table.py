"""A table, whatever it came in: data frame, array of numbers or objects, sparse matrix, lists."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from rfrboost._columns import Column, read_column
from rfrboost._edge import LARGEST_INPUT
from rfrboost._rows import BLOCK_ROWS
from rfrboost._typing import Array, Indices

# A sparse matrix that takes more than this when it is written out (2 GiB) is refused.
LARGEST_DENSE = 2**31


@dataclass(frozen=True)
class Table:
    """Columns by number, read when they are asked for.

    ``names`` are those of a data frame whose column names are all text, as scikit-learn has it;
    ``array`` is the whole table where it is an array of numbers, which then needs no reading.
    """

    shape: tuple[int, int]
    cells: Callable[[int], Any]
    names: tuple[str, ...] | None = None
    array: Array | None = None

    def label(self, j: int) -> str:
        """What errors call a column."""
        return f"Column {j if self.names is None else repr(self.names[j])}"

    def column(self, j: int) -> Column:
        """One column."""
        return read_column(self.cells(j), self.label(j))

    def number(self, j: int) -> Array:
        """One column of numbers, NaN for holes; infinities are refused."""
        x = self.column(j).numbers()
        self._check(x[:, None], [j])
        return x

    def numbers(self, columns: Sequence[int], out: Array) -> None:
        """Several columns of numbers, written to ``out``."""
        if self.array is None:
            for k, j in enumerate(columns):
                out[:, k] = self.column(j).numbers()
        else:
            for begin in range(0, len(out), BLOCK_ROWS):
                rows = slice(begin, begin + BLOCK_ROWS)
                out[rows] = self.array[rows][:, columns]
        self._check(out, columns)

    def _check(self, x: Array, columns: Sequence[int]) -> None:
        high = np.fmax.reduce(x, axis=0, initial=0.0)
        low = np.fmin.reduce(x, axis=0, initial=0.0)
        largest = np.maximum(high, -low)
        for k in np.flatnonzero(largest > LARGEST_INPUT)[:1]:
            raise ValueError(too_large(self.label(columns[k]), largest[k]))

    def rows(self, chosen: Indices) -> "Table":
        """The table of some of the rows."""
        if self.array is not None:
            return from_array(self.array[chosen])

        def cells(j: int) -> Any:
            column = self.cells(j)
            return column.iloc[chosen] if hasattr(column, "iloc") else column[chosen]

        return Table((len(chosen), self.shape[1]), cells, self.names)


def too_large(label: str, value: float) -> str:
    """What is wrong with a value that is infinite or nearly so."""
    if np.isinf(value):
        return f"{label} of X holds infinity; make it missing (NaN) or a number."
    return (
        f"{label} of X holds values as large as {value:.3g}; beyond {LARGEST_INPUT:g} "
        "sums over rows overflow. Rescale it, for example by a logarithm."
    )


def read_table(X: Any) -> Table:
    """The table that a user passed in."""
    if sparse.issparse(X):
        return from_sparse(X)
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        return from_frame(X)
    # Lists as objects: in an array of one type, numbers beside text would become text.
    return from_array(np.asarray(X) if hasattr(X, "__array__") else np.asarray(X, dtype=object))


def from_frame(X: Any) -> Table:
    """A data frame: anything with ``columns``, which it gives by name."""
    names = list(X.columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has several columns named {twice!r}; names must differ.")
    texts = tuple(map(str, names)) if all(isinstance(name, str) for name in names) else None
    return Table((len(X), len(names)), lambda j: X[names[j]], texts)


def from_array(X: np.ndarray) -> Table:
    """An array with two axes, of numbers or of objects."""
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead. Reshape your data either using "
            "array.reshape(-1, 1) if it has one column or array.reshape(1, -1) if it has one row."
        )
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: pass real and imaginary parts as columns.")
    plain = X if X.dtype.kind in "biuf" else None
    return Table((X.shape[0], X.shape[1]), lambda j: X[:, j], None, plain)


def from_sparse(X: Any) -> Table:
    """A sparse matrix, written out, if it is not too large for that."""
    size = 8 * X.shape[0] * X.shape[1]
    if size > LARGEST_DENSE:
        raise ValueError(
            f"X is sparse and would take {size / 2**30:.1f} GiB written out, more than the "
            f"{LARGEST_DENSE / 2**30:g} GiB allowed: reduce its columns first, for example with "
            "sklearn.decomposition.TruncatedSVD."
        )
    return from_array(X.toarray())
