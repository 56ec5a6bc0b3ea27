"""The fitted model: a residual network of frozen arrays, without hyper-parameters or data.

From top to bottom: the parts of a layer (features, step, standardisation), the head, the
:class:`Network` with its forward pass, and derivatives of the raw prediction in the inputs.

Shapes: x (n, D₀ + 1) and Φ (n, D + 1) are homogeneous rows, whose last column is 1; a layer has p
features; raw predictions are (n, d). A network works on arrays of numbers; tables are encoded
before (:mod:`rfrboost._tables.encoder`).

Derivatives follow the chain rule backwards through the layers. With G_t = ∂raw/∂Φ_t, equation
(eqGradientRepresentationBoostingResNetEquation) gives G_{t−1} = G_t + G_t A_t ∂f_t/∂Φ_{t−1}, and
each layer adds G_t A_t ∂f_t/∂x to the derivative in x.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from rfrboost._model.features import (
    DenseFeatures,
    DifferentiableFeatures,
    FeatureMap,
    rounding_of,
)
from rfrboost._model.prediction import Collapsed, collapse
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import product
from rfrboost._numerics.precision import LARGEST_FACTOR, LARGEST_NOISE, predicting_dtypes
from rfrboost._numerics.threads import side_by_side
from rfrboost._typing import Array

# Rows predicted at a time, which bounds the memory of a prediction of any size. Enough rows for
# fast products, and few enough that threads have several batches to share.
PREDICT_ROWS = 512

# Rows differentiated at a time: a layer's derivatives take d times the memory of its features.
GRADIENT_ROWS = 512

# Columns of single-precision features that are converted to double precision at a time: few enough
# to stay in a processor's cache.
DOUBLE_COLUMNS = 128


# For each layer, the dtypes in which its features are predicted, and summed.
Precisions = tuple[tuple[np.dtype, np.dtype], ...]
DOUBLE = (np.dtype(np.float64), np.dtype(np.float64))


# The parts of a layer


@dataclass(frozen=True)
class LayerFeatures:
    """f_t(x, Φ): features of Φ and of x, side by side or (``added``) summed."""

    from_phi: FeatureMap | None
    from_x: FeatureMap | None
    added: bool = False
    maps: tuple[FeatureMap, ...] = field(init=False, repr=False, compare=False)
    width: int = field(init=False, repr=False, compare=False)
    dtype: np.dtype = field(init=False, repr=False, compare=False)
    bound: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        maps = tuple(m for m in (self.from_phi, self.from_x) if m is not None)
        widths = [m.width for m in maps]
        width = max(widths, default=0) if self.added else sum(widths)
        object.__setattr__(self, "maps", maps)
        object.__setattr__(self, "width", width)
        object.__setattr__(self, "dtype", np.result_type(np.float32, *(m.dtype for m in maps)))
        object.__setattr__(self, "bound", max((m.bound for m in maps), default=0.0))

    def rounding(self) -> Array:
        """The error of each feature (p,) in single precision, in units of its roundoff."""
        each = [rounding_of(m) for m in self.maps]
        return np.add.reduce(each) if self.added else np.concatenate(each)

    def astype(self, dtype: type[np.floating], largest_input: float) -> "LayerFeatures":
        """The features computed in ``dtype``, each map as far as that is accurate."""
        from_phi, from_x = (
            None if m is None else m.astype(dtype, largest_input)
            for m in (self.from_phi, self.from_x)
        )
        return LayerFeatures(from_phi, from_x, self.added)

    def __call__(self, phi: Array, x: Array, out: Array) -> None:
        """Write f_t of homogeneous rows (φ, 1), (x, 1) into ``out`` (n, p)."""
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
    """A f = V(Cᵀf + c): the residual block, factored by its rank r, which is at most d.

    C is (p, r), c (r,) and V (D, r).
    """

    C: Array
    c: Array
    V: Array

    def scaled(self, factor: float) -> "LowRankStep":
        """The step times a factor."""
        return LowRankStep(self.C, self.c, frozen(self.V * factor))

    def outputs(self, F: Array, sums: np.dtype | None = None) -> Array:
        """Cᵀf + c (n, r), on which the step depends alone; summed in ``sums``, or F's dtype."""
        widened = sums is not None and sums != F.dtype
        return (double_product(F, self.C) if widened else product(F, self.C)) + self.c

    def move(self, outputs: Array) -> Array:
        """The step (n, D), given its outputs."""
        return product(outputs, self.V.T)

    def leads(self, W: Array) -> Array:
        """The coefficients (p, d) that lead from the features to WᵀΦ."""
        return product(self.C.astype(float), product(self.V.T, W))

    def constant(self, W: Array) -> Array:
        """What the step adds to WᵀΦ where all features are 0, (d,)."""
        constant: Array = product(self.c[None], product(self.V.T, W))[0]
        return constant

    def pull(self, G: Array) -> Array:
        """Derivatives in Φ (n, D) as derivatives in the features (n, p)."""
        return product(product(G, self.V), self.C.T.astype(float))


