"""Which rows of a table a time limit allows to fit: all of them, or a sample.

Reading, encoding and sorting a table takes time in proportion to its rows and columns, before the
first member is fitted. A few rows of some columns are encoded to see how long that takes. If all
rows would take more than a share of the time, a model is fitted on a sample of them.
"""

from time import perf_counter
from typing import Any

import numpy as np
from numpy.random import default_rng
from sklearn.utils import _safe_indexing

from rfrboost._tables.fit import fit_encoder
from rfrboost._typing import Array, Indices

# Rows and columns of the trial, spread evenly over the table.
TRIAL_ROWS = 2048
TRIAL_COLUMNS = 64

# How many times as long as in the trial a row takes until members are fitted: columns of many rows
# take longer to sort, and rows are copied afterwards.
LONGER = 1.25

# The share of the time that encoding may take. Most of the time is for fitting.
ENCODING_SHARE = 0.4

# The fewest rows of a sample: fewer save little time.
FEWEST_ROWS = 8192

# The seed by which rows are sampled.
SEED = 0


def affordable_rows(
    X: Any, y: np.ndarray, w: Array | None, task: str, deadline: float
) -> Indices | None:
    """The rows to fit, in rising order; None for all of them.

    ``deadline`` is when the fit has to end, a reading of ``time.perf_counter``. Of every class
    there is the same share of rows, at least one.
    """
    n, D = np.shape(X)
    if n <= FEWEST_ROWS:
        return None
    rows = np.linspace(0, n - 1, TRIAL_ROWS).astype(np.intp)
    columns = np.unique(np.linspace(0, D - 1, min(D, TRIAL_COLUMNS)).astype(np.intp))
    some = _safe_indexing(_safe_indexing(X, rows), columns, axis=1)
    began = perf_counter()
    fit_encoder(some, y[rows], None if w is None else w[rows], task, default_rng(SEED))
    ended = perf_counter()
    expected = LONGER * (ended - began) * (n / len(rows)) * (D / len(columns))
    share = ENCODING_SHARE * (deadline - ended) / max(expected, 1e-9)
    if share >= 1:
        return None
    strata = y if task == "classification" else np.zeros(n)
    return sample_of(strata, max(share, FEWEST_ROWS / n))


def sample_of(strata: np.ndarray, share: float) -> Indices:
    """A random share of the rows of every stratum (n,), rounded up, in rising order."""
    _, codes, counts = np.unique(strata, return_inverse=True, return_counts=True)
    order = default_rng(SEED).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    place = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    wanted = np.repeat(np.ceil(share * counts), counts)
    return np.sort(order[place < wanted])
