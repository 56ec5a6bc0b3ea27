"""Local features: bumps around training rows, in a learned metric.

A bump is exp(−distance/width) of the distance to a centre. Two distances, each divided by its
median between training rows, do well on different tables, so a bump is a mixture of both:
the Euclidean one in the metric L, ‖(x − c)L‖, and the sum of absolute differences column by
column, each stretched by its length in L, which sees columns one at a time as trees do.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import column_scales, product, squared_distances, stretched
from rfrboost._typing import Array

# Bytes of absolute differences at a time while they are added up: few enough to stay in a cache.
ROOM = 2**19


# Columns of squared distances that are looked through at a time.
CHUNK = 64


# Squared distances below this share of the squared norms are rounding in single precision.
ROUNDING = np.float32(4 * 2.0**-24)


# Close rows' squares cancel: their distances keep little more than half of the digits.
CLOSE_ROWS = 2.0**8


# Distances below this share of the median one have no direction.
CLOSEST = 1e-6


# Coordinates beyond this many units are as good as this far: their squares fit single precision.
FARTHEST = 1e15


# The largest coordinate of a centre, in the units of x.
LARGEST = 1e38


# Rows closer than this differ by nothing that a unit could be made of.
NOTHING = 1e-100


@dataclass(frozen=True)
class Distances:
    """The two distances between rows x (without their 1), in units of their medians.

    ``L`` is the metric, (D, D) or its diagonal. A column of two values, ``spans`` apart, adds its
    squared difference over that span: the same number for these values, by a matrix product.
    """

    L: Array
    spans: Array
    euclidean_unit: float = 1.0
    absolute_unit: float = 1.0

    def euclidean(self, A: Array, B: Array, dtype: DTypeLike = np.float32) -> Array:
        A, B = (single(stretched(X, self.L) / self.euclidean_unit) for X in (A, B))
        squared = squares(A.astype(dtype, copy=False), B.astype(dtype, copy=False))
        return np.sqrt(squared, out=squared)

    def absolute(self, A: Array, B: Array, dtype: DTypeLike = np.float32) -> Array:
        scales, two = column_scales(self.L) / self.absolute_unit, self.spans > 0
        roots = np.sqrt(scales[two]) / np.sqrt(self.spans[two])
        total = np.zeros((len(A), len(B)), dtype)
        if two.any():
            both = (single(X[:, two] * roots).astype(dtype, copy=False) for X in (A, B))
            total += squares(*both)
        A, B = (single(X[:, ~two] * scales[~two]).astype(dtype, copy=False) for X in (A, B))
        add_absolute(total, A, np.ascontiguousarray(B.T))
        return total


def squares(A: Array, B: Array) -> Array:
    """Squared distances of rows in single precision; 0 where their rounding could have made them.

    They are summed in the precision that the rows come in.
    """
    squared = squared_distances(A, B)
    a, b = (ROUNDING * np.einsum("ij,ij->i", X, X) for X in (A, B))
    for begin in range(0, len(B), CHUNK):
        part = squared[:, begin : begin + CHUNK]
        part *= part > a[:, None] + b[begin : begin + CHUNK]
    return squared


def single(A: Array, largest: float = FARTHEST) -> Array:
    """Coordinates in single precision, unless told otherwise none of them too large to square."""
    return np.clip(A, -largest, largest).astype(np.float32)


def add_absolute(total: Array, A: Array, Bt: Array) -> None:
    """total += Σ_j |a_j − b_j|, chunk by chunk of rows."""
    rows = max(ROOM // max(total.shape[1] * total.itemsize, 1), 1)
    room = np.empty((min(rows, len(A)), total.shape[1]), total.dtype)
    for begin in range(0, len(A), rows):
        part = total[begin : begin + rows]
        difference = room[: len(part)]
        for a, b in zip(A[begin : begin + rows].T, Bt, strict=True):
            np.abs(np.subtract(a[:, None], b, out=difference), out=difference)
            part += difference


def measured(rows: Array, others: Array, L: Array, spans: Array) -> Distances:
    """The distances with their medians over pairs (row, other row) that differ."""
    difference = rows - others
    lengths = (
        np.linalg.norm(stretched(difference, L), axis=1),
        (np.abs(difference) * column_scales(L)).sum(axis=1),
    )
    apart = [d[d > NOTHING] for d in lengths]
    units = [float(np.median(d)) if len(d) else 1.0 for d in apart]
    return Distances(L, spans, *units)


def two_valued(X: Array) -> Array:
    """The distance between a column's two values, or 0 for a column that has more (or one)."""
    low, high = X.min(axis=0), X.max(axis=0)
    two = (high > low) & ((low == X) | (high == X)).all(axis=0)
    return frozen(np.where(two, high - low, 0.0))