@dataclass(frozen=True)
class DiagonalStep:
    """A f = a ⊙ f with a (D,): a diagonal A, or a scalar one if all entries are equal."""

    a: Array

    def scaled(self, factor: float) -> "DiagonalStep":
        return DiagonalStep(frozen(self.a * factor))

    def outputs(self, F: Array, sums: np.dtype | None = None) -> Array:
        return F * self.a

    def move(self, outputs: Array) -> Array:
        return outputs

    def leads(self, W: Array) -> Array:
        return self.a[:, None] * W

    def constant(self, W: Array) -> Array:
        return np.zeros(W.shape[1])

    def pull(self, G: Array) -> Array:
        return G * self.a


@dataclass(frozen=True)
class Standardizer:
    """(φ − mean) / std with the training rows' statistics, each (D,)."""

    mean: Array
    std: Array

    def __call__(self, phi: Array) -> None:
        """Standardise homogeneous rows in place."""
        phi[:, :-1] -= self.mean
        phi[:, :-1] /= self.std


@dataclass(frozen=True)
class Layer:
    """Φ_t = Φ_{t−1} + η A_t f_t(x, Φ_{t−1}), with η in the step; then standardised, if so set."""

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
    """raw = Wᵀφ + b, stored as one matrix (D + 1, d) for rows (φ, 1)."""

    matrix: Array

    @property
    def W(self) -> Array:
        return self.matrix[:-1]

    @property
    def b(self) -> Array:
        weights: Array = self.matrix[-1]
        return weights

    def __call__(self, phi: Array) -> Array:
        """Raw predictions (n, d) of rows (φ, 1), in Fortran order."""
        return product(phi, self.matrix)


# The network and its forward pass


