"""The edge: what users pass in becomes finite float arrays, or a ValueError saying what to do."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from rfrboost._model.losses import Loss
from rfrboost._typing import Array

LARGEST_TARGET = 1e60


@dataclass(frozen=True)
class Data:
    """What a fit is given, as arrays: rows, targets (n, k), weights, and rows to stop by."""

    X: Array
    y: Array
    w: Array | None
    validation: tuple[Array, Array] | None = None


def check_targets(y: Array, loss: Loss) -> None:
    """Refuse targets outside the loss's range, or too large for a loss that cannot rescale them."""
    loss.check(y)
    largest = np.abs(y).max()
    if loss.degree is None and largest > LARGEST_TARGET:
        raise ValueError(
            f"y holds values as large as {largest:.3g}; {type(loss).__name__} works in the units "
            f"of y and overflows beyond {LARGEST_TARGET:g}. Rescale y, or use loss='squared_error'."
        )


def refuse_validation(data: Data) -> None:
    """Rows to stop by are of use only where held-out rows decide."""
    if data.validation is not None:
        raise ValueError(
            "X_val and y_val say when to stop adding layers, but this fit has a fixed number of "
            "them: n_layers is a number, or there are fewer than 50 rows. Leave them out."
        )


def check_validation_pair(X_val: Any, y_val: Any) -> bool:
    """Whether there are rows to stop by; refuses one without the other, or of another length."""
    if (X_val is None) != (y_val is None):
        given, missing = ("y_val", "X_val") if X_val is None else ("X_val", "y_val")
        raise ValueError(f"{given} was passed without {missing}; pass both, or neither.")
    if X_val is not None and _num_samples(X_val) != _num_samples(y_val):
        raise ValueError(
            f"X_val has {_num_samples(X_val)} rows, but y_val has {_num_samples(y_val)}."
        )
    return X_val is not None
