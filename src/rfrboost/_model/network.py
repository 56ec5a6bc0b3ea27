"""The fitted model: a residual network of frozen arrays, without hyper-parameters or data.

Derivatives of the raw prediction in the inputs, by the chain rule backwards through the layers.

With G_t = ∂raw/∂Φ_t, equation (eqGradientRepresentationBoostingResNetEquation) gives
G_{t−1} = G_t + G_t A_t ∂f_t/∂Φ_{t−1}, and each layer adds G_t A_t ∂f_t/∂x to the derivative in x.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rfrboost._model.features import FeatureMap
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import product
from rfrboost._numerics.precision import LARGEST_NOISE, predicting_dtypes
from rfrboost._numerics.threads import side_by_side
from rfrboost._typing import Array

# Rows predicted at a time; bounds the memory of a prediction whatever its size. As few as make
# products fast, so that threads have blocks to share.
PREDICT_ROWS = 1024


# Columns of features made double at a time.
COLUMNS = 128


@dataclass(frozen=True)
class LayerFeatures:
    """f_t(x, Φ): features of Φ and of x, side by side or (``added``) summed."""

    from_phi: FeatureMap | None
    from_x: FeatureMap | None
    added: bool = False

    @property
    def maps(self) -> list[FeatureMap]:
        return [m for m in (self.from_phi, self.from_x) if m is not None]

    @property
    def width(self) -> int:
        widths = [m.width for m in self.maps]
        return max(widths) if self.added else sum(widths)

    @property
    def dtype(self) -> np.dtype:
        return np.result_type(*(m.dtype for m in self.maps))

    @property
    def bound(self) -> float:
        return max(m.bound for m in self.maps)

    @property
    def rounding(self) -> Array:
        """What features may be wrong by in single precision, in units of its roundoff.

        A map that does not say is wrong by one.
        """
        each = [np.broadcast_to(getattr(m, "rounding", 1.0), m.width) for m in self.maps]
        return np.add.reduce(each) if self.added else np.concatenate(each)

    def astype(self, dtype: type[np.floating], largest_input: float) -> "LayerFeatures":
        from_phi, from_x = (
            None if m is None else m.astype(dtype, largest_input)
            for m in (self.from_phi, self.from_x)
        )
        return LayerFeatures(from_phi, from_x, self.added)

    def __call__(self, phi: Array, x: Array, out: Array) -> None:
        """Write f_t of homogeneous rows (φ, 1), (x, 1) into ``out``."""
        split = 0 if self.from_phi is None or self.added else self.from_phi.width
        if self.from_phi is not None:
            self.from_phi(phi, out if self.added else out[:, :split])
        if self.from_x is not None and not self.added:
            self.from_x(x, out[:, split:])
        elif self.from_x is not None:
            addend = np.empty_like(out)
            self.from_x(x, addend)
            out += addend


@dataclass(frozen=True)
class LowRankStep:
    """A f = V(Cᵀf + c): the residual block, factored by its rank, which is at most d."""

    C: Array
    c: Array
    V: Array

    def scaled(self, factor: float) -> "LowRankStep":
        return LowRankStep(self.C, self.c, frozen(self.V * factor))

    def outputs(self, F: Array, sums: np.dtype | None = None) -> Array:
        """Cᵀf + c, the few numbers a row that the step depends on, summed in a dtype."""
        widened = sums is not None and sums != F.dtype
        return (double_product(F, self.C) if widened else product(F, self.C)) + self.c

    def move(self, outputs: Array) -> Array:
        """The step, given its outputs."""
        return product(outputs, self.V.T)

    def gain(self, W: Array, weights: Array) -> float:
        """The norm of what leads from features, each times a weight, to a head W of Φ."""
        leads = product(self.C, product(self.V.T, W))
        return float(np.linalg.norm(leads * weights[:, None]))

    def pull(self, G: Array) -> Array:
        """Gᵀ A row by row: how what changes by G with Φ changes with every feature."""
        return product(product(G, self.V), self.C.T.astype(float))


@dataclass(frozen=True)
class DiagonalStep:
    """A f = a ⊙ f: a diagonal, or (all entries equal) scalar A."""

    a: Array

    def scaled(self, factor: float) -> "DiagonalStep":
        return DiagonalStep(frozen(self.a * factor))

    def outputs(self, F: Array, sums: np.dtype | None = None) -> Array:
        return F * self.a

    def move(self, outputs: Array) -> Array:
        return outputs

    def gain(self, W: Array, weights: Array) -> float:
        return float(np.linalg.norm((self.a * weights)[:, None] * W))

    def pull(self, G: Array) -> Array:
        return G * self.a


@dataclass(frozen=True)
class Standardizer:
    """(φ − mean) / std with the training rows' statistics."""

    mean: Array
    std: Array

    def __call__(self, phi: Array) -> None:
        phi[:, :-1] -= self.mean
        phi[:, :-1] /= self.std