@dataclass(frozen=True)
class Network:
    """Φ_0, the layers, and the head fitted after each of them.

    ``mean`` (D₀,) is subtracted from x. ``initial`` makes Φ_0 of x; None stands for the identity.
    There is one head more than there are layers.
    """

    mean: Array
    initial: FeatureMap | None
    layers: tuple[Layer, ...]
    heads: tuple[Head, ...]

    @cached_property
    def precisions(self) -> Precisions:
        """For each layer, the dtypes in which its features are predicted, and summed."""
        return self.precisions_for(LARGEST_NOISE)

    def precisions_for(self, noise: float) -> Precisions:
        """These dtypes if rounding may change a prediction by ``noise``."""
        W = self.heads[-1].W

        def precision(layer: Layer) -> tuple[np.dtype, np.dtype]:
            leads = layer.step.leads(W)
            # An infinite norm asks for double precision, as a very large one does.
            with np.errstate(over="ignore"):
                gain = float(np.linalg.norm(leads))
                wrong = float(np.linalg.norm(leads * layer.features.rounding()[:, None]))
            return predicting_dtypes(layer.features.dtype, gain, wrong, noise)

        return tuple(map(precision, self.layers))

    def start(self, x: Array) -> Array:
        """Φ₀ of homogeneous rows (x − mean, 1), homogeneous too."""
        return start(self.initial, x)

    def staged(self, X: Array) -> Iterator[Array]:
        """Φ_0, …, Φ_T of a batch of rows X (n, D₀): one array, advanced in place each time."""
        return self.staged_rows(centered(X, self.mean), self.precisions)

    def staged_rows(self, x: Array, precisions: Precisions) -> Iterator[Array]:
        """As :meth:`staged`, of homogeneous rows (x − mean, 1)."""
        phi = self.start(x)
        yield phi
        buffers: dict[tuple[int, np.dtype], Array] = {}
        for layer, (dtype, sums) in zip(self.layers, precisions, strict=True):
            key = (layer.features.width, dtype)
            if key not in buffers:
                buffers[key] = np.empty((len(x), key[0]), key[1], order="F")
            F = buffers[key]
            layer.features(phi, x, F)
            layer.advance(phi, layer.step.outputs(F, sums))
            yield phi

    def transform(self, X: Array) -> Array:
        """Φ_T (n, D), batch by batch. If Φ₀ is the identity, it is in the coordinates of X."""
        shift = self.mean if self.initial is None and not self._standardizes() else 0.0
        return self._batches(X, self.representation, lambda phi: phi[:, :-1]) + shift

    def raw(self, X: Array) -> Array:
        """The raw predictions Wᵀ_TΦ_T + b (n, d), batch by batch."""
        return self._batches(X, self.prediction, self.heads[-1])

    @cached_property
    def prediction(self) -> Collapsed | None:
        """The form in which the raw predictions of an ensemble are computed; else None."""
        return self.collapsed(self.heads[-1].matrix)

    @cached_property
    def representation(self) -> Collapsed | None:
        """The form in which the Φ_T of an ensemble is computed; else None."""
        D = len(self.heads[-1].W)
        return self.collapsed(np.eye(D + 1, D))

    def ready(self) -> "Network":
        """This network, with its form of prediction made: the first row needs not wait for it."""
        _ = self.prediction
        return self

    def collapsed(self, matrix: Array) -> Collapsed | None:
        """(Φ_T, 1)·matrix as one sum over features of x; None unless Φ₀ and all layers allow it."""
        of_x_alone = all(layer.features.from_phi is None for layer in self.layers)
        if not isinstance(self.initial, DenseFeatures) or self.initial.activation != "identity":
            return None
        if not of_x_alone or self._standardizes():
            return None
        W = matrix[:-1]
        linear = product(self.initial.weights.astype(float), W)
        linear[-1] += matrix[-1] + sum(layer.step.constant(W) for layer in self.layers)
        terms = [
            (layer.features.from_x, layer.step.leads(W))
            for layer in self.layers
            if layer.features.from_x is not None
        ]
        return collapse(linear, terms)

    def _batches(self, X: Array, form: Collapsed | None, last: Callable[[Array], Array]) -> Array:
        """What ``last`` makes of (Φ_T, 1), batch by batch, by its collapsed form if it has one.

        Rows beyond the range of single precision are computed layer by layer, in double precision.
        """

        def batch(rows: slice) -> Array:
            x = centered(X[rows], self.mean)
            if form is None:
                return last(self.last(x, self.precisions))
            near = np.abs(x).max(axis=1) < LARGEST_FACTOR
            if near.all():
                return form(x)
            total = np.empty((len(x), form.linear.shape[1]))
            total[near] = form(x[near])
            total[~near] = last(self.last(x[~near], (DOUBLE,) * len(self.layers)))
            return total

        if len(X) == 1 and form is not None and form.compiled:
            # Nothing of it is done by BLAS, whose threads need not be limited then.
            return batch(slice(0, 1))
        return np.vstack(side_by_side(batch, row_slices(len(X))))

    def staged_raw(self, X: Array) -> list[Array]:
        """The raw predictions after 0, 1, …, T layers, each (n, d)."""

        def stages(rows: slice) -> list[Array]:
            return [head(phi) for phi, head in zip(self.staged(X[rows]), self.heads, strict=True)]

        batches = side_by_side(stages, row_slices(len(X)))
        return [np.vstack(stage) for stage in zip(*batches, strict=True)]

    def last(self, x: Array, precisions: Precisions) -> Array:
        """(Φ_T, 1) of homogeneous rows (x − mean, 1), layer by layer."""
        for phi in self.staged_rows(x, precisions):
            last = phi
        return last

    def __getstate__(self) -> dict[str, Any]:
        # Without what is computed from the arrays, which would make a pickle several times larger.
        return {own.name: getattr(self, own.name) for own in fields(self)}

    def _standardizes(self) -> bool:
        return any(layer.standardizer is not None for layer in self.layers)


def double_product(F: Array, C: Array) -> Array:
    """F·C summed in double precision, some columns of F at a time."""
    total = np.zeros((len(F), C.shape[1]))
    wide = np.empty((len(F), DOUBLE_COLUMNS), order="F")
    for begin in range(0, F.shape[1], DOUBLE_COLUMNS):
        some = F[:, begin : begin + DOUBLE_COLUMNS]
        part = wide[:, : some.shape[1]]
        part[...] = some
        total += product(part, C[begin : begin + DOUBLE_COLUMNS].astype(float))
    return total


