"""The linear head W_t, refitted on the whole representation after every layer."""

import numpy as np

from rfrboost._chunks import CHUNK_ROWS, Chunks, Sums, thinned_targets, weighted_sums
from rfrboost._convex import convex_head
from rfrboost._losses import Loss
from rfrboost._moments import Moments
from rfrboost._network import Head
from rfrboost._rows import Rows
from rfrboost._solve import solve
from rfrboost._typing import Array, frozen


def constant_head(chunks: Chunks, width: int, loss: Loss) -> Head:
    """W = 0 and the best constant: where the first fit starts."""
    if loss.starts_at_mean and chunks.facts.n_rows > CHUNK_ROWS:
        total, weight = chunks.total(target_sums).values
        b = loss.start((total / weight)[None], np.ones(1))
    else:
        b = loss.start(*thinned_targets(chunks))
    return Head(np.vstack([np.zeros((width, len(b))), b]))


def target_sums(rows: Rows) -> Sums:
    """Σw·y and Σw."""
    return weighted_sums(rows.y, rows.w)


def fit_head(chunks: Chunks, loss: Loss, l2: float, start: Head) -> Head:
    """W_t = argmin (1/n) Σ w·l(Wᵀφ + b, y) + λ‖W‖²_F, b unpenalised.

    For squared error the paper's objective has no ½: ridge regression with penalty nλ.
    """
    moments = chunks.total(representation_moments)
    moments.center()
    if loss.quadratic:
        return Head(frozen(ridge_head(moments, l2)))
    return Head(frozen(convex_head(chunks, moments, loss, l2, start)))


def representation_moments(rows: Rows) -> Moments:
    """Moments of (φ, y) over the rows that fit this layer."""
    total = Moments(rows.phi.shape[1] - 1, rows.y.shape[1])
    for block in rows.fitting_blocks():
        total.add(np.asfortranarray(block.phi[:, :-1]), block.y, block.w)
    return total


def ridge_head(moments: Moments, l2: float) -> Array:
    """The closed form, on moments about the mean."""
    W = solve(moments.ff, moments.weight * l2, moments.fr)
    return np.vstack([W, (moments.r - moments.f @ W) / moments.weight])