@dataclass(frozen=True)
class Layer:
    """Φ_t = Φ_{t−1} + η A_t f_t(x, Φ_{t−1}), then standardised if asked."""

    features: LayerFeatures
    step: LowRankStep | DiagonalStep
    standardizer: Standardizer | None

    def advance(self, phi: Array, outputs: Array) -> None:
        """Φ_{t−1} to Φ_t in place, given the step's outputs."""
        phi[:, :-1] += self.step.move(outputs)
        if self.standardizer is not None:
            self.standardizer(phi)


@dataclass(frozen=True)
class Head:
    """raw = Wᵀφ + b, stored as one matrix (D+1, d) for rows (φ, 1)."""

    matrix: Array

    @property
    def W(self) -> Array:
        return self.matrix[:-1]

    @property
    def b(self) -> Array:
        return self.matrix[-1]

    def __call__(self, phi: Array) -> Array:
        """Raw predictions of rows (φ, 1), column by column in memory."""
        return product(phi, self.matrix)


@dataclass(frozen=True)
class Network:
    """Φ_0, the layers, and the head fitted after each of them."""

    mean: Array
    initial: FeatureMap | None
    layers: tuple[Layer, ...]
    heads: tuple[Head, ...]

    @cached_property
    def precisions(self) -> tuple[tuple[np.dtype, np.dtype], ...]:
        """The dtypes in which each layer's features are predicted, and summed."""
        return self.precisions_for(LARGEST_NOISE)

    def precisions_for(self, noise: float) -> tuple[tuple[np.dtype, np.dtype], ...]:
        """The same where rounding may change a prediction by more, or less."""
        W = self.heads[-1].W

        def precision(layer: Layer) -> tuple[np.dtype, np.dtype]:
            rounding = layer.features.rounding
            gain = layer.step.gain(W, np.ones_like(rounding))
            wrong = layer.step.gain(W, rounding)
            return predicting_dtypes(layer.features.dtype, gain, wrong, noise)

        return tuple(map(precision, self.layers))

    def start(self, x: Array) -> Array:
        """Φ₀ of homogeneous rows, homogeneous too."""
        return start(self.initial, x)

    def staged(self, X: Array) -> Iterator[Array]:
        """Φ_0, …, Φ_T of a few rows: one array, advanced in place between two yields."""
        return self.staged_rows(centered(X, self.mean))

    def staged_rows(self, x: Array) -> Iterator[Array]:
        """The same of homogeneous rows (x − mean, 1)."""
        phi = self.start(x)
        yield phi
        buffers: dict[tuple[int, np.dtype], Array] = {}
        for layer, (dtype, sums) in zip(self.layers, self.precisions, strict=True):
            key = (layer.features.width, dtype)
            if key not in buffers:
                buffers[key] = np.empty((len(x), key[0]), key[1], order="F")
            F = buffers[key]
            layer.features(phi, x, F)
            layer.advance(phi, layer.step.outputs(F, sums))
            yield phi

    def transform(self, X: Array) -> Array:
        """Φ_T, block by block. With Φ₀ the identity it is in the coordinates of X itself."""
        shift = self.mean if self.initial is None and not self._standardizes() else 0.0

        def representation(rows: slice) -> Array:
            return self._last(X[rows])[:, :-1] + shift

        return np.vstack(side_by_side(representation, row_slices(len(X))))

    def raw(self, X: Array) -> Array:
        """Wᵀ_TΦ_T + b, block by block."""

        def last(rows: slice) -> Array:
            return self.heads[-1](self._last(X[rows]))

        return np.vstack(side_by_side(last, row_slices(len(X))))

    def staged_raw(self, X: Array) -> list[Array]:
        """The raw predictions after 0, 1, …, T layers."""

        def stages(rows: slice) -> list[Array]:
            return [head(phi) for phi, head in zip(self.staged(X[rows]), self.heads, strict=True)]

        blocks = side_by_side(stages, row_slices(len(X)))
        return [np.vstack(stage) for stage in zip(*blocks, strict=True)]

    def _last(self, X: Array) -> Array:
        for phi in self.staged(X):
            last = phi
        return last

    def _standardizes(self) -> bool:
        return any(layer.standardizer is not None for layer in self.layers)


