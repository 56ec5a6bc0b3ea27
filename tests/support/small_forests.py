"""Small forests of trees that scikit-learn has grown, rows for them, and a table they suit."""

import numpy as np
from numpy.random import default_rng
from sklearn.tree import ExtraTreeRegressor

from rfrboost._model.forest import Forest, as_one_member, rounded_down, side_by_side, whole


def grown_by(tree):
    """A tree of scikit-learn with its own values, as a forest of one member with one tree.

    Nodes are numbered one by one here, questions first.
    """
    nodes = tree.tree_
    asks = [i for i in range(nodes.node_count) if nodes.children_left[i] >= 0]
    ends = [i for i in range(nodes.node_count) if nodes.children_left[i] < 0]
    number = {node: k for k, node in enumerate(asks + ends)}
    pairs = [(nodes.children_left[i], nodes.children_right[i]) for i in asks]
    children = np.array([[number[a], number[b]] for a, b in pairs]).reshape(-1, 2)
    return Forest(
        whole(nodes.feature[asks]),
        rounded_down(nodes.threshold[asks]),
        whole(children),
        whole(np.array([[number[0]]])),
        nodes.value[ends, :, 0].astype(np.float32),
    )


def some_forest(members=2, count=3, outputs=2, rows=40, seed=0):
    """Trees of three columns, grown from a few rows."""
    rng = default_rng(seed)

    def tree():
        X, y = rng.standard_normal((rows, 3)).round(1), rng.standard_normal((rows, outputs))
        return grown_by(ExtraTreeRegressor(random_state=int(rng.integers(99))).fit(X, y))

    return side_by_side([as_one_member([tree() for _ in range(count)]) for _ in range(members)])


def some_rows(n, seed=1):
    X = default_rng(seed).standard_normal((n, 3)).round(1)
    return np.hstack([X, np.ones((n, 1))])


def features(forest, rows):
    out = np.empty((len(rows), forest.width), order="F")
    forest(rows, out)
    return out


def codes(n, seed):
    """A table that few rows know: the level of a code is that of no other."""
    level = default_rng(0).standard_normal(60)
    rng = default_rng(seed)
    code = rng.integers(0, 60, n)
    X = np.column_stack([code, rng.standard_normal((n, 2))])
    return X, level[code] + 0.05 * rng.standard_normal(n)
