"""Rows far from those of training: predictions stay near the targets that were seen."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfrboost import RFRBoostRegressor, load
from rfrboost._estimators.fitted import BEYOND

FAST = {"n_bags": 2, "features": ("swim",), "n_features": 16, "random_state": 0}


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.uniform(0, 1, n), "b": rng.uniform(-5, 5, n)})
    return X, 100 + 50 * X["a"].to_numpy() + 3 * X["b"].to_numpy() + rng.normal(0, 1, n)


def within(prediction, y):
    margin = BEYOND * (y.max() - y.min()) * (1 + 1e-9)
    return (prediction >= y.min() - margin).all() and (prediction <= y.max() + margin).all()


FAR = pd.DataFrame({"a": [1e30, -1e30, 2.0, -1.0, 0.5], "b": [1e30, 0.0, -50.0, 1e6, 7.0]})

LOSSES = {
    "squared": {},
    "huber": {"loss": "huber"},
    "poisson": {"loss": "poisson"},
    "quantiles": {"loss": "quantile", "quantile": (0.05, 0.5, 0.95)},
}


@pytest.mark.parametrize("settings_of", LOSSES.values(), ids=LOSSES)
def test_predictions_stay_near_the_training_targets(settings_of, tmp_path):
    X, y = table()
    model = RFRBoostRegressor(**FAST, **settings_of).fit(X, y)
    predicted = model.predict(FAR)
    assert within(predicted, y)
    model.save(tmp_path / "m.rfrboost")
    assert np.array_equal(load(tmp_path / "m.rfrboost").predict(FAR), predicted)


def test_a_number_far_beyond_the_training_range_counts_as_one_just_beyond_it():
    X, y = table()
    model = RFRBoostRegressor(**FAST).fit(X, y)
    margin = 0.01 * (X.max() - X.min())
    seen = FAR.clip(X.min() - margin, X.max() + margin, axis=1)
    np.testing.assert_allclose(model.predict(FAR), model.predict(seen), rtol=1e-6)
    gradient = model.input_gradient(FAR)
    assert (gradient[FAR.to_numpy() != seen.to_numpy()] == 0).all()
    assert gradient[4, 0] != 0


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(*[st.floats(-1e40, 1e40)] * 2), min_size=1, max_size=5))
def test_whatever_the_row(rows):
    model, y = fitted_once()
    assert within(model.predict(pd.DataFrame(rows, columns=["a", "b"])), y)
    ends = model.predict_interval(pd.DataFrame(rows, columns=["a", "b"]))
    assert within(ends, y)
    assert (ends[:, 0] <= ends[:, 1]).all()


_MODELS = []


def fitted_once():
    if not _MODELS:
        X, y = table()
        _MODELS.append((RFRBoostRegressor(**FAST).fit(X, y), y))
    return _MODELS[0]


def test_intervals_that_are_infinite_stay_so():
    model, _ = fitted_once()
    assert np.isinf(model.predict_interval(FAR, coverage=0.9999)).all()


def test_several_outputs_have_bounds_of_their_own():
    X, y = table()
    Y = np.column_stack([y, -1000 * y, 1e-3 * y])
    predicted = RFRBoostRegressor(**FAST).fit(X, Y).predict(FAR)
    assert all(within(predicted[:, k], Y[:, k]) for k in range(3))


def test_bounds_bind_where_targets_would_be_left():
    # A trend in time goes on for a while, and no further than the bounds.
    days = pd.date_range("2024-01-01", periods=200)
    y = np.arange(200.0)
    model = RFRBoostRegressor(**FAST).fit(pd.DataFrame({"day": days}), y)
    later = pd.DataFrame({"day": pd.date_range("2024-08-01", periods=400)})
    predicted = model.predict(later)
    assert within(predicted, y)
    assert predicted[0] > 190
    # Only the weekday still makes a difference.
    assert np.ptp(predicted[-100:]) < 1


def test_a_single_network_is_the_papers_and_has_no_bounds():
    X = np.linspace(-1, 1, 60)[:, None]
    model = RFRBoostRegressor(0, l2_head=0).fit(X, 3 * X[:, 0])
    assert model.predict([[100.0]]) == pytest.approx(300.0)


def test_oof_score_is_that_of_oof_predictions():
    from sklearn.metrics import r2_score

    X, y = table()
    model = RFRBoostRegressor(**FAST).fit(X, y)
    assert model.oof_score_ == pytest.approx(r2_score(y, model.oof_prediction_))
