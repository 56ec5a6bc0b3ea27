"""What automatic fits find out: which columns matter, whom to believe, any loss's own answer."""

import numpy as np
import pytest
from model_zoo import regression
from numpy.random import default_rng
from sklearn.metrics import mean_pinball_loss
from sklearn.preprocessing import SplineTransformer

from rfrboost import RFRBoostRegressor
from rfrboost._numerics.sizes import SIZES


def test_importances_find_the_two_columns_that_matter():
    rng = default_rng(0)
    X = rng.standard_normal((300, 10)) * rng.uniform(0.7, 1.4, 10)
    relevant = X[:, [3, 7]] / X[:, [3, 7]].std(axis=0)
    model = RFRBoostRegressor(random_state=0).fit(X, relevant[:, 0] * relevant[:, 1])
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert set(np.argsort(model.feature_importances_)[-2:]) == {3, 7}


def test_a_learned_metric_is_what_irrelevant_columns_need():
    X, y = regression(400, columns=20)
    learned = RFRBoostRegressor(n_bags=3, random_state=0).fit(X, y)
    identity = RFRBoostRegressor(metric="identity", n_bags=3, random_state=0).fit(X, y)
    assert 1 - learned.oof_score_ < 0.7 * (1 - identity.oof_score_)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantiles_are_learned(level):
    rng = default_rng(0)
    X = rng.uniform(-2, 2, (600, 2))
    y = np.sin(2 * X[:, 0]) + 0.5 * rng.standard_normal(600)
    model = RFRBoostRegressor(loss="quantile", quantile=level, n_bags=3, random_state=0).fit(
        X[:400], y[:400]
    )
    assert np.mean(y[400:] < model.predict(X[400:])) == pytest.approx(level, abs=0.1)
    constant = np.full(200, np.quantile(y[:400], level))
    assert mean_pinball_loss(y[400:], model.predict(X[400:]), alpha=level) < (
        0.8 * mean_pinball_loss(y[400:], constant, alpha=level)
    )


@pytest.mark.parametrize("size", [1.0, 1000.0])
def test_counts_are_learned_whatever_their_size(size):
    X, y = regression(600)
    mean = size * np.exp(y)
    counts = default_rng(0).poisson(mean).astype(float)
    model = RFRBoostRegressor(loss="poisson", n_bags=3, random_state=0).fit(X[:400], counts[:400])
    wrong = np.log(model.predict(X[400:])) - np.log(mean[400:])
    assert np.sqrt(np.mean(wrong**2)) < 0.65 * np.log(mean).std()


def test_features_without_a_derivative_have_no_metric_but_importances():
    X, y = regression(150)
    model = RFRBoostRegressor(features=SplineTransformer(), n_bags=2, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.4
    assert model.feature_importances_.sum() == pytest.approx(1.0)


def test_many_rows_are_fitted_leaf_by_leaf():
    """Every row is a centre, and no matrix is larger than that of the rows of a leaf."""
    X, y = regression(SIZES.most_centres + 200, columns=3)
    model = RFRBoostRegressor(features=("bumps",), random_state=0).fit(X, y)
    (layer,) = (m for m in model.network_.layers if not hasattr(m.features.from_x, "weights"))
    sizes = [leaf.bumps.width for leaf in layer.features.from_x.leaves]
    assert sizes == [2600, 2600]
    assert model.oof_score_ > 0.95


@pytest.mark.parametrize("loss", ["squared_error", "huber"])
def test_where_rows_disagree_the_heavy_ones_are_believed(loss):
    X, y = regression(100)
    w = np.repeat([99.0, 1.0], 100)
    model = RFRBoostRegressor(loss=loss, random_state=0)
    model.fit(np.vstack([X, X]), np.r_[y, y + 10.0], sample_weight=w)
    assert np.abs(np.median(model.predict(X) - y)) < 0.5
