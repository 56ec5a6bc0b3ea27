"""The floor of a fit or a prediction: its unavoidable matrix work and nothing else.

The floor does the products, Grams, Cholesky factorisations and activations of a fitted network, at
its shapes and in its precision, batch by batch, in the fastest memory layout we know and on arrays
that are allocated before the clock starts. The ratio of a fit to its floor says how much is lost.
"""

from collections.abc import Callable
from time import perf_counter

import numpy as np
from numpy.random import default_rng
from scipy.linalg.lapack import dpotrf, spotrf

from rfrboost._model.network import PREDICT_ROWS, LayerFeatures, Network
from rfrboost._numerics.blas import gram, product
from rfrboost._numerics.sizes import BATCH_ROWS as BLOCK_ROWS


def best_of(repeats: int, call: Callable[[], object]) -> float:
    """The shortest of several timings of ``call``."""
    shortest = np.inf
    for _ in range(repeats):
        began = perf_counter()
        call()
        shortest = min(shortest, perf_counter() - began)
    return float(shortest)


class Block:
    """Random arrays in place of a batch: inputs of the feature maps, features, Φ, residuals."""

    def __init__(self, rows: int, features: LayerFeatures, columns: int, d: int) -> None:
        rng = default_rng(0)
        self.features = features
        self.inputs = [
            rng.standard_normal((rows, m.weights.shape[0])).astype(m.dtype) for m in features.maps
        ]
        self.F = np.empty((rows, features.width), features.dtype, order="F")
        self.R = np.asfortranarray(rng.standard_normal((rows, d + 1)), features.dtype)
        self.phi = rng.standard_normal((rows, columns + 1))

    def compute_features(self) -> None:
        """Two products with the weights, and the activation, in place."""
        split = self.features.maps[0].width
        for z, m, half in zip(
            self.inputs, self.features.maps, (self.F[:, :split], self.F[:, split:]), strict=True
        ):
            product(z, m.weights, half)
        np.tanh(self.F, out=self.F)


def block_sizes(n: int, size: int) -> list[int]:
    """The sizes of the batches of n rows."""
    return [min(size, n - begin) for begin in range(0, n, size)]


def fit_floor(network: Network, n: int, columns: int, evaluations: int) -> Callable[[], None]:
    """A function that does the matrix work of a fit of n rows.

    For every layer: features, their Gram, Cholesky, two thin products, and the Gram of Φ for the
    head. A logistic head has no closed form; its part is the products and exponentials of the
    ``evaluations`` of risk and gradient that its solver made.
    """
    layers = network.layers
    d = len(network.heads[0].b)
    features = layers[0].features
    blocks = [Block(size, features, columns, d) for size in block_sizes(n, BLOCK_ROWS)]
    p = features.width
    dtype = features.dtype
    C = default_rng(0).standard_normal((p, d)).astype(dtype)
    W = default_rng(0).standard_normal((columns + 1, d))
    ready = np.asfortranarray(np.eye(p) + 0.1, dtype)
    factored = np.empty_like(ready)
    potrf = spotrf if dtype == np.float32 else dpotrf

    def layer() -> None:
        for block in blocks:
            block.compute_features()
            gram(block.F)
            product(block.R.T, block.F)
        np.copyto(factored, ready)
        potrf(factored, lower=1, clean=0, overwrite_a=1)
        for block in blocks:
            product(block.F, C)
            gram(block.phi)

    def run() -> None:
        for _ in layers:
            layer()
        for _ in range(evaluations):
            for block in blocks:
                raw = product(block.phi, W)
                np.exp(raw, out=raw)
                product(block.phi.T, raw)

    return run


def predict_floor(network: Network, n: int, columns: int) -> Callable[[], None]:
    """A function that does the matrix work of a prediction: features and one product per layer."""
    features = network.layers[0].features
    d = len(network.heads[0].b)
    sizes = block_sizes(n, PREDICT_ROWS)
    # All batches of a prediction use the same memory.
    ready = {size: Block(size, features, columns, d) for size in set(sizes)}
    C = default_rng(0).standard_normal((features.width, d)).astype(features.dtype)

    def run() -> None:
        for size in sizes:
            for _ in network.layers:
                ready[size].compute_features()
                product(ready[size].F, C)

    return run
