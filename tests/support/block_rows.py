"""Rows for tests of row blocks and Dask: small chunks, blocks of all sizes, both tasks."""

from itertools import pairwise

import numpy as np
from numpy.random import default_rng

from rfrboost._numerics.sizes import Sizes

#: chunks of 64 rows, so that few rows are many chunks
SMALL_CHUNKS = Sizes(chunk_rows=64)
#: with small chunks, heads that are not searched for their last digits, which takes many passes
SHORT_FITS = Sizes(chunk_rows=64, exact_head_entries=0, head_iterations=2)


def regression_rows(n: int = 300, columns: int = 4, seed: int = 0):
    """X, y and weights, a fifth of which are zero."""
    rng = default_rng(seed)
    X = rng.standard_normal((n, columns))
    X[:, 1] = np.round(X[:, 1])
    y = 5 + np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
    return X, y, np.where(rng.random(n) < 0.2, 0.0, rng.uniform(0.1, 2.0, n))


def labelled_rows(classes: int, n: int = 300, seed: int = 0):
    """X, names of trees as labels, and weights."""
    X, y, w = regression_rows(n, seed=seed)
    codes = np.argsort(np.argsort(y)) * classes // n
    return X, np.array(["ash", "beech", "cedar", "dogwood"])[codes], w


def cut(X, y, w, sizes):
    """Blocks of these sizes, which may be zero, and a last block of the remaining rows."""
    edges = np.cumsum([0, *sizes, len(y)]).clip(max=len(y))
    parts = [slice(a, b) for a, b in pairwise(edges)]
    return [(X[s], y[s]) if w is None else (X[s], y[s], w[s]) for s in parts]


def output(model, X):
    """Probabilities or predictions."""
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
