"""Activation functions σ of the random features, applied in place.

Random features f: sampled once, never trained.

Two ideas, kept apart. A *sampler* draws features for given data; a *feature map* is what
it has drawn, frozen arrays that turn rows into features. Rows are in homogeneous
coordinates (z, 1), so that weights and offsets are one matrix and one product.

A sampler of one's own needs two methods, ``n_rows(n_features)`` and
``sample(Z, Y, n_features, rng)``. It returns a :class:`DenseFeatures`, or a map of one's own with
all that :class:`FeatureMap` lists. Any scikit-learn transformer works as it is, through
:class:`TransformerSampler`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import expit

from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import product
from rfrboost._numerics.precision import representable
from rfrboost._typing import Array


@dataclass(frozen=True)
class Activation:
    """σ and what the numerics must know of it.

    ``bound`` is sup|σ|; a finite bound is what single precision needs (see
    :mod:`rfrboost._numerics.precision`). ``swim`` gives SWIM's two constants in units of the
    feature scale c: the pre-activation at x⁽¹⁾ and at x⁽²⁾. ``derivative`` is σ' of the
    pre-activation, which it may overwrite.
    """

    apply: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    bound: float
    swim: tuple[float, float]


def tanh_derivative(z: Array) -> Array:
    """1 − tanh², in place: fresh memory for every operation would take longer than the tanh."""
    np.tanh(z, out=z)
    np.multiply(z, z, out=z)
    return np.subtract(1.0, z, out=z)


# A saturating σ is centred between the two points; relu switches on at the first one.
ACTIVATIONS = {
    "identity": Activation(lambda z: z, np.ones_like, np.inf, (-1.0, 1.0)),
    "tanh": Activation(lambda z: np.tanh(z, out=z), tanh_derivative, 1.0, (-1.0, 1.0)),
    "relu": Activation(
        lambda z: np.maximum(z, 0, out=z), lambda z: (z > 0).astype(z.dtype), np.inf, (0.0, 2.0)
    ),
    "sigmoid": Activation(
        lambda z: expit(z, out=z), lambda z: expit(z) * expit(-z), 1.0, (-1.0, 1.0)
    ),
    "sin": Activation(lambda z: np.sin(z, out=z), np.cos, 1.0, (-1.0, 1.0)),
    "cos": Activation(lambda z: np.cos(z, out=z), lambda z: -np.sin(z), 1.0, (-1.0, 1.0)),
}


# What a user may choose; the identity is what a linear model's first layer is made of.
CHOICES = set(ACTIVATIONS) - {"identity"}


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
