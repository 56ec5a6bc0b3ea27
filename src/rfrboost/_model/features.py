"""Activations σ and feature maps: random features f that are drawn once and never trained.

Two ideas are kept apart. A *sampler* draws features for given data
(:mod:`rfrboost._model.samplers`); a *feature map* is what it has drawn: frozen arrays that turn
rows into features. Rows are in homogeneous coordinates (z, 1), of shape (n, D + 1), so that weights
and offsets are one matrix and one product.

Every feature map has the members of :class:`FeatureMap`. Two facts are optional, each declared by a
protocol: how inaccurate its features are in single precision (:class:`RoundedFeatures`), and its
derivative (:class:`DifferentiableFeatures`), without which a model has no input gradients.

A sampler written by a user returns a :class:`DenseFeatures` or its own feature map. Any
scikit-learn transformer can serve as features through
:class:`rfrboost._model.samplers.TransformerSampler`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from scipy.special import expit

from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import product
from rfrboost._numerics.precision import LARGEST_FACTOR
from rfrboost._typing import Array


@dataclass(frozen=True)
class Activation:
    """An activation σ, applied in place, and what the numerics must know of it.

    ``derivative`` gives σ' for a pre-activation, which it may overwrite. ``bound`` is sup|σ|; only
    features with a finite bound may be computed in single precision (see
    :mod:`rfrboost._numerics.precision`). ``swim`` are the pre-activations at x⁽¹⁾ and at x⁽²⁾ of a
    SWIM neuron, in units of the feature scale c.
    """

    apply: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    bound: float
    swim: tuple[float, float]


def tanh_derivative(z: Array) -> Array:
    """1 − tanh², in place: allocating memory for each operation would take longer than the tanh."""
    np.tanh(z, out=z)
    np.multiply(z, z, out=z)
    return np.subtract(1.0, z, out=z)


# A saturating σ is centred between a SWIM neuron's two points; relu is zero up to the first one.
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

# The activations that a user may choose; the identity serves linear members only.
CHOICES = set(ACTIVATIONS) - {"identity"}


class FeatureMap(Protocol):
    """Frozen random features: rows (z, 1) to ``width`` features of absolute value ≤ ``bound``.

    ``dtype`` is the precision in which they are computed. A map may also have the members of
    :class:`~rfrboost._model.features.RoundedFeatures`, which says how inaccurate its features are
    in single precision, and of :class:`~rfrboost._model.features.DifferentiableFeatures`.
    """

    @property
    def width(self) -> int: ...

    @property
    def bound(self) -> float: ...

    @property
    def dtype(self) -> np.dtype: ...

    def astype(self, dtype: type[np.floating], largest_input: float) -> "FeatureMap":
        """The same map computed in ``dtype``, or the map itself where that would be inaccurate.

        ``largest_input`` is the largest absolute value in the rows.
        """

    def __call__(self, rows: Array, out: Array) -> None:
        """Write the features of ``rows`` into ``out`` (n, width), an array in Fortran order."""


@runtime_checkable
class RoundedFeatures(Protocol):
    """A feature map that says how inaccurate its features are in single precision."""

    @property
    def rounding(self) -> Array | float:
        """The error of all features, or of each (width,), in units of float32's roundoff."""


@runtime_checkable
class DifferentiableFeatures(Protocol):
    """A feature map with a derivative."""

    def pullback(self, rows: Array) -> Callable[[Array], Array]:
        """The derivative at ``rows`` (n, D + 1), for reverse accumulation.

        The result turns derivatives in the features (n, width) into derivatives in z (n, D).
        """


def rounding_of(features: FeatureMap) -> Array:
    """The error of each feature (width,), in units of float32's roundoff; 1 if it is not known."""
    rounding = features.rounding if isinstance(features, RoundedFeatures) else 1.0
    return np.broadcast_to(rounding, features.width)


@dataclass(frozen=True)
class DenseFeatures:
    """σ(zᵀB + b): ``weights`` is (D + 1, p) with the offsets b as its last row."""

    weights: Array
    activation: str
    width: int = field(init=False, repr=False, compare=False)
    bound: float = field(init=False, repr=False, compare=False)
    dtype: np.dtype = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen(self.weights))
        object.__setattr__(self, "width", self.weights.shape[1])
        object.__setattr__(self, "bound", ACTIVATIONS[self.activation].bound)
        object.__setattr__(self, "dtype", self.weights.dtype)

    @property
    def rounding(self) -> Array:
        # The pre-activation of a steep neuron that is not saturated is a small difference of large
        # numbers. Its offset tells how large, where rows are far from unit size.
        norms: Array = np.linalg.norm(self.weights.astype(float), axis=0)
        return 1 + norms

    def astype(self, dtype: type[np.floating], largest_input: float) -> "DenseFeatures":
        # Larger weights or inputs leave too few digits of a pre-activation in float32.
        largest_weight = np.abs(self.weights).max(initial=0.0)
        accurate = largest_weight < LARGEST_FACTOR and largest_input < LARGEST_FACTOR
        if dtype == self.dtype or not accurate:
            return self
        return DenseFeatures(self.weights.astype(dtype), self.activation)

    def __call__(self, rows: Array, out: Array) -> None:
        product(rows.astype(out.dtype, copy=False), self.weights.astype(out.dtype, copy=False), out)
        ACTIVATIONS[self.activation].apply(out)

    def slopes(self, rows: Array) -> Array:
        """σ' for every row and neuron (n, p), in the precision of the rows."""
        weights = self.weights.astype(rows.dtype, copy=False)
        return ACTIVATIONS[self.activation].derivative(product(rows, weights))

    def pullback(self, rows: Array) -> Callable[[Array], Array]:
        slopes = self.slopes(rows)
        directions = self.weights[:-1].T.astype(np.float64)
        return lambda cotangent: product(cotangent * slopes, directions)


@dataclass(frozen=True)
class Columns:
    """The columns of x as features: the feature map of linear members."""

    width: int
    bound: ClassVar[float] = np.inf
    dtype: ClassVar[np.dtype] = np.dtype(np.float64)

    def astype(self, dtype: type[np.floating], largest_input: float) -> "Columns":
        return self

    def __call__(self, rows: Array, out: Array) -> None:
        out[...] = rows[:, :-1]


@dataclass(frozen=True)
class TransformerFeatures:
    """A fitted scikit-learn transformer as a feature map, without a derivative."""

    transformer: Any
    width: int
    bound: ClassVar[float] = np.inf
    dtype: ClassVar[np.dtype] = np.dtype(np.float64)

    def astype(self, dtype: type[np.floating], largest_input: float) -> "TransformerFeatures":
        return self

    def __call__(self, rows: Array, out: Array) -> None:
        out[...] = dense(self.transformer.transform(rows[:, :-1]))


def dense(features: Any) -> Array:
    """A transformer's output as an ordinary array (some return sparse matrices or data frames)."""
    return np.asarray(features.toarray() if hasattr(features, "toarray") else features)
