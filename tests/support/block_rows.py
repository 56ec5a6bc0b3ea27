"""What tests of row blocks share: small chunks, blocks of all sizes, data for both tasks."""

from itertools import pairwise

import numpy as np
from numpy.random import default_rng

#: the modules that know how long a chunk is
CHUNKED = ("_chunks", "_order", "_streamed", "_heads")


def small_chunks(monkeypatch, rows: int = 64) -> None:
    """Chunks of so many rows, so that few rows are many chunks."""
    for module in CHUNKED:
        monkeypatch.setattr(f"rfrboost.{module}.CHUNK_ROWS", rows)


def regression_rows(n: int = 300, columns: int = 4, seed: int = 0):
    rng = default_rng(seed)
    X = rng.standard_normal((n, columns))
    X[:, 1] = np.round(X[:, 1])
    y = 5 + np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
    return X, y, np.where(rng.random(n) < 0.2, 0.0, rng.uniform(0.1, 2.0, n))


def labelled_rows(classes: int, n: int = 300, seed: int = 0):
    X, y, w = regression_rows(n, seed=seed)
    codes = np.argsort(np.argsort(y)) * classes // n
    return X, np.array(["ash", "beech", "cedar", "dogwood"])[codes], w


def cut(X, y, w, sizes):
    """Blocks of these sizes, zeros among them, and the rest."""
    edges = np.cumsum([0, *sizes, len(y)]).clip(max=len(y))
    parts = [slice(a, b) for a, b in pairwise(edges)]
    return [(X[s], y[s]) if w is None else (X[s], y[s], w[s]) for s in parts]


def output(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
