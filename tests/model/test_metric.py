"""The learned metric: what it is made of, and what it is for."""

import numpy as np
import pytest
from model_zoo import SMALL, regression
from numpy.random import default_rng
from sklearn.preprocessing import SplineTransformer

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost._model.metric import FLOOR, learned_metric
from rfrboost._model.samplers import SWIM, InMetric


def test_features_in_a_metric_are_those_of_the_turned_rows():
    rng = default_rng(0)
    Z, Y = rng.standard_normal((400, 3)), rng.standard_normal((400, 1))
    L = rng.standard_normal((3, 3))
    sampler = SWIM(0.5, "tanh")
    turned = sampler.sample(Z @ L, Y, 20, default_rng(1))
    here = InMetric(sampler, L).sample(Z, Y, 20, default_rng(1))
    ones = np.ones((400, 1))
    expected, found = np.empty((400, 20), order="F"), np.empty((400, 20), order="F")
    turned(np.hstack([Z @ L, ones]), expected)
    here(np.hstack([Z, ones]), found)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_metric_is_the_root_of_the_shrunk_covariance_of_gradients():
    gradients = default_rng(0).standard_normal((50, 3, 2)) + 5.0
    L = learned_metric(gradients)
    steep = np.vstack([(g - g.mean(axis=0)) for g in gradients.transpose(2, 0, 1)])
    M = steep.T @ steep
    M *= 3 / np.trace(M)
    np.testing.assert_allclose(L @ L, (M + np.diag(np.diag(M))) / 2 + FLOOR * np.eye(3), atol=1e-12)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_a_metric_does_not_depend_on_the_size_of_the_gradients(size):
    gradients = default_rng(0).standard_normal((50, 3, 1))
    np.testing.assert_allclose(learned_metric(size * gradients), learned_metric(gradients))


def test_a_linear_model_teaches_no_metric():
    gradients = np.tile(default_rng(0).standard_normal((1, 3, 1)), (50, 1, 1))
    np.testing.assert_array_equal(learned_metric(gradients), np.eye(3))


def test_inputs_that_say_nothing_fade():
    """A product of two of twenty inputs: in the plain metric all rows are equally far apart."""
    X = default_rng(0).standard_normal((1500, 20))
    y = X[:, 0] * X[:, 1]
    shared = {"n_layers": 10, "n_features": (0, 256), "l2_step": 1e-2, "random_state": 0}
    plain = RFRBoostRegressor(**shared).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])
    model = RFRBoostRegressor(**shared, metric="agop").fit(X[:1000], y[:1000])
    assert plain < 0.5
    assert model.score(X[1000:], y[1000:]) > 0.9


def test_the_first_layer_is_the_papers():
    X, y = regression()
    settings = SMALL | {"n_layers": 1}
    plain = RFRBoostRegressor(**settings).fit(X, y).predict(X)
    np.testing.assert_array_equal(
        RFRBoostRegressor(**settings, metric="agop").fit(X, y).predict(X), plain
    )


def test_layers_added_later_learn_the_same_metric():
    X, y = regression()
    whole = RFRBoostRegressor(**SMALL, metric="agop").fit(X, y)
    grown = RFRBoostRegressor(**SMALL | {"n_layers": 1}, metric="agop", warm_start=True).fit(X, y)
    grown.set_params(n_layers=3).fit(X, y)
    np.testing.assert_allclose(grown.predict(X), whole.predict(X), rtol=1e-6)


def test_features_without_weights_are_refused():
    X = default_rng(0).standard_normal((60, 2))
    y = X[:, 0] > 0
    model = RFRBoostClassifier(n_layers=2, features=SplineTransformer(), metric="agop")
    with pytest.raises(TypeError, match="no known derivative"):
        model.fit(X, y)
