"""Bumps: local features around training rows, in a learned metric.

A bump is exp(−distance/reach) of the distance between a row and its centre. There are two
distances, each in units of its median between training rows. The Euclidean distance in the metric
L is ‖(x − c)L‖. The absolute distance is the sum of |x_j − c_j| over columns, each multiplied by
the length of its row in L; like a tree it looks at columns one at a time. Which of them does better
depends on the table, so that a bump is a mixture of both.

Rows are x (n, D) without the 1 of homogeneous coordinates, except for feature maps, which take rows
(x, 1). Distances and bumps are in single precision unless another dtype is passed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import DTypeLike

from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import column_scales, product, squared_distances, stretched
from rfrboost._typing import Array

# Bytes of absolute differences that are computed at a time: few enough to stay in a processor's
# cache while they are added up.
DIFFERENCE_BYTES = 2**19

# Columns of a matrix of squared distances that are compared with their rounding errors at a time.
COMPARED_COLUMNS = 64

# Squared distances below this share of the squared norms are rounding errors of single precision.
ROUNDING = np.float32(4 * 2.0**-24)

# Rounding error of a bump with a Euclidean distance, in units of roundoff. The squares of close
# rows cancel, and their distance keeps little more than half of its digits.
EUCLIDEAN_ROUNDING = 2.0**8

# Distances below this share of the median have no direction: a bump's derivative is taken as 0.
CLOSEST = 1e-6

# Coordinates beyond this, in units of the median distance, are moved to it, so that their squares
# and sums of squares stay finite in single precision.
FARTHEST = 1e15

# The largest coordinate of a centre, in the units of x: just below the largest float32.
LARGEST_CENTRE = 1e38

# Rows closer than this are taken as equal when the median distance is measured, so that one can
# divide by it.
SMALLEST_DISTANCE = 1e-100


@dataclass(frozen=True)
class Distances:
    """The two distances between rows, in units of their medians.

    ``L`` is the metric, (D, D) or its diagonal (D,). ``spans`` (D,) are the distances between the
    values of columns that have two values, else 0. In the absolute distance such a column counts
    (x_j − c_j)²/span, which for these values equals |x_j − c_j| but is a matrix product.
    """

    L: Array
    spans: Array
    euclidean_unit: float = 1.0
    absolute_unit: float = 1.0

    def euclidean(self, A: Array, B: Array, dtype: DTypeLike = np.float32) -> Array:
        """The Euclidean distances (rows of A, rows of B)."""
        A, B = (single(stretched(X, self.L) / self.euclidean_unit) for X in (A, B))
        squared = squares(A.astype(dtype, copy=False), B.astype(dtype, copy=False))
        return np.sqrt(squared, out=squared)

    def absolute(self, A: Array, B: Array, dtype: DTypeLike = np.float32) -> Array:
        """The absolute distances (rows of A, rows of B)."""
        scales = column_scales(self.L) / self.absolute_unit
        two = self.spans > 0
        roots = np.sqrt(scales[two]) / np.sqrt(self.spans[two])
        total = np.zeros((len(A), len(B)), dtype)
        if two.any():
            both = (single(X[:, two] * roots).astype(dtype, copy=False) for X in (A, B))
            total += squares(*both)
        A, B = (single(X[:, ~two] * scales[~two]).astype(dtype, copy=False) for X in (A, B))
        add_absolute(total, A, np.ascontiguousarray(B.T))
        return total

    def both(self, A: Array, B: Array) -> tuple[Array, Array]:
        """The Euclidean and the absolute distances, from which bumps of any shape are made."""
        return self.euclidean(A, B), self.absolute(A, B)


def measured(rows: Array, others: Array, L: Array, spans: Array) -> Distances:
    """The distances in a metric, with their medians over the pairs (row, other row) that differ."""
    L = frozen(L)
    difference = rows - others
    lengths = (
        np.linalg.norm(stretched(difference, L), axis=1),
        (np.abs(difference) * column_scales(L)).sum(axis=1),
    )
    apart = [d[d > SMALLEST_DISTANCE] for d in lengths]
    units = [float(np.median(d)) if len(d) else 1.0 for d in apart]
    return Distances(L, spans, *units)


def two_valued(X: Array) -> Array:
    """The distance between the two values of each column that has two, 0 for other columns."""
    low = X.min(axis=0)
    high = X.max(axis=0)
    two = (high > low) & ((low == X) | (high == X)).all(axis=0)
    return frozen(np.where(two, high - low, 0.0))


@dataclass(frozen=True)
class Bumps:
    """A feature map with one bump for each centre.

    ``centres`` are (width, D). A bump is ``mix`` times that of the absolute distance plus 1 − mix
    times that of the Euclidean distance; both have the same ``reach``, in units of the medians.
    """

    centres: Array
    distances: Distances
    reach: float
    mix: float

    # What feature maps state (see FeatureMap); bumps are always in single precision.
    width: int = field(init=False, repr=False, compare=False)
    rounding: float = field(init=False, repr=False, compare=False)
    bound: ClassVar[float] = 1.0
    dtype: ClassVar[np.dtype] = np.dtype(np.float32)

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", len(self.centres))
        object.__setattr__(self, "rounding", EUCLIDEAN_ROUNDING if self.mix < 1 else 1.0)

    def astype(self, dtype: type[np.floating], largest_input: float) -> "Bumps":
        return self

    def __call__(self, rows: Array, out: Array) -> None:
        out[...] = self.between(rows[:, :-1], self.centres, out.dtype)

    def between(self, A: Array, B: Array, dtype: DTypeLike = np.float32) -> Array:
        """The bumps of rows ``A`` around rows ``B``: (rows of A, rows of B)."""
        euclidean = self.distances.euclidean(A, B, dtype) if self.mix < 1 else None
        absolute = self.distances.absolute(A, B, dtype) if self.mix > 0 else None
        return bumps_of(euclidean, absolute, self.reach, self.mix)

    def pullback(self, rows: Array) -> Callable[[Array], Array]:
        """The chain rule at rows (x, 1): cotangents of the features (n, width) to those of x."""
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
        Z = stretched(X, L)
        C = stretched(self.centres, L)
        return stretched(B.sum(axis=1)[:, None] * Z - product(B, C), L.T)

    def _pull_absolute(self, X: Array, cotangent: Array) -> Array:
        """Column by column: the sign of the difference, or twice the difference over the span."""
        d = self.distances.absolute(X, self.centres).astype(float)
        scales = column_scales(self.distances.L) / self.distances.absolute_unit
        B = cotangent * np.exp(-d / self.reach) / -self.reach
        total = np.empty(X.shape)
        for j, (scale, span) in enumerate(zip(scales, self.distances.spans, strict=True)):
            difference = X[:, j, None] - self.centres[:, j]
            slope = np.sign(difference) if span == 0 else 2 * difference / span
            total[:, j] = scale * np.einsum("ij,ij->i", B, slope)
        return total


def bumps_around(X: Array, rows: Array, others: Array, L: Array, spans: Array) -> Bumps:
    """Bumps around rows X (n, D), with a reach of one and the Euclidean distance only.

    The medians of distances are measured between ``rows`` and ``others``, pair by pair.
    """
    distances = measured(rows, others, L, spans)
    return Bumps(frozen(single(X, LARGEST_CENTRE)), distances, reach=1.0, mix=0.0)


def bumps_of(euclidean: Array | None, absolute: Array | None, reach: float, mix: float) -> Array:
    """(1 − mix)·exp(−euclidean/reach) + mix·exp(−absolute/reach).

    A distance whose share is 0 is not needed, and may be None.
    """
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


def squares(A: Array, B: Array) -> Array:
    """Squared distances between rows; 0 where they are no larger than their rounding errors.

    A and B hold single-precision numbers; sums are in the dtype of the arrays.
    """
    squared = squared_distances(A, B)
    a, b = (ROUNDING * np.einsum("ij,ij->i", X, X) for X in (A, B))
    for begin in range(0, len(B), COMPARED_COLUMNS):
        part = squared[:, begin : begin + COMPARED_COLUMNS]
        part *= part > a[:, None] + b[begin : begin + COMPARED_COLUMNS]
    return squared


def single(A: Array, largest: float = FARTHEST) -> Array:
    """Coordinates in single precision, limited to ±largest so that their squares stay finite."""
    return np.clip(A, -largest, largest).astype(np.float32)


def add_absolute(total: Array, A: Array, Bt: Array) -> None:
    """total += Σ_j |a_j − b_j| for rows a of A and columns b of Bt, some rows at a time."""
    rows = max(DIFFERENCE_BYTES // max(total.shape[1] * total.itemsize, 1), 1)
    room = np.empty((min(rows, len(A)), total.shape[1]), total.dtype)
    for begin in range(0, len(A), rows):
        part = total[begin : begin + rows]
        difference = room[: len(part)]
        for a, b in zip(A[begin : begin + rows].T, Bt, strict=True):
            np.abs(np.subtract(a[:, None], b, out=difference), out=difference)
            part += difference
