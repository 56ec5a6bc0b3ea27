"""Row blocks as one encoded table, for automatic fits; it is much smaller than the rows themselves.

Blocks are encoded one at a time and written into an array of float64, 8 bytes for each number. The
array is in memory, or in a temporary file if it has more than ``Sizes.table_bytes``.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from rfrboost._numerics.arrays import spacing
from rfrboost._numerics.sizes import Sizes
from rfrboost._rows.spill import Spill, mapped
from rfrboost._typing import Array, Mask

#: X (m, D), y (m, k) and weights (m,) of a block's rows whose weight is not negligible, and a mask
#: of these among all its rows
Part = tuple[Array, Array, Array | None, Mask]


class EncodedTable(NamedTuple):
    """All rows whose weight is not negligible, encoded.

    ``x`` (n, D+1) has a last column of ones, y is (n, k). ``present`` is a mask of these rows among
    all rows.
    """

    x: Array
    y: Array
    w: Array | None
    present: Mask


def encoded_table(
    parts: Iterable[Part], n_rows: int, sample: Array | None, spill: Spill, sizes: Sizes
) -> EncodedTable:
    """Put all rows into one table; there are at most ``n_rows``.

    ``sample`` are the evenly spaced rows that the encoder was fitted to, encoded. Their target
    encodings are computed without their own targets. Other rows are encoded by the encoder, which
    does not know their targets either.
    """
    every = spacing(n_rows, sizes.sampled_rows)
    present = np.zeros(n_rows, bool)
    x: Array = np.empty((0, 0))
    y: Array = np.empty((0, 0))
    w: Array | None = None
    n = first = 0
    for X, Y, weights, counting in parts:
        stop = first + len(counting)
        check_length(stop, n_rows)
        if n == 0:
            x = room_for((n_rows, X.shape[1] + 1), spill, sizes)
            y = np.empty((n_rows, Y.shape[1]))
            w = None if weights is None else np.empty(n_rows)
        own = slice(n, n + len(Y))
        x[own, :-1] = X
        x[own, -1] = 1.0
        y[own] = Y
        if w is not None:
            w[own] = weights
        present[first:stop] = counting
        if sample is not None:
            places = first + np.flatnonzero(counting)
            sampled = np.flatnonzero(places % every == 0)
            x[n + sampled, :-1] = sample[places[sampled] // every]
        n += len(Y)
        first = stop
    check_length(first, n_rows, first == n_rows)
    if n == 0:
        raise ValueError("There are no rows to fit: every block is empty, or of weight zero.")
    return EncodedTable(x[:n], y[:n], None if w is None else w[:n], present)


def room_for(shape: tuple[int, int], spill: Spill, sizes: Sizes) -> Array:
    """Room for a table: in a temporary file if it is large and the disk budget allows it."""
    size = 8 * shape[0] * shape[1]
    if size > sizes.table_bytes and spill.take(size):
        return mapped(spill, shape)
    return np.empty(shape)


def check_length(seen: int, n_rows: int, equal: bool = True) -> None:
    """Refuse blocks that hold another number of rows than when they were first read."""
    if seen > n_rows or not equal:
        raise ValueError(
            f"The blocks held {n_rows} rows when they were first read and hold "
            f"{'more' if seen > n_rows else seen} now. They must give the same rows in every "
            "iteration."
        )
