"""Small helpers for arrays: read-only copies, sizes, and random keys of rows.

A fit in memory must not depend on the order of its rows. Wherever rows are drawn or dealt out, they
are therefore first put in an order that their content decides (:func:`content_order`). Where rows
are decided on one by one, that is by a random number of their place (:func:`hashed`). Sums that are
needed before that are rounded (:func:`coarse`).
"""

import numpy as np
from numpy.random import Generator

from rfrboost._numerics.sizes import BATCH_ROWS
from rfrboost._typing import Array, Indices


def frozen(array: Array) -> Array:
    """The array, contiguous and read-only: fitted models never change."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array


# Coarse numbers are multiples of about this share of a unit: far above the rounding errors of sums,
# and far below anything that matters.
COARSE = 2.0**-20


def coarse(values: Array, units: Array) -> Array:
    """Means rounded to multiples of a power of two, a millionth of their ``units``.

    A sum rounds differently in another order of rows, and what is chosen by random numbers can
    magnify that to percents of a prediction. A rounded mean is the same in every order.
    """
    with np.errstate(all="ignore"):
        steps = np.exp2(np.floor(np.log2(units))) * COARSE
        rounded = np.round(values / steps) * steps
    return np.where(np.isfinite(rounded), rounded, values)


def largest_entry(A: Array) -> float:
    """max|A|, without the copy that np.abs makes."""
    return float(max(A.max(), -A.min()))


def content_order(x: Array, y: Array, rng: Generator) -> Indices:
    """An order of rows that depends on their content alone: by a random projection of x, then y."""
    x_key, y_key = (projection(A, rng.standard_normal(A.shape[1:])) for A in (x, y))
    return np.lexsort((y_key, x_key))


def spacing(n_rows: int, most_rows: int) -> int:
    """Every how many of ``n_rows`` rows are taken so that there are at most ``most_rows``.

    It is a power of two, so that a sample can be thinned while rows are still being counted.
    """
    return 1 << max((-(-n_rows // most_rows) - 1).bit_length(), 0)


def projection(A: Array, direction: Array) -> Array:
    """A·direction, one number for each row (n,): the same bits for equal rows.

    Each row is summed by itself in a fixed order; a matrix product would round differently
    depending on where in the matrix a row is.
    """
    keys = np.empty(len(A))
    for begin in range(0, len(A), BATCH_ROWS):
        s = slice(begin, begin + BATCH_ROWS)
        keys[s] = (np.ascontiguousarray(A[s]) * direction).sum(axis=1)
    return keys


def hashed(keys: Array) -> Array:
    """Pseudo-random numbers in [0, 1), one for each key: equal for equal keys, else unrelated.

    The mixing steps are those of the splitmix64 generator.
    """
    # Adding zero turns −0.0 into 0.0, which is an equal key with other bits.
    bits = (keys + 0.0).view(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    # The upper 53 bits are as many as a double holds.
    return (bits >> np.uint64(11)) / 2.0**53
