"""Compiled sums of leaf values: of a few rows split by split, of many rows by masks of leaves.

See :mod:`rfrboost._model.forest`, whose arrays these functions take.
"""

import numpy as np

from rfrboost._kernels.compile import EXACT, SUMS, compiled


@compiled(EXACT)
def add_followed(x, columns, thresholds, children, roots, values, total):  # type: ignore[no-untyped-def]
    """total += the values of the leaves that rows x (n, D) reach from all roots.

    ``children`` (2·splits,) are the two of each split, ``values`` (leaves, d).
    """
    splits = len(columns)
    d = values.shape[1]
    for i in range(len(x)):
        for root in roots:
            node = root
            while node < splits:
                node = children[2 * node + (x[i, columns[node]] > thresholds[node])]
            for j in range(d):
                total[i, j] += values[node - splits, j]


@compiled(SUMS)
def picked(values, bits, j):  # type: ignore[no-untyped-def]
    """Σ over trees of the value of output j of one leaf; bits from 52 on are 1023 + its place."""
    s = 0.0
    for t in range(len(bits)):
        s += values[j, t, (bits[t] >> 52) - 1023]
    return s


@compiled(EXACT)
def add_masked(above, columns, starts, rows, firsts, masks, values, total):  # type: ignore[no-untyped-def]
    """total += the values of the leaves of T trees.

    ``above`` (columns of the forest, n) says how many thresholds each row is above. Of the columns
    that these trees split by, ``columns`` are their indices there, ``starts`` where each begins in
    ``rows`` (the row of its table for each number of thresholds), ``firsts`` where its table begins
    in ``masks`` (rows of all tables, T). ``values`` are (d, T, 64).
    """
    T = masks.shape[1]
    left = np.empty(T, np.uint64)
    lowest = np.empty(T)
    bits = lowest.view(np.int64)
    for i in range(above.shape[1]):
        for t in range(T):
            left[t] = ~np.uint64(0)
        for c in range(len(columns)):
            row = masks[firsts[c] + rows[starts[c] + above[columns[c], i]]]
            for t in range(T):
                left[t] &= row[t]
        for t in range(T):
            # The lowest bit that is set is a power of two, whose exponent float64 has.
            lowest[t] = np.float64(left[t] & (~left[t] + np.uint64(1)))
        for j in range(len(values)):
            total[i, j] += picked(values, bits, j)
