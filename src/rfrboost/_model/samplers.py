"""Sparse random features: neurons that see a few columns each, as splits of a tree do."""

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

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
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import squared_distances
from rfrboost._typing import Array

# Candidate pairs a SWIM neuron is chosen from. Every one of √(CANDIDATES·p) rows is paired with
# every one of as many others: the steep pairs are rare, and a product of rows offers many pairs
# for little work, whatever n is.
CANDIDATES = 128


# Pairs closer than this, in units of a coordinate's standard deviation, count as this far apart.
CLOSEST = 0.01


# Rows a scikit-learn transformer is fitted on.
TRANSFORMER_ROWS = 8192


@runtime_checkable
class Sampler(Protocol):
    """Draws feature maps."""

    def n_rows(self, n_features: int) -> int:
        """How many training rows ``sample`` wants to see, drawn in proportion to weight."""

    def sample(self, Z: Array, Y: Array, n_features: int, rng: Generator) -> FeatureMap:
        """Draw features, given rows ``Z`` (m, D) and their targets ``Y`` (m, d)."""


@dataclass(frozen=True)
class SWIM:
    """Pair-sampled weights, equations (eqSWIMWeights) and (eqSWIMDensity).

    Each neuron is steepest between two training points: its pre-activation is −c at x⁽¹⁾ and
    +c at x⁽²⁾ (0 and 2c for relu). Pairs are drawn in proportion to ‖Δy‖ / ‖Δz‖, or uniformly.
    ``scale`` is c.
    """

    scale: float
    activation: str
    pair_sampling: str = "gradient"

    def n_rows(self, n_features: int) -> int:
        return 2 * math.ceil(math.sqrt(CANDIDATES * n_features))

    def sample(self, Z: Array, Y: Array, n_features: int, rng: Generator) -> DenseFeatures:
        half = len(Z) // 2
        squared = squared_distances(Z[:half], Z[half:])
        # The unit in which "close" is measured: a coordinate's standard deviation.
        closest = CLOSEST * math.sqrt(squared.mean() / (2 * Z.shape[1]))
        apart = squared > 0
        density = apart.astype(float)
        if self.pair_sampling == "gradient" and closest > 0:
            # Equation (eqSWIMDensity): ‖Δy‖ / ‖Δz‖, and 0 for rows that are equal.
            steepness = squared_distances(Y[:half], Y[half:])
            steepness /= np.maximum(squared, closest**2, out=squared)
            np.sqrt(steepness, out=steepness)
            steepness *= apart
            density = steepness if steepness.any() else density
        # Products are in Fortran order, so the second row of a pair counts slowest.
        second, first = np.divmod(draw(density.ravel(order="F"), n_features, rng), half)
        delta = Z[half:][second] - Z[:half][first]
        distance = np.maximum(np.linalg.norm(delta, axis=1), closest)
        return self._neurons(Z[:half][first], delta, distance)

    def _neurons(self, first: Array, delta: Array, distance: Array) -> DenseFeatures:
        """Equation (eqSWIMWeights): c₂ = high − low, c₁ = −low."""
        low, high = (self.scale * c for c in ACTIVATIONS[self.activation].swim)
        apart = np.where(distance > 0, distance, 1.0)[:, None]
        directions = (high - low) * (delta / apart) / apart
        offsets = low - np.einsum("ij,ij->i", directions, first)
        return DenseFeatures(frozen(np.vstack([directions.T, offsets])), self.activation)


@dataclass(frozen=True)
class IID:
    """Independent weights and offsets: N(0, scale²/D) or U(±scale/√D)."""

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
        return DenseFeatures(frozen(weights), self.activation)


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
        return DenseFeatures(frozen(weights), "cos")


