"""Small bags, and features on them."""

import numpy as np
from numpy.random import default_rng

from rfrboost._auto.bags import bag
from rfrboost._model.network import centered
from rfrboost._model.samplers import SWIM


def table(n=120, n_bags=3, weighted=False, outputs=1, seed=0):
    rng = default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.column_stack([np.sin(2 * X[:, 0] + k) + X[:, 1] for k in range(outputs)])
    w = rng.uniform(0.2, 3.0, n) if weighted else None
    return bag(centered(X, np.zeros(3)), y, w, n_bags, False, default_rng(1))


def features_for(bags, p=6):
    return SWIM(1.0, "tanh").sample(bags.x[:40, :-1], bags.y[:40], p, default_rng(3))


def feature_values(features, x):
    out = np.empty((len(x), features.width), features.dtype, order="F")
    features(x, out)
    return out.astype(float)