def double_product(F: Array, C: Array) -> Array:
    """F·C summed in double precision, some columns at a time: they stay in a cache."""
    total = np.zeros((len(F), C.shape[1]))
    wide = np.empty((len(F), COLUMNS), order="F")
    for begin in range(0, F.shape[1], COLUMNS):
        some = F[:, begin : begin + COLUMNS]
        part = wide[:, : some.shape[1]]
        part[...] = some
        total += product(part, C[begin : begin + COLUMNS].astype(float))
    return total


def start(initial: FeatureMap | None, x: Array) -> Array:
    """Φ₀: the identity, or random features of x."""
    if initial is None:
        return x.copy()
    phi = np.empty((len(x), initial.width + 1))
    features = phi[:, :-1]
    initial(x, features)
    phi[:, -1] = 1.0
    return phi


def centered(X: Array, mean: Array) -> Array:
    """Rows (x − mean, 1) in float64."""
    rows = np.empty((len(X), X.shape[1] + 1))
    np.subtract(X, mean, out=rows[:, :-1])
    rows[:, -1] = 1.0
    return rows


def row_slices(n: int) -> list[slice]:
    return [slice(i, i + PREDICT_ROWS) for i in range(0, max(n, 1), PREDICT_ROWS)]


# Rows differentiated at a time: a layer's cotangents are as large as its features, d times.
GRADIENT_ROWS = 512


def input_gradient(network: Network, X: Array) -> Array:
    """∂raw_j/∂x of every row, as (n, columns, outputs), block by block."""
    blocks = [
        rows_gradient(network, centered(X[begin : begin + GRADIENT_ROWS], network.mean))
        for begin in range(0, max(len(X), 1), GRADIENT_ROWS)
    ]
    return np.concatenate(blocks)


def rows_gradient(network: Network, x: Array) -> Array:
    """The same of a few homogeneous rows (x − mean, 1)."""
    phis = before_layers(network, x)
    W = network.heads[-1].W
    G = [np.tile(W[:, j], (len(x), 1)) for j in range(W.shape[1])]
    in_x = [np.zeros((len(x), x.shape[1] - 1)) for _ in G]
    for layer, phi in zip(reversed(network.layers), reversed(phis), strict=True):
        pullback = LayerPullback(layer, phi, x)
        for j in range(len(G)):
            G[j], addend = pullback(G[j])
            in_x[j] += addend
    return np.stack([a + _through(network.initial, x, g) for a, g in zip(in_x, G, strict=True)], 2)


def before_layers(network: Network, x: Array) -> list[Array] | list[None]:
    """Φ before each layer; nothing where no layer looks at it, since predicting takes time."""
    if all(layer.features.from_phi is None for layer in network.layers):
        return [None] * len(network.layers)
    # The array that ``staged_rows`` yields is advanced in place.
    return [phi.copy() for phi in network.staged_rows(x)][:-1]


def _through(initial: FeatureMap | None, x: Array, G: Array) -> Array:
    """∂raw/∂Φ₀ to ∂raw/∂x: as it is for the identity, else through the first features."""
    return G if initial is None else pullback(initial, x)(G)


def pullback(features: Any, rows: Array) -> Callable[[Array], Array]:
    """A feature map's derivative at some rows: cotangents of its features to those of its input."""
    if not hasattr(features, "pullback"):
        raise TypeError(
            f"Features of type {type(features).__name__} have no known derivative, so the "
            "input gradient is not defined. Use features='swim', 'gaussian', 'uniform' or "
            "'fourier', or a sampler that returns DenseFeatures."
        )
    return features.pullback(rows)


class LayerPullback:
    """∂raw/∂Φ_t to ∂raw/∂Φ_{t−1} and the layer's share of ∂raw/∂x, at some rows."""

    def __init__(self, layer: Layer, phi: Array | None, x: Array) -> None:
        self.layer, maps = layer, layer.features
        self.from_phi = (
            None if maps.from_phi is None or phi is None else pullback(maps.from_phi, phi)
        )
        self.from_x = None if maps.from_x is None else pullback(maps.from_x, x)

    def __call__(self, G: Array) -> tuple[Array, Array | float]:
        if self.layer.standardizer is not None:
            G = G / self.layer.standardizer.std
        to_phi, to_x = split(self.layer.features, self.layer.step.pull(G))
        in_phi = G if self.from_phi is None else G + self.from_phi(to_phi)
        return in_phi, 0.0 if self.from_x is None else self.from_x(to_x)


def split(features: LayerFeatures, cotangent: Array) -> Iterator[Array]:
    """The parts that belong to the features of Φ and of x; summed features have both in common."""
    if features.added:
        yield cotangent
        yield cotangent
        return
    width = 0 if features.from_phi is None else features.from_phi.width
    yield cotangent[:, :width]
    yield cotangent[:, width:]