@dataclass(frozen=True)
class TransformerSampler:
    """Any scikit-learn transformer as a sampler: cloned, seeded and fitted for every layer.

    Its width is its own. It is fitted on distinct rows and, if it wants targets, on numbers: y, or
    the columns of one-hot labels.
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


def draw(density: Array, size: int, rng: Generator) -> np.ndarray:
    """``size`` indices with replacement, in proportion to ``density`` (uniform if all zero)."""
    if not density.any():
        return rng.integers(len(density), size=size)
    cumulative = np.cumsum(density)
    return np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")


# A neuron sees one, two or three columns.
MOST_COLUMNS = 3


# How much of the choice of columns follows their spread; the rest is even.
BY_SPREAD = 0.75


# Rows that tell how far columns spread.
SPREAD_ROWS = 2000


# Pairs of rows that a neuron is chosen from.
SPARSE_CANDIDATES = 16


# Pairs closer than this in a neuron's own columns, in units of the mean distance, are equal there.
EQUAL = 1e-6


@dataclass(frozen=True)
class SparseSWIM:
    """SWIM neurons of few columns, drawn in proportion to how far the column spreads.

    Each neuron is placed between two rows that differ in its columns, drawn in proportion to
    ‖Δy‖ / ‖Δz‖ among a few pairs. ``scale`` is c.
    ``axis_aligned`` says that a metric may stretch columns but not turn them.
    """

    scale: float
    activation: str
    axis_aligned = True

    def n_rows(self, n_features: int) -> int:
        return 2 * SPARSE_CANDIDATES * n_features

    def sample(self, Z: Array, Y: Array, n_features: int, rng: Generator) -> DenseFeatures:
        seen = chosen_columns(Z[:SPREAD_ROWS].std(axis=0), n_features, rng)
        half = n_features * SPARSE_CANDIDATES
        first, second = (
            part.reshape(n_features, SPARSE_CANDIDATES, -1) for part in (Z[:half], Z[half:])
        )
        delta = (second - first) * seen[:, None, :]
        distance = np.sqrt(np.einsum("ijk,ijk->ij", delta, delta))
        change = (Y[half:] - Y[:half]).reshape(n_features, SPARSE_CANDIDATES, -1)
        steepness = np.sqrt(np.einsum("ijk,ijk->ij", change, change))
        pair = chosen_pairs(steepness, distance, rng)
        own = np.arange(n_features)
        return self._neurons(first[own, pair], delta[own, pair], distance[own, pair])

    def _neurons(self, first: Array, delta: Array, distance: Array) -> DenseFeatures:
        """Equation (eqSWIMWeights) in a neuron's own columns; one without a pair is constant."""
        low, high = (self.scale * c for c in ACTIVATIONS[self.activation].swim)
        apart = np.where(distance > 0, distance, np.inf)[:, None]
        directions = (high - low) * (delta / apart) / apart
        offsets = low - np.einsum("ij,ij->i", directions, first)
        return DenseFeatures(frozen(np.vstack([directions.T, offsets])), self.activation)


def chosen_columns(spread: Array, n_features: int, rng: Generator) -> Array:
    """Which columns each neuron sees, as (n_features, D) of 0 and 1: a draw without replacement."""
    D = len(spread)
    squares = np.square(spread / (spread.max() or 1.0))
    share = BY_SPREAD * squares / (squares.sum() or 1.0) + (1 - BY_SPREAD) / D
    # The largest of log-shares with Gumbel noise are such a draw.
    keys = np.log(share) + rng.gumbel(size=(n_features, D))
    count = np.minimum(rng.integers(1, MOST_COLUMNS + 1, size=n_features), D)
    ranked = -np.sort(-keys, axis=1)
    return (keys >= ranked[np.arange(n_features), count - 1][:, None]).astype(float)


def chosen_pairs(steepness: Array, distance: Array, rng: Generator) -> Array:
    """For each neuron one of its pairs, in proportion to steepness; any if all are flat."""
    apart = distance > EQUAL * (distance.mean() or 1.0)
    density = np.where(apart, steepness / np.where(apart, distance, 1.0), 0.0)
    flat = ~density.any(axis=1)
    density[flat] = apart[flat]
    cumulative = np.cumsum(density, axis=1)
    drawn = (cumulative <= rng.random((len(density), 1)) * cumulative[:, -1:]).sum(axis=1)
    return np.minimum(drawn, density.shape[1] - 1)


@dataclass(frozen=True)
class Columns:
    """The columns of x as features, and a sampler that has nothing else to draw."""

    width: int
    bound = np.inf
    dtype = np.dtype(np.float64)

    def astype(self, dtype: type[np.floating], largest_input: float) -> "Columns":
        return self

    def __call__(self, rows: Array, out: Array) -> None:
        out[...] = rows[:, :-1]

    def n_rows(self, n_features: int) -> int:
        return 1

    def sample(self, Z: Array, Y: Array, n_features: int, rng: Generator) -> "Columns":
        return self
