"""The edge: what users pass in becomes finite float arrays, or a ValueError saying what to do."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from rfrboost._chunks import Chunks, Sums, weighted_sums
from rfrboost._losses import Loss
from rfrboost._rows import Rows
from rfrboost._typing import Array

# Squares and products of squares of inputs up to this size stay finite in float64.
LARGEST_INPUT = 1e60
LARGEST_TARGET = 1e60
# A weight this small beside the largest one is none.
NEGLIGIBLE_WEIGHT = 1e-60


@dataclass(frozen=True)
class Data:
    """What a fit is given, as arrays: rows, targets (n, k), weights, and rows to stop by."""

    X: Array
    y: Array
    w: Array | None
    validation: tuple[Array, Array] | None = None


@dataclass(frozen=True)
class TargetScale:
    """y = shift + scale·(what is fitted).

    Losses of raw − y commute with this, so it changes no result; it keeps targets of any size
    away from overflow. The scale is a power of two and so costs no rounding.
    """

    shift: Array
    scale: float

    def shrink(self, y: Array) -> Array:
        return (y - self.shift) / self.scale

    def grow(self, raw: Array) -> Array:
        return raw * self.scale + self.shift


def target_scale(chunks: Chunks) -> TargetScale:
    """Mean and (as a power of two) standard deviation of all outputs together."""
    low, high = chunks.facts.y_low, chunks.facts.y_high
    largest = max(float(high.max()), -float(low.min())) or 1.0
    total, weight = chunks.total(shrunk_sums, 0.0, largest).values
    shift = largest * (total / weight)
    spread = float(np.maximum(high - shift, shift - low).max())
    if not spread > 0:
        return TargetScale(shift, power_of_two(float(np.log2(largest))))
    total, weight = chunks.total(square_sums, shift, spread).values
    relative = np.sqrt((total / weight).mean())
    exponent = np.log2(spread) + np.log2(max(relative, 1e-6))
    return TargetScale(shift, power_of_two(exponent))


def shrunk_sums(rows: Rows, shift: Array, scale: float) -> Sums:
    """Σw·(y − shift)/scale, and Σw."""
    return weighted_sums((rows.y - shift) / scale, rows.w)


def square_sums(rows: Rows, shift: Array, scale: float) -> Sums:
    """Σw·((y − shift)/scale)², and Σw."""
    return weighted_sums(((rows.y - shift) / scale) ** 2, rows.w)


def power_of_two(exponent: float) -> float:
    return float(2.0 ** np.clip(np.round(exponent), -1000, 1000))


NO_SCALE = TargetScale(np.zeros(1), 1.0)


def check_inputs(X: Array, names: list[str] | None = None) -> None:
    """Refuse columns so large that their squares cannot be summed."""
    check_extent(np.maximum(X.max(axis=0), -X.min(axis=0)).astype(float), names)


def check_extent(largest: Array, names: list[str] | None) -> None:
    """The same, given the largest value of every column."""
    if (largest > LARGEST_INPUT).any():
        j = int(np.argmax(largest))
        raise ValueError(
            f"Column {j if names is None else repr(names[j])} of X holds values as large as "
            f"{largest[j]:.3g}; beyond {LARGEST_INPUT:g} distances between rows overflow. "
            "Rescale it, for example with sklearn.preprocessing.StandardScaler."
        )


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


def coded(codes: np.ndarray, n_classes: int) -> Array:
    """Numbers of classes as losses have them: 0 and 1 in one column, or a column a class."""
    return codes[:, None].astype(float) if n_classes == 2 else np.eye(n_classes)[codes]


def is_auto(value: object) -> bool:
    """Whether a parameter is left to the data."""
    return isinstance(value, str) and value == "auto"


def present_rows(sample_weight: Array | None, n_rows: int) -> Array:
    """Which rows weigh anything."""
    if sample_weight is None or not sample_weight.max() > 0:
        return np.ones(n_rows, bool)
    return np.ldexp(sample_weight, -np.frexp(sample_weight.max())[1]) > NEGLIGIBLE_WEIGHT


def at_rows(values: Array, kept: Array, n_rows: int) -> Array:
    """Values of the rows that were kept, at their places among all; NaN elsewhere."""
    everywhere = np.full((n_rows, values.shape[1]), np.nan)
    everywhere[kept] = values
    return everywhere


def weighted_rows(
    X: Array, y: Array, sample_weight: Array | None
) -> tuple[Array, Array, Array | None]:
    """Drop rows of weight zero, which are as good as absent."""
    if sample_weight is None:
        return X, y, None
    # A power of two, so that equal weights of any size give the same bits.
    w = np.ldexp(sample_weight, -np.frexp(sample_weight.max())[1])
    present = w > NEGLIGIBLE_WEIGHT
    if not present.any():
        raise ValueError("sample_weight is zero for every row: there is nothing to fit.")
    return (X, y, w) if present.all() else (X[present], y[present], w[present])
