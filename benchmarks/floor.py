"""The least a fit or a prediction can cost: its products, factorisations and activations alone.

Everything is timed there and then at the fit's own shapes, in the precision the fit used, in
blocks of the fit's own size (smaller blocks stay in cache and are no slower). Best of several.
"""

from collections.abc import Callable
from time import perf_counter

import numpy as np
from numpy.random import default_rng
from scipy.linalg.blas import dsyrk, ssyrk
from scipy.linalg.lapack import dpotrf, spotrf

from rfrboost._network import PREDICT_ROWS, Network
from rfrboost._rows import BLOCK_ROWS


def best_of(repeats: int, call: Callable[[], object]) -> float:
    """The shortest of several timings of ``call``."""
    shortest = np.inf
    for _ in range(repeats):
        began = perf_counter()
        call()
        shortest = min(shortest, perf_counter() - began)
    return float(shortest)


def feature_floor(network: Network, rows: int, columns: int, repeats: int) -> float:
    """Two products with the weights, and the activation in place: one layer, one block."""
    rng = default_rng(0)
    features = network.layers[0].features
    out = np.empty((rows, features.width), features.dtype)
    z = [rng.standard_normal((rows, m.weights.shape[0])).astype(m.dtype) for m in features.maps]
    maps, split = features.maps, features.maps[0].width

    def products() -> None:
        np.matmul(z[0], maps[0].weights, out=out[:, :split])
        np.matmul(z[1], maps[1].weights, out=out[:, split:])

    time = best_of(repeats, products)
    before = out.copy()
    return time + best_of(repeats, lambda: np.tanh(before, out=out))


def fit_floor(network: Network, n: int, columns: int, evaluations: int, repeats: int) -> float:
    """All layers of a fit: features, Gram, its Cholesky, two thin products, and the heads.

    A logistic head has no closed form; its floor is the products and exponentials of the
    ``evaluations`` of risk and gradient that its solver made.
    """
    rng = default_rng(0)
    rows = min(n, BLOCK_ROWS)
    blocks = n / rows
    features, d = network.layers[0].features, len(network.heads[0].b)
    p, dtype = features.width, features.dtype
    syrk, potrf = (ssyrk, spotrf) if dtype == np.float32 else (dsyrk, dpotrf)
    F = np.tanh(rng.standard_normal((rows, p))).astype(dtype)
    R, C = (
        rng.standard_normal((rows, d + 1)).astype(dtype),
        rng.standard_normal((p, d)).astype(dtype),
    )
    G = np.zeros((p, p), dtype, order="F")
    phi = rng.standard_normal((rows, columns + 1))
    spd = np.asfortranarray(F.T @ F + 4 * np.eye(p, dtype=dtype))
    a_block = feature_floor(network, rows, columns, repeats)
    a_block += best_of(repeats, lambda: syrk(1.0, F.T, beta=0.0, c=G, overwrite_c=1, lower=1))
    a_block += best_of(repeats, lambda: F.T @ R) + best_of(repeats, lambda: F @ C)
    a_block += best_of(repeats, lambda: dsyrk(1.0, phi.T, lower=1))
    copies = iter([spd.copy(order="F") for _ in range(repeats)])
    factor = best_of(repeats, lambda: potrf(next(copies), lower=1, clean=0, overwrite_a=1))
    head = head_floor(phi, d, repeats) * blocks * evaluations if evaluations else 0.0
    return len(network.layers) * (blocks * a_block + factor) + head


def head_floor(phi: np.ndarray, d: int, repeats: int) -> float:
    """Risk and gradient of a logistic head once: two products and an exponential."""
    W = default_rng(0).standard_normal((phi.shape[1], d))
    raw = (W.T @ phi.T).T
    time = best_of(repeats, lambda: (W.T @ phi.T).T) + best_of(repeats, lambda: raw.T @ phi)
    return time + best_of(repeats, lambda: np.exp(raw))


def predict_floor(network: Network, n: int, columns: int, repeats: int) -> float:
    """A prediction: features and one thin product a layer."""
    rows = min(n, PREDICT_ROWS)
    features = network.layers[0].features
    F = np.ones((rows, features.width), features.dtype)
    C = np.ones((features.width, len(network.heads[0].b)), features.dtype)
    a_block = feature_floor(network, rows, columns, repeats) + best_of(repeats, lambda: F @ C)
    return len(network.layers) * n / rows * a_block
