"""How much each column matters to an automatic fit, by its own input gradients."""

from dataclasses import replace
from typing import cast

import numpy as np
from numpy.random import SeedSequence, default_rng

from rfrboost._model.features import DenseFeatures
from rfrboost._model.network import Head, LowRankStep, Network, input_gradient
from rfrboost._numerics.arrays import content_order, frozen
from rfrboost._numerics.blas import product
from rfrboost._numerics.threads import side_by_side
from rfrboost._typing import Array, Indices

# Rows whose gradients say how much each column matters.
IMPORTANCE_ROWS = 64


# Into how many equal parts they are cut, for threads to share, from so many entries of X on: small
# parts take longer side by side than one after the other, because each call waits for the lock.
PARTS = 4


WORTHWHILE = 2**17


def importances(network: Network, X: Array, w: Array | None, sources: Indices) -> Array | None:
    """Each column's share of the mean squared input gradient, in units of its own deviation.

    ``sources`` says what each column is made of. Columns of one source vary together: what they
    count for, summed over them, is the variance of the model's linear part in all of them, so
    that it does not matter how a source was encoded. None where some features have no derivative.
    """
    maps = [m for layer in network.layers for m in layer.features.maps]
    if not all(hasattr(m, "pullback") for m in maps):
        return None
    rng = default_rng(SeedSequence(0))
    order = content_order(X, np.zeros((len(X), 1)), rng)
    chances = None if w is None else w[order] / w.sum()
    rows = order[rng.choice(len(X), IMPORTANCE_ROWS, p=chances)]
    mean = np.average(X, axis=0, weights=w)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w))
    narrow = averaged(network)
    # In parts whatever the number of threads, so that it changes no bit.
    cut = np.split(rows, PARTS if X.size >= WORTHWHILE else 1)
    parts = side_by_side(lambda part: input_gradient(narrow, X[part]), cut)
    gradient = np.concatenate(parts) * deviation[:, None]
    gradient /= np.abs(gradient).max() or 1.0
    moved = gradient.copy()
    for source in np.flatnonzero(np.bincount(sources) > 1):
        own = np.flatnonzero(sources == source)
        Z = (X[:, own] - mean[own]) / np.where(deviation[own] > 0, deviation[own], 1.0)
        weighted = Z if w is None else Z * w[:, None]
        correlation = product(Z.T, weighted) / (len(X) if w is None else w.sum())
        moved[:, own] = np.einsum("jk,nkd->njd", correlation, gradient[:, own])
    shares = (gradient * moved).sum(axis=(0, 2))
    return shares / (shares.sum() or 1.0)


def averaged(network: Network) -> Network:
    """The same predictions by a Φ that is their mean over members already, and so is narrower.

    Nothing of such a network depends on Φ, so the head may as well come first.
    """
    W, first = network.heads[-1].W, cast(DenseFeatures, network.initial)
    unit = frozen(np.eye(W.shape[1]))
    layers = []
    for layer in network.layers:
        step = cast(LowRankStep, layer.step)
        inward = product(step.V.T, W)
        step = LowRankStep(frozen(product(step.C, inward)), frozen(step.c @ inward), unit)
        layers.append(replace(layer, step=step))
    initial = DenseFeatures(frozen(product(first.weights, W)), "identity")
    head = Head(frozen(np.vstack([unit, np.zeros(len(unit))])))
    return Network(network.mean, initial, tuple(layers), (head,) * len(network.heads))
