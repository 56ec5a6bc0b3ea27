"""The linear head W_t, refitted on the whole representation after every layer."""

import numpy as np

from rfrboost._convex import convex_head
from rfrboost._losses import Loss
from rfrboost._moments import Moments
from rfrboost._network import Head
from rfrboost._rows import Rows
from rfrboost._solve import solve
from rfrboost._typing import Array, frozen


def constant_head(rows: Rows, loss: Loss) -> Head:
    """W = 0 and the best constant: where the first fit starts."""
    w = np.ones(len(rows.y)) if rows.w is None else rows.w
    b = loss.start(rows.y, w)
    return Head(np.vstack([np.zeros((rows.phi.shape[1] - 1, len(b))), b]))


def fit_head(rows: Rows, loss: Loss, l2: float, start: Head) -> Head:
    """W_t = argmin (1/n) Σ w·l(Wᵀφ + b, y) + λ‖W‖²_F, b unpenalised.

    For squared error the paper's objective has no ½: ridge regression with penalty nλ.
    """
    moments = representation_moments(rows)
    moments.center()
    if loss.quadratic:
        return Head(frozen(ridge_head(moments, l2)))
    return Head(frozen(convex_head(rows, moments, loss, l2, start)))


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