def bumps_of(euclidean: Array | None, absolute: Array | None, reach: float, mix: float) -> Array:
    """(1 − mix)·exp(−euclidean/reach) + mix·exp(−absolute/reach), where each is needed."""
    parts = []
    for share, distance in ((1.0 - mix, euclidean), (mix, absolute)):
        if share > 0 and distance is not None:
            part = distance * distance.dtype.type(-1.0 / reach)
            np.exp(part, out=part)
            if share < 1:
                part *= part.dtype.type(share)
            parts.append(part)
    for part in parts[1:]:
        parts[0] += part
    return parts[0]


@dataclass(frozen=True)
class Bumps:
    """A feature map of one bump a centre: ``mix`` of the absolute, the rest of the Euclidean."""

    centres: Array
    distances: Distances
    reach: float
    mix: float

    @property
    def width(self) -> int:
        return len(self.centres)

    @property
    def bound(self) -> float:
        return 1.0

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float32)

    @property
    def rounding(self) -> float:
        return CLOSE_ROWS if self.mix < 1 else 1.0

    def astype(self, dtype: type[np.floating], largest_input: float) -> "Bumps":
        return self

    def __call__(self, rows: Array, out: Array) -> None:
        out[...] = self.between(rows[:, :-1], self.centres, out.dtype)

    def between(self, A: Array, B: Array, dtype: DTypeLike = np.float32) -> Array:
        """The bumps of rows ``A`` around rows ``B``."""
        euclidean = self.distances.euclidean(A, B, dtype) if self.mix < 1 else None
        absolute = self.distances.absolute(A, B, dtype) if self.mix > 0 else None
        return bumps_of(euclidean, absolute, self.reach, self.mix)

    def pullback(self, rows: Array) -> Callable[[Array], Array]:
        """Cotangents of the features at some rows to those of x."""
        X = rows[:, :-1]

        def pull(cotangent: Array) -> Array:
            total = np.zeros(X.shape)
            if self.mix < 1:
                total += self._pull_euclidean(X, cotangent * (1.0 - self.mix))
            if self.mix > 0:
                total += self._pull_absolute(X, cotangent * self.mix)
            return total

        return pull

    def _pull_euclidean(self, X: Array, cotangent: Array) -> Array:
        """∂exp(−d/h)/∂x = −exp(−d/h)/(h·d·m²)·LLᵀ(x − c), m the median, and 0 at a centre."""
        d = self.distances.euclidean(X, self.centres).astype(float)
        slope = np.where(d > CLOSEST, -np.exp(-d / self.reach) / np.maximum(d, CLOSEST), 0.0)
        B = cotangent * slope / (self.reach * self.distances.euclidean_unit**2)
        L = self.distances.L
        Z, C = stretched(X, L), stretched(self.centres, L)
        return stretched(B.sum(axis=1)[:, None] * Z - product(B, C), L.T)

    def _pull_absolute(self, X: Array, cotangent: Array) -> Array:
        """Column by column: the sign of the difference, or twice it over the span."""
        d = self.distances.absolute(X, self.centres).astype(float)
        scales = column_scales(self.distances.L) / self.distances.absolute_unit
        B = cotangent * np.exp(-d / self.reach) / -self.reach
        total = np.empty(X.shape)
        for j, (scale, span) in enumerate(zip(scales, self.distances.spans, strict=True)):
            difference = X[:, j, None] - self.centres[:, j]
            slope = np.sign(difference) if span == 0 else 2 * difference / span
            total[:, j] = scale * np.einsum("ij,ij->i", B, slope)
        return total
