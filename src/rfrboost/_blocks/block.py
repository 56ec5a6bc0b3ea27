"""A block of rows as a user hands it in: with a name for error messages, and how to cut it."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

# Rows that are read at a time unless the user says otherwise: the length of a chunk.
BLOCK_ROWS = 65_536


class NamedBlock(NamedTuple):
    """Rows X, their targets y and weights w (or None), and what errors call the block."""

    name: str
    X: Any
    y: Any
    w: Any


def rows_of(X: Any, rows: slice) -> Any:
    """Some rows of a data frame, a sparse matrix or an array.

    Rows of an array are copied: a view would keep the whole array, or a memory map's pages, alive.
    """
    if hasattr(X, "iloc"):
        return X.iloc[rows].copy()
    if sparse.issparse(X):
        return X.tocsr()[rows]
    return X[rows] if hasattr(X, "columns") else np.array(X[rows])
