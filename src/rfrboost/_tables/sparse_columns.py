"""Which columns of a large sparse matrix a model uses: those that say most about the target.

A model computes with ordinary arrays. A sparse matrix of 100,000 rows and 50,000 columns would take
40 GB as one. So columns are chosen first, by scikit-learn's F-test of each column by itself, as
many as an array of ``MOST_BYTES`` holds. The choice is made on the training rows without regard to
weights. Users who want another choice, or a projection such as ``TruncatedSVD``, apply it before.
"""

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_selection import f_classif, f_regression

from rfrboost._typing import Array, Indices

# A sparse matrix that would have more bytes than this (2 GiB) as an ordinary array loses columns.
LARGEST_DENSE = 2**31

# The most bytes (256 MiB) of the array of the columns that are then kept, and the fewest columns
# that are kept even if they take more.
MOST_BYTES = 2**28
FEWEST_COLUMNS = 64


def n_usable(X: Any) -> int:
    """How many columns of X a model may use: all, unless X is a sparse matrix that is too large."""
    n, D = np.shape(X)
    if not sparse.issparse(X) or 8 * n * D <= LARGEST_DENSE:
        return int(D)
    return int(min(D, max(MOST_BYTES // (8 * n), FEWEST_COLUMNS)))


def usable_columns(X: Any, y: np.ndarray, task: str) -> tuple[int, ...] | None:
    """The columns of X that a model uses, in rising order; None for all of them.

    ``y`` are numbers (n,) or (n, k), or labels (n,) or (n, L) if the task is classification.
    """
    n, D = X.shape
    k = n_usable(X)
    if k == D:
        return None
    scores = column_scores(X.tocsr().astype(float), y, task)
    warnings.warn(
        f"X is sparse and would take {8 * n * D / 2**30:.1f} GiB as an ordinary array: of its "
        f"{D:,} columns the model uses the {k:,} that say most about y, each by itself. Reduce the "
        "columns yourself, for example with sklearn.decomposition.TruncatedSVD, to use all.",
        UserWarning,
        stacklevel=2,
    )
    best: Indices = np.argsort(-scores, kind="stable")[:k]
    return tuple(np.sort(best).tolist())


def column_scores(X: Any, y: np.ndarray, task: str) -> Array:
    """The largest F-statistic of each column (D,) over the outputs; 0 where it does not vary."""
    X.data[np.isnan(X.data)] = 0.0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # Columns that do not vary have no statistic.
        warnings.simplefilter("ignore")
        if task == "classification" and y.ndim == 1:
            found = [f_classif(X, y)[0]]
        else:
            found = [f_regression(X, own)[0] for own in y.reshape(len(y), -1).T.astype(float)]
    scores: Array = np.nan_to_num(np.max(found, axis=0), nan=0.0)
    return scores
