"""Attributions: they add up, are those of the known game, and take any table."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost.inspection import attribute
from rfrboost.inspection._attribution import credited, walks


def flats(n=160):
    """A frame with a number, missing values, a category and a date, and a sum of their effects."""
    rng = np.random.default_rng(0)
    days = rng.integers(0, 900, n)
    frame = pd.DataFrame(
        {
            "area": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "town": pd.Categorical(rng.choice(list("abc"), n)),
            "built": pd.Timestamp("2000-01-01") + pd.to_timedelta(days, unit="D"),
        }
    )
    return frame, frame["area"].fillna(2) + (frame["town"] == "b") + days / 300


@pytest.fixture(scope="module")
def regressor():
    X, y = flats()
    return RFRBoostRegressor(n_bags=2, features=("swim",), random_state=0).fit(X, y), X, y


def test_they_add_up_on_frames_of_any_kind(regressor):
    model, X, _ = regressor
    rows = X[X["area"].isna()][:2]
    found = attribute(model, rows, X[:6])
    assert found.values.shape == (2, 3)
    assert found.names == ["area", "town", "built"]
    assert found.base == pytest.approx(model.predict(X[:6]).mean())
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), model.predict(rows))


def test_of_a_sum_they_are_its_parts(regressor):
    model, X, _ = regressor
    found = attribute(model, X[:4], X)
    parts = X["area"].fillna(2)
    np.testing.assert_allclose(found.values[:, 0], parts[:4] - parts.mean(), atol=0.2)


def test_probabilities_have_a_value_for_every_class():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = RFRBoostClassifier(n_layers=1, random_state=0).fit(X, y)
    found = attribute(model, X[:3])
    assert found.values.shape == (3, 3, 3)
    total = found.base + found.values.sum(axis=1)
    np.testing.assert_allclose(total, model.predict_proba(X[:3]), atol=1e-12)
    np.testing.assert_allclose(found.values.sum(axis=2), 0, atol=1e-12)
    assert found.names == ["x0", "x1", "x2"]


def test_walks_credit_the_shapley_values():
    """Averages over many walks are those over all orders, of a function with interactions."""

    def function(z):
        return z[..., 0] * z[..., 1] + np.maximum(z[..., 1], z[..., 2])

    table = np.array([[2.0, 3.0, 1.0], [0.5, -1.0, 2.0]])
    exact = np.zeros(3)
    for order in permutations(range(3)):
        z = table[1].copy()
        for j in order:
            before = function(z)
            z[j] = table[0, j]
            exact[j] += (function(z) - before) / 6
    indices = walks(0, np.full(4000, 1), 3, np.random.default_rng(0))
    steps = function(np.take_along_axis(table[None], indices, axis=1))[..., None]
    np.testing.assert_allclose(credited(indices, steps, 0)[:, 0], exact, atol=0.03)


def test_a_column_that_is_not_used_adds_nothing():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = RFRBoostRegressor(n_layers=0, l2_head=0.0, random_state=0).fit(X, 2 * X[:, 0])
    found = attribute(model, X[:5], X)
    np.testing.assert_allclose(found.values[:, 1:], 0, atol=1e-9)
    np.testing.assert_allclose(found.values[:, 0], 2 * (X[:5, 0] - X[:, 0].mean()), atol=1e-6)


def test_the_same_seed_gives_the_same_values_and_wrong_calls_are_refused(regressor):
    model, X, _ = regressor
    first, second = (attribute(model, X[:2], X[:3], random_state=1) for _ in range(2))
    np.testing.assert_array_equal(first.values, second.values)
    with pytest.raises(ValueError, match="columns of X"):
        attribute(model, X[:2], X.drop(columns="town"))
    with pytest.raises(NotFittedError):
        attribute(RFRBoostRegressor(), X)
