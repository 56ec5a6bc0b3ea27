"""Random features f: sampled once, never trained.

Two ideas, kept apart. A *sampler* draws features for given data; a *feature map* is what
it has drawn, frozen arrays that turn rows into features. Rows are in homogeneous
coordinates (z, 1), so that weights and offsets are one matrix and one product.

A sampler of one's own needs two methods, ``n_rows(n_features)`` and
``sample(Z, Y, n_features, rng)``. It returns a :class:`DenseFeatures`, or a map of one's own with
all that :class:`FeatureMap` lists. Any scikit-learn transformer works as it is, through
:class:`TransformerSampler`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from sklearn.base import clone

from rfrboost._activations import ACTIVATIONS
from rfrboost._blas import product
from rfrboost._precision import representable
from rfrboost._typing import Array, frozen

# Candidate pairs a SWIM neuron is chosen from. Every one of √(CANDIDATES·p) rows is paired with
# every one of as many others: the steep pairs are rare, and a product of rows offers many pairs
# for little work, whatever n is.
CANDIDATES = 128
# Pairs closer than this, in units of a coordinate's standard deviation, count as this far apart.
CLOSEST = 0.01
# Squared distances below this share of the largest squared norm are rounding: rows are equal.
EQUAL = 1e-13
# Rows a scikit-learn transformer is fitted on.
TRANSFORMER_ROWS = 8192


class FeatureMap(Protocol):
    """Frozen random features: rows (z, 1) to ``width`` features, at most ``bound`` in size.

    One whose features are computed in single precision, and may be wrong by more than a unit of its
    roundoff, says so in a property ``rounding``: a number, or one a feature.
    """

    @property
    def width(self) -> int: ...

    @property
    def bound(self) -> float: ...

    @property
    def dtype(self) -> np.dtype: ...

    def astype(self, dtype: type[np.floating], largest_input: float) -> "FeatureMap":
        """The same map computed in ``dtype``, or the map itself where that is unsafe."""

    def __call__(self, rows: Array, out: Array) -> None:
        """Write the features of ``rows`` into ``out``, an array in Fortran order."""


class Sampler(Protocol):
    """Draws feature maps."""

    def n_rows(self, n_features: int) -> int:
        """How many training rows ``sample`` wants to see, drawn in proportion to weight."""

    def sample(self, Z: Array, Y: Array, n_features: int, rng: Generator) -> FeatureMap:
        """Draw features, given rows ``Z`` (m, D) and their targets ``Y`` (m, d)."""


@dataclass(frozen=True)
class DenseFeatures:
    """σ(zᵀB + b): ``weights`` is (D+1, p) with the offsets b as its last row."""

    weights: Array
    activation: str

    @property
    def width(self) -> int:
        return self.weights.shape[1]

    @property
    def bound(self) -> float:
        return ACTIVATIONS[self.activation].bound

    @property
    def dtype(self) -> np.dtype:
        return self.weights.dtype

    @property
    def rounding(self) -> Array:
        # Where a steep neuron is not saturated, its z is a small difference of large numbers.
        return 1 + np.linalg.norm(self.weights[:-1].astype(float), axis=0)

    def astype(self, dtype: type[np.floating], largest_input: float) -> "DenseFeatures":
        if dtype == self.dtype or not representable(self.weights, largest_input):
            return self
        return DenseFeatures(frozen(self.weights.astype(dtype)), self.activation)

    def __call__(self, rows: Array, out: Array) -> None:
        product(rows.astype(out.dtype, copy=False), self.weights.astype(out.dtype, copy=False), out)
        ACTIVATIONS[self.activation].apply(out)

    def slopes(self, rows: Array) -> Array:
        """σ' at every row and neuron, in the precision of the rows."""
        weights = self.weights.astype(rows.dtype, copy=False)
        return ACTIVATIONS[self.activation].derivative(product(rows, weights))

    def pullback(self, rows: Array) -> Callable[[Array], Array]:
        """Cotangents of the features at some rows to those of z, by the chain rule."""
        slopes, directions = self.slopes(rows), self.weights[:-1].T.astype(np.float64)
        return lambda cotangent: product(cotangent * slopes, directions)


@dataclass(frozen=True)
class TransformerFeatures:
    """A fitted scikit-learn transformer as a feature map."""

    transformer: Any
    width: int

    @property
    def bound(self) -> float:
        return np.inf

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float64)

    def astype(self, dtype: type[np.floating], largest_input: float) -> "TransformerFeatures":
        return self

    def __call__(self, rows: Array, out: Array) -> None:
        out[...] = dense(self.transformer.transform(rows[:, :-1]))


def dense(features: Any) -> Array:
    """A transformer's output as an ordinary array (some return sparse matrices or frames)."""
    return np.asarray(features.toarray() if hasattr(features, "toarray") else features)


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


def squared_distances(A: Array, B: Array) -> Array:
    """‖a − b‖² for every row a of A and b of B, by one product."""
    a, b = np.einsum("ij,ij->i", A, A), np.einsum("ij,ij->i", B, B)
    squared = product(A, B.T)
    squared *= -2.0
    squared += a[:, None]
    squared += b
    squared *= squared > EQUAL * (a.max() + b.max())
    return squared


def draw(density: Array, size: int, rng: Generator) -> np.ndarray:
    """``size`` indices with replacement, in proportion to ``density`` (uniform if all zero)."""
    if not density.any():
        return rng.integers(len(density), size=size)
    cumulative = np.cumsum(density)
    return np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
