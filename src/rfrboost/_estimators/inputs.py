"""What users hand in as X and y, at fit and afterwards: checked, and tables encoded."""

from typing import Any

import numpy as np
from numpy.random import default_rng
from scipy import sparse
from sklearn.utils.validation import _check_y, check_consistent_length, validate_data

from rfrboost._tables.encoder import Encoder
from rfrboost._tables.fit import fit_encoder
from rfrboost._typing import Array

DTYPES = [np.float64, np.float32]


# Deals rows out to the folds of target encodings, by their content.
ENCODING_SEED = 0


def read_arrays(estimator: Any, X: Any, y: Any, task: str) -> tuple[Array, np.ndarray]:
    """X as finite numbers and y, for an estimator that takes X as it is."""
    numbers = task == "regression"
    return validate_data(estimator, X, y, dtype=DTYPES, multi_output=numbers, y_numeric=numbers)


def read_table_and_target(estimator: Any, X: Any, y: Any, task: str) -> tuple[Any, np.ndarray]:
    """X as a table that an encoder can read, and y."""
    numbers = task == "regression"
    if is_table(X):
        check_not_empty(X)
        validate_data(estimator, X, skip_check_array=True)
        y = _check_y(y, multi_output=numbers, y_numeric=numbers, estimator=estimator)
        check_consistent_length(X, y)
        return X, y
    return validate_data(
        estimator,
        X,
        y,
        dtype=DTYPES,
        accept_sparse=True,
        ensure_all_finite=False,
        multi_output=numbers,
        y_numeric=numbers,
    )


def encode_fit(X: Any, y: np.ndarray, w: Array | None, task: str) -> tuple[Encoder, Array]:
    """An encoder of such tables, and this one encoded."""
    return fit_encoder(X, y, w, task, default_rng(ENCODING_SEED))


def read_again(estimator: Any, X: Any, encoder: Encoder | None) -> Array:
    """X at prediction as the array that the network was fitted on."""
    if encoder is None:
        return validate_data(estimator, X, dtype=DTYPES, reset=False)
    if is_table(X):
        check_not_empty(X)
        validate_data(estimator, X, reset=False, skip_check_array=True)
        return encoder(X)
    return encoder(
        validate_data(
            estimator, X, dtype=DTYPES, accept_sparse=True, ensure_all_finite=False, reset=False
        )
    )


def is_table(X: Any) -> bool:
    """Whether X is a data frame, or holds anything but numbers."""
    if sparse.issparse(X):
        return False
    if hasattr(X, "columns"):
        return True
    try:
        return np.asarray(X).dtype.kind not in "biufc"
    except (TypeError, ValueError):
        # Rows of different lengths and the like: scikit-learn says what is wrong with them.
        return False


def check_not_empty(X: Any) -> None:
    """Refuse a table without rows or columns, in scikit-learn's words."""
    shape = np.shape(X)
    if len(shape) == 2 and 0 in shape:
        what = "sample(s)" if shape[0] == 0 else "feature(s)"
        raise ValueError(
            f"Found array with 0 {what} (shape={shape}) while a minimum of 1 is required."
        )
