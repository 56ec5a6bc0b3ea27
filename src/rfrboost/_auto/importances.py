"""How much each column matters to a model: shares of its mean squared input gradient.

:func:`gradient_shares` is the only formula. An automatic fit calls it through :func:`importances`
with gradients at 64 training rows; :mod:`rfrboost.inspection` calls it for single networks with
gradients at given rows. The shares say what the model responds to locally, not what its score
would lose without a column: permutation importance says that.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.random import SeedSequence, default_rng

from rfrboost._model.features import DenseFeatures, DifferentiableFeatures
from rfrboost._model.network import Head, LowRankStep, Network, input_gradient
from rfrboost._numerics.arrays import content_order, frozen
from rfrboost._numerics.blas import product
from rfrboost._numerics.threads import side_by_side
from rfrboost._typing import Array, Indices

# Rows, drawn by weight, at which gradients are taken.
IMPORTANCE_ROWS = 64

# Threads share these rows in PARTS equal parts if X has at least SHARED_ENTRIES entries. With fewer
# entries, threads take longer than one loop, because each call waits for Python's lock.
PARTS = 4
SHARED_ENTRIES = 2**17


def importances(network: Network, X: Array, w: Array | None, sources: Indices) -> Array | None:
    """Each encoded column's share of the mean squared input gradient, over a sample of rows.

    ``X`` are the encoded rows (n, D), ``w`` their weights, and ``sources`` (D,) says which column
    of the table each encoded column was made from. None if some features have no derivative.
    """
    maps = [m for layer in network.layers for m in layer.features.maps]
    if not all(isinstance(m, DifferentiableFeatures) for m in maps):
        return None
    rng = default_rng(SeedSequence(0))
    order = content_order(X, np.zeros((len(X), 1)), rng)
    chances = None if w is None else w[order] / w.sum()
    rows = order[rng.choice(len(X), IMPORTANCE_ROWS, p=chances)]
    mean = np.average(X, axis=0, weights=w)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w))
    narrow = averaged(network)
    # In parts whatever the number of threads, so that it changes no bit.
    cut = np.split(rows, PARTS if X.size >= SHARED_ENTRIES else 1)
    parts = side_by_side(lambda part: input_gradient(narrow, X[part]), cut)
    correlations = source_correlations(X, w, mean, deviation, sources)
    return gradient_shares(np.concatenate(parts), deviation, correlations)


def source_correlations(
    X: Array, w: Array | None, mean: Array, deviation: Array, sources: Indices
) -> Iterator[tuple[Indices, Array]]:
    """For each source of several encoded columns: which columns, and how these correlate."""
    for source in np.flatnonzero(np.bincount(sources) > 1):
        own = np.flatnonzero(sources == source)
        Z = (X[:, own] - mean[own]) / np.where(deviation[own] > 0, deviation[own], 1.0)
        weighted = Z if w is None else Z * w[:, None]
        yield own, product(Z.T, weighted) / (len(X) if w is None else w.sum())


def gradient_shares(
    gradients: Array, deviations: Array, correlations: Iterable[tuple[Indices, Array]] = ()
) -> Array:
    """Shares (D,) of the columns in the mean squared input gradient; they add up to 1.

    With g_j the derivative by column j times the column's standard deviation, a column alone in
    its source counts Σ g_j² over rows and outputs. Columns of one source vary together: with
    their correlation matrix R column j counts Σ g_j (R g)_j. Summed over the source that is the
    variance of the model's linear part in it, however the source was encoded. A single column's
    count may then be negative, the sum over its source may not.

    Parameters
    ----------
    gradients : array of shape (n, D, d)
        Derivatives of the d outputs by the D columns at n rows.
    deviations : array of shape (D,)
        The columns' standard deviations.
    correlations : pairs of (columns, matrix), optional
        For each source of several columns, their places and their correlation matrix.
    """
    gradient = gradients * deviations[:, None]
    # The largest is 1, so that squares neither overflow nor vanish.
    gradient /= np.abs(gradient).max() or 1.0
    moved = gradient.copy()
    for own, correlation in correlations:
        moved[:, own] = np.einsum("jk,nkd->njd", correlation, gradient[:, own])
    shares: Array = (gradient * moved).sum(axis=(0, 2))
    shares /= shares.sum() or 1.0
    return shares


def averaged(network: Network) -> Network:
    """An ensemble's network with the same predictions and d columns in Φ instead of d per member.

    Each layer's step is multiplied by the head's W first, which averages over members. That is
    allowed because an ensemble's features read x and never Φ.
    """
    W = network.heads[-1].W
    first = cast(DenseFeatures, network.initial)
    unit = frozen(np.eye(W.shape[1]))
    layers = []
    for layer in network.layers:
        step = cast(LowRankStep, layer.step)
        inward = product(step.V.T, W)
        step = LowRankStep(frozen(product(step.C, inward)), frozen(step.c @ inward), unit)
        layers.append(replace(layer, step=step))
    initial = DenseFeatures(product(first.weights, W), "identity")
    head = Head(frozen(np.vstack([unit, np.zeros(len(unit))])))
    return Network(network.mean, initial, tuple(layers), (head,) * len(network.heads))
