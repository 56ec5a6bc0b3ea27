"""A block of rows as a user hands it in, what errors call it, and some of its rows."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

#: rows that are read at a time where nobody says
BLOCK_ROWS = 65_536


class LabelledBlock(NamedTuple):
    """Rows X, targets y, and weights w or None."""

    label: str
    X: Any
    y: Any
    w: Any


def rows_of(X: Any, rows: slice) -> Any:
    """Some rows of a data frame, a sparse matrix or an array.

    Those of an array are copied: a view would keep all of it, and a memory map's pages too.
    """
    if hasattr(X, "iloc"):
        return X.iloc[rows].copy()
    if sparse.issparse(X):
        return X.tocsr()[rows]
    return X[rows] if hasattr(X, "columns") else np.array(X[rows])
