"""Bags of a small table, random features of its rows, and ridge regression by brute force."""

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.random import default_rng

from rfrboost._auto.bags import bag
from rfrboost._auto.members import Run, threads_as_workers
from rfrboost._model.network import centered
from rfrboost._model.samplers import SWIM
from rfrboost._numerics.sizes import SIZES, Sizes

#: sizes with which the members of any table share their draws, or none do
SHARED = Sizes(shared_draw_rows=0)
ALONE = Sizes(shared_draw_rows=10**9)

#: a fit on one thread, without a time limit, that nobody watches
RUN = Run(map, map, map, partial(threads_as_workers, map), np.inf, None)


class Seen:
    """Watches a fit: remembers all records, and never ends it."""

    ended = False

    def __init__(self):
        self.records = []

    def begin(self, phase):
        pass

    def layer(self, record):
        self.records.append(record)
        return True


def table(n=120, n_bags=3, weighted=False, outputs=1, seed=0, sizes=SIZES):
    rng = default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.column_stack([np.sin(2 * X[:, 0] + k) + X[:, 1] for k in range(outputs)])
    w = rng.uniform(0.2, 3.0, n) if weighted else None
    return bag(centered(X, np.zeros(3)), y, w, n_bags, False, default_rng(1), sizes)


def with_own_fits(bags):
    """Bags as under splits by time, where kernel members are not moved to a fit to all rows."""
    return replace(bags, kept=bags.members[1:])


def features_for(bags, p=6):
    return SWIM(1.0, "tanh").sample(bags.x[:40, :-1], bags.y[:40], p, default_rng(3))


def feature_values(features, x):
    out = np.empty((len(x), features.width), features.dtype, order="F")
    features(x, out)
    return out.astype(float)


def ridge_by_hand(F, R, w, penalty):
    """C and c of Σ w‖R − FC − c‖² + Σw·penalty‖C‖², as least squares of stacked rows."""
    p, root = F.shape[1], np.sqrt(w)[:, None]
    rows = np.vstack(
        [
            np.hstack([root * F, root]),
            np.hstack([np.sqrt(w.sum() * penalty) * np.eye(p), np.zeros((p, 1))]),
        ]
    )
    right = np.vstack([root * R, np.zeros((p, R.shape[1]))])
    solution = np.linalg.lstsq(rows, right, rcond=None)[0]
    return solution[:-1], solution[-1]