def start(initial: FeatureMap | None, x: Array) -> Array:
    """Φ₀ of homogeneous rows: the rows themselves, or random features of them."""
    if initial is None:
        return x.copy()
    phi = np.empty((len(x), initial.width + 1))
    features = phi[:, :-1]
    initial(x, features)
    phi[:, -1] = 1.0
    return phi


def centered(X: Array, mean: Array) -> Array:
    """Homogeneous rows (x − mean, 1) in float64."""
    rows = np.empty((len(X), X.shape[1] + 1))
    np.subtract(X, mean, out=rows[:, :-1])
    rows[:, -1] = 1.0
    return rows


def row_slices(n: int, batch_rows: int = PREDICT_ROWS) -> list[slice]:
    """The batches of n rows; one empty batch if there are no rows."""
    return [slice(i, i + batch_rows) for i in range(0, max(n, 1), batch_rows)]


# Derivatives in the inputs


def input_gradient(network: Network, X: Array) -> Array:
    """∂raw_j/∂x_i of every row, as (n, columns, outputs), batch by batch."""
    batches = [
        rows_gradient(network, centered(X[rows], network.mean))
        for rows in row_slices(len(X), GRADIENT_ROWS)
    ]
    return np.concatenate(batches)


def rows_gradient(network: Network, x: Array) -> Array:
    """The input gradient of a batch of homogeneous rows (x − mean, 1)."""
    phis = before_layers(network, x)
    W = network.heads[-1].W
    G = [np.tile(W[:, j], (len(x), 1)) for j in range(W.shape[1])]
    in_x = [np.zeros((len(x), x.shape[1] - 1)) for _ in G]
    for layer, phi in zip(reversed(network.layers), reversed(phis), strict=True):
        pullback = LayerPullback(layer, phi, x)
        for j in range(len(G)):
            G[j], addend = pullback(G[j])
            in_x[j] += addend
    if network.initial is not None:
        through_initial = pullback_of(network.initial, x)
        G = [through_initial(g) for g in G]
    return np.stack([a + g for a, g in zip(in_x, G, strict=True)], 2)


def before_layers(network: Network, x: Array) -> list[Array] | list[None]:
    """Φ before each layer, or None for each if no layer uses it, since predicting takes time."""
    if all(layer.features.from_phi is None for layer in network.layers):
        return [None] * len(network.layers)
    # The array that ``staged_rows`` yields is advanced in place.
    return [phi.copy() for phi in network.staged_rows(x, network.precisions)][:-1]


def pullback_of(features: FeatureMap, rows: Array) -> Callable[[Array], Array]:
    """A feature map's derivative at some rows, if it is one of ``DifferentiableFeatures``."""
    if not isinstance(features, DifferentiableFeatures):
        raise TypeError(
            f"Features of type {type(features).__name__} have no known derivative, so the "
            "input gradient is not defined. Use features='swim', 'gaussian', 'uniform' or "
            "'fourier', or a sampler that returns DenseFeatures."
        )
    return features.pullback(rows)


class LayerPullback:
    """∂raw/∂Φ_t to ∂raw/∂Φ_{t−1} and the layer's share of ∂raw/∂x, at some rows."""

    def __init__(self, layer: Layer, phi: Array | None, x: Array) -> None:
        self.layer = layer
        from_phi = layer.features.from_phi
        from_x = layer.features.from_x
        self.from_phi = None if from_phi is None or phi is None else pullback_of(from_phi, phi)
        self.from_x = None if from_x is None else pullback_of(from_x, x)

    def __call__(self, G: Array) -> tuple[Array, Array | float]:
        if self.layer.standardizer is not None:
            G = G / self.layer.standardizer.std
        to_phi, to_x = split(self.layer.features, self.layer.step.pull(G))
        in_phi = G if self.from_phi is None else G + self.from_phi(to_phi)
        return in_phi, 0.0 if self.from_x is None else self.from_x(to_x)


def split(features: LayerFeatures, cotangent: Array) -> tuple[Array, Array]:
    """Derivatives in a layer's features as those in its features of Φ and in those of x."""
    if features.added:
        return cotangent, cotangent
    width = 0 if features.from_phi is None else features.from_phi.width
    return cotangent[:, :width], cotangent[:, width:]
