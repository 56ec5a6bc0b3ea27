"""Units and limits of rows: how large inputs may be, which weights count, the unit of targets.

A fit squares inputs, weights and targets and multiplies the squares. What is here keeps these
products finite without changing a result: too large inputs are refused, weights and targets are
divided by powers of two, which costs no rounding. Arrays are X (n, D), y (n, k) and w (n,).
"""

from dataclasses import dataclass

import numpy as np

from rfrboost._numerics.sizes import LARGEST_INPUT
from rfrboost._rows.chunks import Chunk, Chunks, Sums, weighted_sums
from rfrboost._typing import Array

# The share of the largest weight up to which a weight counts as zero. Rounding loses such a row in
# every sum, and products with its weight may underflow.
NEGLIGIBLE_WEIGHT = 1e-60
# The least unit of targets, as a share of their largest deviation from the mean: no target is then
# more than a million units away from it.
SMALLEST_SPREAD = 1e-6


def check_inputs(X: Array, names: list[str] | None = None) -> None:
    """Refuse an X with a column so large that squared distances between rows overflow."""
    check_extent(np.maximum(X.max(axis=0), -X.min(axis=0)).astype(float), names)


def check_extent(largest: Array, names: list[str] | None) -> None:
    """Refuse columns by the largest absolute value of each, an array (D,)."""
    if (largest > LARGEST_INPUT).any():
        j = int(np.argmax(largest))
        raise ValueError(
            f"Column {j if names is None else repr(names[j])} of X holds values as large as "
            f"{largest[j]:.3g}; beyond {LARGEST_INPUT:g} distances between rows overflow. "
            "Rescale it, for example with sklearn.preprocessing.StandardScaler."
        )


def present_rows(sample_weight: Array | None, n_rows: int) -> Array:
    """Which rows have a weight that counts, as n_rows booleans."""
    if sample_weight is None or not sample_weight.max() > 0:
        return np.ones(n_rows, bool)
    present: Array = np.ldexp(sample_weight, -np.frexp(sample_weight.max())[1]) > NEGLIGIBLE_WEIGHT
    return present


def weighted_rows(
    X: Array, y: Array, sample_weight: Array | None
) -> tuple[Array, Array, Array | None]:
    """X, y and weights of the rows whose weight counts; the largest weight is between ½ and 1."""
    if sample_weight is None:
        return X, y, None
    # Divided by a power of two, so that equal weights of any size give the same bits.
    w = np.ldexp(sample_weight, -np.frexp(sample_weight.max())[1])
    present = w > NEGLIGIBLE_WEIGHT
    if not present.any():
        raise ValueError("sample_weight is zero for every row: there is nothing to fit.")
    return (X, y, w) if present.all() else (X[present], y[present], w[present])


def at_rows(values: Array, kept: Array, n_rows: int) -> Array:
    """The values of the rows that were kept, at their places among all rows; NaN elsewhere."""
    everywhere = np.full((n_rows, values.shape[1]), np.nan)
    everywhere[kept] = values
    return everywhere


def coded(codes: np.ndarray, n_classes: int) -> Array:
    """Classes numbered from 0 as losses take them: a column of 0 and 1 for two, else one-hot."""
    return codes[:, None].astype(float) if n_classes == 2 else np.eye(n_classes)[codes]


@dataclass(frozen=True)
class TargetScale:
    """The unit of targets: y = shift + scale·(what is fitted), shift an array (k,).

    Losses that depend on raw − y alone commute with this, so that it changes no result. It keeps
    targets of any size away from overflow.
    """

    shift: Array
    scale: float

    def shrink(self, y: Array) -> Array:
        """Targets in the unit of the fit."""
        return (y - self.shift) / self.scale

    def grow(self, raw: Array) -> Array:
        """Raw predictions in the unit of y."""
        return raw * self.scale + self.shift


#: targets as they are
NO_SCALE = TargetScale(np.zeros(1), 1.0)


def target_scale(chunks: Chunks) -> TargetScale:
    """Each output's mean, and the power of two next to the standard deviation of all outputs."""
    low = chunks.facts.y_low
    high = chunks.facts.y_high
    largest = max(float(high.max()), -float(low.min())) or 1.0
    total, weight = chunks.total(power_sums, 0.0, largest, 1).values
    shift = largest * (total / weight)
    spread = float(np.maximum(high - shift, shift - low).max())
    if not spread > 0:
        return TargetScale(shift, power_of_two(float(np.log2(largest))))
    total, weight = chunks.total(power_sums, shift, spread, 2).values
    relative = np.sqrt((total / weight).mean())
    exponent = np.log2(spread) + np.log2(max(relative, SMALLEST_SPREAD))
    return TargetScale(shift, power_of_two(exponent))


def power_sums(chunk: Chunk, shift: Array, scale: float, power: int) -> Sums:
    """Σw·((y − shift)/scale)^power of every output, and Σw."""
    return weighted_sums(((chunk.y - shift) / scale) ** power, chunk.w)


def power_of_two(exponent: float) -> float:
    """2 to the nearest whole exponent, within what a float can hold with room for products."""
    return float(2.0 ** np.clip(np.round(exponent), -1000, 1000))
