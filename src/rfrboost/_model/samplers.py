"""Samplers: they draw feature maps for given data.

- :class:`SWIM`: neurons between pairs of training rows, the default.
- :class:`SparseSWIM`: SWIM neurons that see one to three columns, as splits of a tree do.
- :class:`IID` and :class:`Fourier`: weights that do not depend on the data.
- :class:`TransformerSampler`: any scikit-learn transformer.
- :class:`InMetric`: any of these in a learned metric (:mod:`rfrboost._model.metric`).

Equation names (eqSWIMWeights, eqSWIMDensity) are those of the paper. All randomness comes from the
generator that ``sample`` is given.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator
from sklearn.base import clone

from rfrboost._model.features import (
    ACTIVATIONS,
    DenseFeatures,
    FeatureMap,
    TransformerFeatures,
    dense,
)
from rfrboost._numerics.blas import squared_distances, stretched
from rfrboost._typing import Array, Indices

# Candidate pairs that each SWIM neuron is chosen from. √(CANDIDATES·p) rows are each paired with
# √(CANDIDATES·p) others: steep pairs are rare, and a product of rows offers many pairs for little
# work, which does not grow with n.
CANDIDATES = 128

# Pairs closer than this, in units of a coordinate's standard deviation, count as this far apart.
CLOSEST = 0.01

# Squared distances below this share of the largest squared norm are rounding errors of equal rows.
EQUAL = 1e-13

# Rows that a scikit-learn transformer is fitted on.
TRANSFORMER_ROWS = 8192

# The most columns that a sparse neuron sees; it sees one, two or three with equal chances.
MOST_COLUMNS = 3

# The share of a column's chance to be seen that follows its variance; the rest is even.
BY_SPREAD = 0.75

# Rows from which the standard deviations of columns are computed.
SPREAD_ROWS = 2000

# Candidate pairs that each sparse neuron is chosen from.
SPARSE_CANDIDATES = 16

# Pairs closer than this in a sparse neuron's columns, in units of the mean distance, are equal.
EQUAL_IN_COLUMNS = 1e-6


@runtime_checkable
class Sampler(Protocol):
    """Draws feature maps."""

    def n_rows(self, n_features: int) -> int:
        """The number of training rows that ``sample`` wants, drawn in proportion to weight.

        It may be given fewer in an ensemble, where columns are thousands.
        """

    def sample(self, Z: Array, Y: Array, n_features: int, rng: Generator) -> FeatureMap:
        """Draw features, given rows ``Z`` (m, D) and their targets ``Y`` (m, d)."""


@runtime_checkable
class AxisAligned(Protocol):
    """A sampler that says whether its features belong to single columns.

    If so, a learned metric may stretch columns, but not rotate them: after a rotation a neuron of
    few columns would see all of them.
    """

    axis_aligned: ClassVar[bool]


def is_axis_aligned(sampler: Sampler) -> bool:
    """Whether a sampler says that its features belong to single columns."""
    return isinstance(sampler, AxisAligned) and sampler.axis_aligned


def swim_neurons(
    scale: float, activation: str, first: Array, delta: Array, distance: Array
) -> DenseFeatures:
    """Neurons between pairs of points, equation (eqSWIMWeights) with c₂ = high − low, c₁ = −low.

    ``first`` (p, D) are the points x⁽¹⁾, ``delta`` (p, D) the differences x⁽²⁾ − x⁽¹⁾ and
    ``distance`` (p,) their lengths; a neuron whose points are equal is constant.
    """
    low, high = (scale * c for c in ACTIVATIONS[activation].swim)
    apart = np.where(distance > 0, distance, np.inf)[:, None]
    directions = (high - low) * (delta / apart) / apart
    offsets = low - np.einsum("ij,ij->i", directions, first)
    return DenseFeatures(np.vstack([directions.T, offsets]), activation)


def drawn_distances(A: Array, B: Array) -> Array:
    """‖a − b‖² of every row a of A and b of B, 0 where they are equal but for rounding.

    Judged by the largest row, so that this is for rows of one draw, never for rows to predict.
    """
    squared = squared_distances(A, B)
    largest = sum(np.einsum("ij,ij->i", X, X).max() for X in (A, B))
    squared *= squared > EQUAL * largest
    return squared


@dataclass(frozen=True)
class SWIM:
    """Weights from pairs of training points, equations (eqSWIMWeights) and (eqSWIMDensity).

    Each neuron is steepest between two training points: its pre-activation is −c at x⁽¹⁾ and
    +c at x⁽²⁾ (0 and 2c for relu). ``scale`` is c. Pairs are drawn in proportion to ‖Δy‖ / ‖Δz‖ if
    ``pair_sampling`` is "gradient", or with equal chances if it is "uniform".
    """

    scale: float
    activation: str
    pair_sampling: str = "gradient"

    def n_rows(self, n_features: int) -> int:
        return 2 * math.ceil(math.sqrt(CANDIDATES * n_features))

    def sample(self, Z: Array, Y: Array, n_features: int, rng: Generator) -> DenseFeatures:
        half = len(Z) // 2
        squared = drawn_distances(Z[:half], Z[half:])
        # The unit in which "close" is measured: a coordinate's standard deviation.
        closest = CLOSEST * math.sqrt(squared.mean() / (2 * Z.shape[1]))
        apart = squared > 0
        density = apart.astype(float)
        if self.pair_sampling == "gradient" and closest > 0:
            # Equation (eqSWIMDensity): ‖Δy‖ / ‖Δz‖, and 0 for rows that are equal.
            steepness = drawn_distances(Y[:half], Y[half:])
            steepness /= np.maximum(squared, closest**2, out=squared)
            np.sqrt(steepness, out=steepness)
            steepness *= apart
            density = steepness if steepness.any() else density
        # Products are in Fortran order, so the second row of a pair counts slowest.
        second, first = np.divmod(draw(density.ravel(order="F"), n_features, rng), half)
        delta = Z[half:][second] - Z[:half][first]
        distance = np.maximum(np.linalg.norm(delta, axis=1), closest)
        return swim_neurons(self.scale, self.activation, Z[:half][first], delta, distance)


@dataclass(frozen=True)
class IID:
    """Independent weights and offsets, from N(0, scale²/D) or U(−scale/√D, scale/√D).

    ``distribution`` is "gaussian" or "uniform".
    """

    scale: float
    activation: str
    distribution: str

    def n_rows(self, n_features: int) -> int:
        return 1

    def sample(self, Z: Array, Y: Array, n_features: int, rng: Generator) -> DenseFeatures:
        shape = (Z.shape[1] + 1, n_features)
        gaussian = self.distribution == "gaussian"
        unit = rng.standard_normal(shape) if gaussian else rng.uniform(-1, 1, shape)
        weights = self.scale / np.sqrt(Z.shape[1]) * unit
        return DenseFeatures(weights, self.activation)


@dataclass(frozen=True)
class Fourier:
    """Random Fourier features cos(wᵀz + b), w ~ N(0, scale²/D), b ~ U(0, 2π)."""

    scale: float

    def n_rows(self, n_features: int) -> int:
        return 1

    def sample(self, Z: Array, Y: Array, n_features: int, rng: Generator) -> DenseFeatures:
        frequencies = rng.standard_normal((Z.shape[1], n_features))
        phases = rng.uniform(0, 2 * np.pi, (1, n_features))
        weights = np.vstack([self.scale / np.sqrt(Z.shape[1]) * frequencies, phases])
        return DenseFeatures(weights, "cos")


@dataclass(frozen=True)
class TransformerSampler:
    """Any scikit-learn transformer as a sampler: cloned, seeded and fitted for every layer.

    The transformer decides the number of features; ``n_features`` has no effect. It is fitted on
    distinct rows and their targets: y (m,), or a matrix if there are several outputs or classes.
    """

    transformer: Any

    def n_rows(self, n_features: int) -> int:
        return TRANSFORMER_ROWS

    def sample(self, Z: Array, Y: Array, n_features: int, rng: Generator) -> TransformerFeatures:
        transformer = clone(self.transformer)
        seeded = [k for k in transformer.get_params() if k.split("__")[-1] == "random_state"]
        transformer.set_params(**{k: int(rng.integers(2**31)) for k in seeded})
        Z, first = np.unique(Z, axis=0, return_index=True)
        Y = Y[first]
        transformer.fit(Z, Y[:, 0] if Y.shape[1] == 1 else Y)
        return TransformerFeatures(transformer, dense(transformer.transform(Z[:1])).shape[1])


def draw(density: Array, size: int, rng: Generator) -> Indices:
    """``size`` indices with replacement, in proportion to ``density`` (uniform if all is zero)."""
    if not density.any():
        return np.asarray(rng.integers(len(density), size=size))
    cumulative = np.cumsum(density)
    drawn: Indices = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
    return drawn


@dataclass(frozen=True)
class SparseSWIM:
    """SWIM neurons of one to three columns; columns that vary more are seen more often.

    Each neuron is placed between two rows that differ in its columns, drawn in proportion to
    ‖Δy‖ / ‖Δz‖ among a few pairs, distances being those in its columns. ``scale`` is c.
    """

    scale: float
    activation: str
    axis_aligned: ClassVar[bool] = True

    def n_rows(self, n_features: int) -> int:
        return 2 * SPARSE_CANDIDATES * n_features

    def sample(self, Z: Array, Y: Array, n_features: int, rng: Generator) -> DenseFeatures:
        seen = chosen_columns(Z[:SPREAD_ROWS].std(axis=0), n_features, rng)
        candidates = len(Z) // (2 * n_features)
        half = n_features * candidates
        first, second = (
            part.reshape(n_features, candidates, -1) for part in (Z[:half], Z[half : 2 * half])
        )
        delta = (second - first) * seen[:, None, :]
        distance = np.sqrt(np.einsum("ijk,ijk->ij", delta, delta))
        dy = (Y[half : 2 * half] - Y[:half]).reshape(n_features, candidates, -1)
        change = np.sqrt(np.einsum("ijk,ijk->ij", dy, dy))
        pair = chosen_pairs(change, distance, rng)
        own = np.arange(n_features)
        return swim_neurons(
            self.scale, self.activation, first[own, pair], delta[own, pair], distance[own, pair]
        )


def chosen_columns(spread: Array, n_features: int, rng: Generator) -> Array:
    """The columns that each neuron sees, as 0 and 1 (n_features, D), given their deviations."""
    D = len(spread)
    squares = np.square(spread / (spread.max() or 1.0))
    share = BY_SPREAD * squares / (squares.sum() or 1.0) + (1 - BY_SPREAD) / D
    # The largest of log-shares with Gumbel noise are a draw without replacement.
    keys = np.log(share) + rng.gumbel(size=(n_features, D))
    count = np.minimum(rng.integers(1, MOST_COLUMNS + 1, size=n_features), D)
    ranked = -np.sort(-keys, axis=1)
    seen: Array = (keys >= ranked[np.arange(n_features), count - 1][:, None]).astype(float)
    return seen


def chosen_pairs(change: Array, distance: Array, rng: Generator) -> Indices:
    """For each neuron one of its pairs, in proportion to ‖Δy‖ / ‖Δz‖; any of them if all are 0.

    ``change`` and ``distance`` are ‖Δy‖ and ‖Δz‖, both (neurons, pairs).
    """
    apart = distance > EQUAL_IN_COLUMNS * (distance.mean() or 1.0)
    density = np.where(apart, change / np.where(apart, distance, 1.0), 0.0)
    flat = ~density.any(axis=1)
    density[flat] = apart[flat]
    cumulative = np.cumsum(density, axis=1)
    drawn = (cumulative <= rng.random((len(density), 1)) * cumulative[:, -1:]).sum(axis=1)
    pairs: Indices = np.minimum(drawn, density.shape[1] - 1)
    return pairs


@dataclass(frozen=True)
class InMetric:
    """A sampler that draws features of rows z·L, and returns them as features of z itself."""

    sampler: Sampler
    L: Array

    def n_rows(self, n_features: int) -> int:
        return self.sampler.n_rows(n_features)

    def sample(self, Z: Array, Y: Array, n_features: int, rng: Generator) -> DenseFeatures:
        # A metric is learned from features with weights only, so that these have weights too.
        features: Any = self.sampler.sample(stretched(Z, self.L), Y, n_features, rng)
        directions = stretched(features.weights[:-1].T, self.L.T).T
        return DenseFeatures(np.vstack([directions, features.weights[-1:]]), features.activation)
