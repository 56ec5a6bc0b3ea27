"""Compression's mathematics: made-up rows, candidates, and what leaving out a feature costs."""

import numpy as np
import pytest
from numpy.random import default_rng

from rfrboost import RFRBoostRegressor
from rfrboost._compress import imitation
from rfrboost._compress.candidates import candidates_of, strongest
from rfrboost._compress.imitation import (
    PENALTY,
    drawn,
    in_between,
    network_of,
    normal_equations,
    pool_of,
    rungs,
)
from rfrboost._model.network import centered


@pytest.fixture(scope="module")
def fitted():
    rng = default_rng(0)
    X = rng.standard_normal((200, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 1] * X[:, 2]])
    model = RFRBoostRegressor(random_state=0, preprocess=None).fit(X, Y)
    return model.network_, X


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(imitation, "MOST_CANDIDATES", 60)


def test_candidates_add_up_to_the_predictions(fitted):
    network, X = fitted
    # Of trees with several outputs only the first principal component is kept.
    layers = [layer for layer in network.layers if hasattr(layer.features.from_x, "width")]
    assert layers
    x = centered(X, network.mean)
    total = x @ network.prediction.linear
    found = candidates_of(network)
    for part, leads in found:
        total += part.values(x) @ leads
    spread = network.raw(X).std()
    assert np.sqrt(np.mean((total - network.raw(X)) ** 2)) < 0.3 * spread
    assert {type(part).__name__ for part, _ in found} >= {"Neurons", "SingleTrees"}


def test_made_up_rows_have_columns_of_a_row_and_its_nearest_neighbour():
    rng = default_rng(0)
    X = rng.standard_normal((50, 4))
    X[10] = X[11]
    sources = np.array([0, 1, 1, 2])
    parents = np.tile(np.arange(50), 4)
    made = in_between(X, parents, sources, 1, rng)
    Z = X / X.std(axis=0)
    distances = ((Z[:, None] - Z) ** 2).sum(axis=2) + np.diag(np.full(50, np.inf))
    nearest = distances.argmin(axis=1)
    own, other = X[parents], X[nearest[parents]]
    assert ((made == own) | (made == other)).all()
    both = (made[:, 1] == own[:, 1]) == (made[:, 2] == own[:, 2])
    assert both.all()
    assert 0.3 < np.mean(made[parents != 10] == own[parents != 10]) < 0.7
    np.testing.assert_array_equal(made[parents == 10], X[[10] * 4])


def test_rows_are_drawn_by_their_weights():
    rng = default_rng(0)
    assert sorted(drawn(5, 5, None, rng)) == list(range(5))
    assert np.bincount(drawn(5, 15, None, rng)).tolist() == [3] * 5
    assert set(drawn(3, 100, np.array([1.0, 0.0, 2.0]), rng)) == {0, 2}


def test_weights_are_those_of_ridge_regression(fitted, few):
    network, X = fitted
    pool = pool_of(network, X, True)
    x = centered(X, network.mean)
    raw = network.raw(X)
    w = default_rng(1).uniform(0.5, 2, len(X))
    normal = normal_equations(pool, x, raw, w)
    first = next(rungs(pool, normal, None))
    F = pool.values(x).astype(float)
    mean = np.average(F, axis=0, weights=w)
    scale = np.sqrt(np.average((F - mean) ** 2, axis=0, weights=w))
    Z = (F - mean) / scale
    share = (w / w.sum())[:, None]
    target = raw - np.average(raw, axis=0, weights=w)
    G = Z.T @ (share * Z) + PENALTY * np.eye(F.shape[1])
    expected = Z @ np.linalg.solve(G, Z.T @ (share * target)) + raw.T @ (w / w.sum())
    found = network_of(pool, first, network.mean).raw(X)
    np.testing.assert_allclose(found, expected, atol=2e-3 * raw.std())


def test_the_features_that_go_first_add_least_to_the_objective(fitted, few):
    network, X = fitted
    pool = pool_of(network, X, True)
    normal = normal_equations(pool, centered(X, network.mean), network.raw(X), np.ones(len(X)))
    sizes = [int(rung.kept.sum()) for rung in rungs(pool, normal, None)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] <= 60
    assert sizes[-1] == 0
    q = pool.basis.shape[1]
    full = np.tril(normal.G) + np.tril(normal.G, -1).T

    def objective(active):
        A = full[np.ix_(active, active)] + PENALTY * np.eye(len(active))
        B = normal.B[active]
        return -np.sum(B * np.linalg.solve(A, B))

    everything = np.arange(q + pool.size)
    added = np.array(
        [objective(np.delete(everything, q + j)) - objective(everything) for j in range(pool.size)]
    )
    steps = rungs(pool, normal, pool.size - 1)
    left_out = np.flatnonzero(~next(steps).kept)
    assert list(left_out) == [int(np.argmin(added / pool.costs))]


def test_all_kinds_are_among_few_candidates(fitted):
    network, X = fitted
    parts = strongest(candidates_of(network), centered(X, network.mean), 30)
    assert sum(part.size for part in parts) <= 30
    assert len({type(part) for part in parts}) == len({type(p) for p, _ in candidates_of(network)})


def test_without_training_rows_there_are_no_bumps(fitted):
    network, X = fitted
    pool = pool_of(network, X, False)
    assert pool.parts
    assert not any(part.is_row for part in pool.parts)
