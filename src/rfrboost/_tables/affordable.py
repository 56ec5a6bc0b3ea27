"""Which rows of a table a time limit allows to fit: all of them, or a sample.

Reading, encoding and sorting a table takes time in proportion to its rows and columns, before the
first member is fitted. A few rows of some columns are encoded to see how long that takes. If all
rows would take more than a share of the time, a model is fitted on a sample of them.
"""

import warnings
from time import perf_counter
from typing import Any

import numpy as np
from numpy.random import default_rng
from sklearn.utils import _safe_indexing

from rfrboost._tables.fit import fit_encoder
from rfrboost._tables.sparse_columns import n_usable
from rfrboost._typing import Array, Indices, Mask

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

# The shortest time, in seconds, that can be measured.
SHORTEST = 1e-9

# The seed by which rows are sampled.
SEED = 0


def affordable_part(
    X: Any, y: np.ndarray, w: Array | None, task: str, deadline: float
) -> tuple[Any, np.ndarray, Array | None, Mask]:
    """X, y and weights of the rows to fit, and a mask (n,) of these rows.

    ``deadline`` is when the fit has to end, a reading of ``time.perf_counter``. Of every class
    there is the same share of rows, at least one.
    """
    seen: Mask = np.ones(len(y), bool)
    share = affordable_share(X, y, w, task, deadline)
    if share >= 1:
        return X, y, w, seen
    has_classes = task == "classification" and y.ndim == 1
    rows = sample_of(y if has_classes else np.zeros(len(y)), share)
    if len(rows) == len(y):
        return X, y, w, seen
    warn_of_sample(len(rows), len(y))
    seen[:] = False
    seen[rows] = True
    return _safe_indexing(X, rows), y[rows], None if w is None else w[rows], seen


def affordable_share(X: Any, y: np.ndarray, w: Array | None, task: str, deadline: float) -> float:
    """The share of the rows that can be encoded in time, at least that of ``FEWEST_ROWS``; or 1."""
    n, D = np.shape(X)
    if n <= FEWEST_ROWS:
        return 1.0
    rows = np.linspace(0, n - 1, TRIAL_ROWS).astype(np.intp)
    columns = np.unique(np.linspace(0, D - 1, min(D, TRIAL_COLUMNS)).astype(np.intp))
    some = _safe_indexing(_safe_indexing(X, rows), columns, axis=1)
    began = perf_counter()
    with warnings.catch_warnings():
        # What is to be said of the columns is said of all rows.
        warnings.simplefilter("ignore")
        fit_encoder(some, y[rows], None if w is None else w[rows], task, default_rng(SEED))
    ended = perf_counter()
    expected = LONGER * (ended - began) * (n / len(rows)) * (n_usable(X) / len(columns))
    share = ENCODING_SHARE * (deadline - ended) / max(expected, SHORTEST)
    return float(max(min(share, 1.0), FEWEST_ROWS / n))


def sample_of(strata: np.ndarray, share: float) -> Indices:
    """A random share of the rows of every stratum (n,), rounded up, in rising order."""
    _, codes, counts = np.unique(strata, return_inverse=True, return_counts=True)
    order = default_rng(SEED).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    place = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    wanted = np.repeat(np.ceil(share * counts), counts)
    return np.sort(order[place < wanted])


def warn_of_sample(some: int, every: int) -> None:
    """Tell the user that a time limit leaves rows out."""
    warnings.warn(
        f"max_seconds is too short for all {every:,} rows: the model is fitted on a random sample "
        f"of {some:,}. Allow more time to fit them all.",
        UserWarning,
        stacklevel=2,
    )
