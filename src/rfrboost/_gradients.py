"""Derivatives of the raw prediction in the inputs, by the chain rule backwards through the layers.

With G_t = ∂raw/∂Φ_t, equation (eqGradientRepresentationBoostingResNetEquation) gives
G_{t−1} = G_t + G_t A_t ∂f_t/∂Φ_{t−1}, and each layer adds G_t A_t ∂f_t/∂x to the derivative in x.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rfrboost._features import FeatureMap
from rfrboost._network import Layer, LayerFeatures, Network, centered
from rfrboost._typing import Array

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
