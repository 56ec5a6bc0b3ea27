"""The layout of matrices for compiled sums: tiles that fit into a processor's first cache."""

import numpy as np

from rfrboost._typing import Array

# Features of a tile, which are computed together.
PIECE = 256


def tiled(A: Array) -> Array:
    """The columns of A (q, p) in tiles (pieces, q, PIECE); the last is filled with zeros."""
    q, p = A.shape
    pieces = -(-p // PIECE)
    filled = np.zeros((q, pieces * PIECE), A.dtype)
    filled[:, :p] = A
    return np.ascontiguousarray(filled.reshape(q, pieces, PIECE).transpose(1, 0, 2))
