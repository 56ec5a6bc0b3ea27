"""TODO _rows.targets."""

from dataclasses import dataclass

import numpy as np

from rfrboost._rows.chunks import Chunk, Chunks, Sums, weighted_sums
from rfrboost._typing import Array

# A weight this small beside the largest one is none.
NEGLIGIBLE_WEIGHT = 1e-60


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


def shrunk_sums(chunk: Chunk, shift: Array, scale: float) -> Sums:
    """Σw·(y − shift)/scale, and Σw."""
    return weighted_sums((chunk.y - shift) / scale, chunk.w)


def square_sums(chunk: Chunk, shift: Array, scale: float) -> Sums:
    """Σw·((y − shift)/scale)², and Σw."""
    return weighted_sums(((chunk.y - shift) / scale) ** 2, chunk.w)


def power_of_two(exponent: float) -> float:
    return float(2.0 ** np.clip(np.round(exponent), -1000, 1000))


NO_SCALE = TargetScale(np.zeros(1), 1.0)


def coded(codes: np.ndarray, n_classes: int) -> Array:
    """Numbers of classes as losses have them: 0 and 1 in one column, or a column a class."""
    return codes[:, None].astype(float) if n_classes == 2 else np.eye(n_classes)[codes]


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
