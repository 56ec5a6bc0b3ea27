"""The order of rows does not matter in automatic fits: it changes no bit of a prediction."""

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost._numerics.arrays import coarse

N = 120


def smooth(seed=0):
    rng = default_rng(seed)
    X = rng.standard_normal((N, 4))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 3] + 0.1 * rng.standard_normal(N)


def wild():
    """Columns of very different scales and offsets."""
    X, y = smooth()
    return X * [1e-8, 1.0, 1e3, 1e8] + [1e-3, 1e3, 0.0, 10.0], y


def frame():
    """Numbers with missing values, and categories with few and with many levels."""
    X, y = smooth()
    rng = default_rng(1)
    table = pd.DataFrame(X, columns=list("abcd"))
    table["few"] = rng.choice(["u", "v", "w"], N)
    table["many"] = rng.choice([f"level {i}" for i in range(15)], N)
    table.loc[::7, "a"] = np.nan
    return table, y


def weighted(X, y):
    return X, y, default_rng(2).gamma(1.0, 1.0, N)


SETTINGS = {"n_bags": 2, "n_features": 20, "random_state": 0}
LEVELS = {"loss": "quantile", "quantile": (0.1, 0.5, 0.9)}

CASES = {
    "smooth": (RFRBoostRegressor(**SETTINGS), smooth()),
    "wild": (RFRBoostRegressor(**SETTINGS), wild()),
    "wild, unprepared": (RFRBoostRegressor(**SETTINGS, preprocess=None), wild()),
    "far from zero": (RFRBoostRegressor(**SETTINGS), (smooth()[0], 1e7 + 1e3 * smooth()[1])),
    "levels": (RFRBoostRegressor(**SETTINGS, **LEVELS), wild()),
    "huber": (RFRBoostRegressor(**SETTINGS, loss="huber"), smooth()),
    "poisson": (
        RFRBoostRegressor(**SETTINGS, loss="poisson"),
        (smooth()[0], np.exp(smooth()[1])),
    ),
    "two outputs": (
        RFRBoostRegressor(**SETTINGS),
        (smooth()[0], np.column_stack([smooth()[1], 100 * smooth()[0][:, 2] ** 2])),
    ),
    "frame": (RFRBoostRegressor(**SETTINGS), frame()),
    "weights": (RFRBoostRegressor(**SETTINGS), weighted(*frame())),
    "classes": (RFRBoostClassifier(**SETTINGS), (frame()[0], np.digitize(frame()[1], [-0.5, 0.5]))),
    "few rows": (RFRBoostRegressor(random_state=0), (smooth()[0][:45], smooth()[1][:45])),
}


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_rows_changes_no_bit(name):
    model, data = CASES[name]
    order = default_rng(3).permutation(len(data[1]))
    shuffled = [a.iloc[order] if isinstance(a, pd.DataFrame) else a[order] for a in data]
    answer = "predict_proba" if name == "classes" else "predict"
    expected = getattr(model.fit(*data), answer)(data[0])
    actual = getattr(model.fit(*shuffled), answer)(data[0])
    if name == "few rows":
        # A single network sums over rows as they come.
        np.testing.assert_allclose(actual, expected, atol=1e-9 * np.std(expected))
    else:
        np.testing.assert_array_equal(actual, expected)


def test_coarse_means_are_near_and_the_same_in_every_order():
    rng = default_rng(0)
    X = rng.standard_normal((1000, 3)) * [1e-200, 1.0, 1e200] + [0.0, 1e5, 0.0]
    means = [
        coarse(rows.mean(axis=0), np.ptp(rows, axis=0))
        for rows in (X, X[::-1], *(rng.permutation(X) for _ in range(20)))
    ]
    assert len({tuple(mean) for mean in means}) == 1
    assert (np.abs(means[0] - X.mean(axis=0)) <= 1e-6 * np.ptp(X, axis=0)).all()


def test_coarse_leaves_what_does_not_vary_and_what_overflows():
    values = np.array([3.3, 1e308, -2.0])
    np.testing.assert_array_equal(coarse(values, np.array([0.0, np.inf, np.nan])), values)
