"""Which rows of a table a time limit allows to fit: all of them, or a sample.

Reading, encoding and sorting a table takes time in proportion to its rows and columns, before the
first member is fitted. A few rows of some columns are encoded to see how long that takes. If all
rows would take more than ENCODING_SHARE of the time, a model is fitted on a sample of them. If X is
an array, the encoder is also fitted to fewer rows than it encodes: its medians and ranges are known
well from some of the rows, and take longest to find.
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

# The time that a row takes until members are fitted, as a multiple of its time in the trial: longer
# columns take longer to sort, and rows are copied afterwards. The second factor is for rows to
# which no encoder is fitted: checking and copying them takes as long as encoding them.
LONGER = 1.25
ENCODED_LONGER = 2.0

# The share of the time that encoding may take. Most of the time is for fitting.
ENCODING_SHARE = 0.4

# The share of that time which fitting an encoder may take, if it is fitted to fewer rows than it
# encodes.
STATISTICS_SHARE = 0.25

# The fewest rows of a sample, and the fewest that an encoder is fitted to: fewer save little time.
FEWEST_ROWS = 8192

# The time in seconds that stands for one too short to be measured, so that one can divide by it.
SHORTEST = 1e-9

# The seed by which rows are sampled: always the same, so that equal calls sample equal rows.
SEED = 0


def affordable_part(
    X: Any, y: np.ndarray, w: Array | None, task: str, deadline: float
) -> tuple[Any, np.ndarray, Array | None, Mask, int]:
    """X, y and weights of the rows to fit, a mask (n,) of these rows, and how many of them an
    encoder is to be fitted to.

    ``deadline`` is when the fit has to end, a reading of ``time.perf_counter``. The same share of
    the rows of every class is sampled, at least one row.
    """
    seen: Mask = np.ones(len(y), bool)
    encoded, fitted = affordable_rows(X, y, w, task, deadline)
    if encoded >= len(y):
        return X, y, w, seen, fitted
    has_classes = task == "classification" and y.ndim == 1
    rows = sample_of(y if has_classes else np.zeros(len(y)), encoded / len(y))
    if len(rows) == len(y):
        return X, y, w, seen, fitted
    warn_of_sample(len(rows), len(y))
    seen[:] = False
    seen[rows] = True
    return _safe_indexing(X, rows), y[rows], None if w is None else w[rows], seen, fitted


def affordable_rows(
    X: Any, y: np.ndarray, w: Array | None, task: str, deadline: float
) -> tuple[int, int]:
    """How many rows can be encoded in time, at least ``FEWEST_ROWS``; and how many of these the
    encoder can be fitted to."""
    n, D = np.shape(X)
    if n <= FEWEST_ROWS:
        return n, n
    rows = np.linspace(0, n - 1, TRIAL_ROWS).astype(np.intp)
    columns = np.unique(np.linspace(0, D - 1, min(D, TRIAL_COLUMNS)).astype(np.intp))
    some = _safe_indexing(_safe_indexing(X, rows), columns, axis=1)
    began = perf_counter()
    with warnings.catch_warnings():
        # Warnings about columns are given later, when the encoder of all rows is fitted.
        warnings.simplefilter("ignore")
        weights = None if w is None else w[rows]
        encoder, _ = fit_encoder(some, y[rows], weights, task, default_rng(SEED))
    ended = perf_counter()
    times = n_usable(X) / len(columns) / len(rows)
    to_fit = LONGER * times * max(ended - began, SHORTEST)
    left = ENCODING_SHARE * (deadline - ended)
    both = int(np.clip(left / to_fit, FEWEST_ROWS, n))
    # An encoder of categories is fitted to all rows that it encodes: some of them lack levels.
    if both == n or not isinstance(X, np.ndarray) or X.dtype == object:
        return both, both
    encoder(some, warn=False)
    to_encode = ENCODED_LONGER * times * max(perf_counter() - ended, SHORTEST)
    fitted = int(np.clip(STATISTICS_SHARE * left / to_fit, FEWEST_ROWS, n))
    encoded = int(np.clip((left - fitted * to_fit) / to_encode, 0, n))
    return (encoded, fitted) if encoded > both else (both, both)


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
