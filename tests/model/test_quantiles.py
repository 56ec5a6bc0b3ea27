"""Several quantile levels in one fit: in order, each where it should be, and saved."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from model_zoo import regression
from numpy.random import default_rng
from sklearn.base import clone
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import d2_pinball_score, mean_pinball_loss

import rfrboost
from rfrboost import Quantile, RFNNRegressor, RFRBoostRegressor
from rfrboost._model.losses import Quantiles, pinball

LEVELS = (0.1, 0.5, 0.9)
SINGLE = {"n_layers": 2, "n_features": (8, 8), "l2_head": 1e-3, "random_state": 0}
MODELS = {
    "automatic": RFRBoostRegressor(loss="quantile", quantile=LEVELS, n_bags=2, random_state=0),
    "network": RFRBoostRegressor(**SINGLE, loss="quantile", quantile=LEVELS),
    "rfnn": RFNNRegressor(20, loss="quantile", quantile=LEVELS, random_state=0),
}


@pytest.fixture(scope="module")
def fitted():
    X, y = skewed(200)
    return {name: clone(model).fit(X, y) for name, model in MODELS.items()}


def skewed(n, seed=0):
    """Noise that is skewed and grows with a column."""
    rng = default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, X[:, 0] + (0.2 + (X[:, 1] > 0)) * rng.standard_exponential(n)


finite = st.floats(-1e6, 1e6, allow_subnormal=False)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(arrays(float, (6, 3), elements=finite), arrays(float, (6, 1), elements=finite))
def test_predictions_never_cross_and_sorting_costs_nothing(raw, y):
    loss = Quantiles(np.array(LEVELS))
    ordered = loss.predict(raw)
    assert (np.diff(ordered, axis=1) >= 0).all()
    before, after = (pinball(p, y, loss.level) for p in (raw, ordered))
    assert (after <= before + 1e-9 * (1 + np.abs(before))).all()


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(5, 40),
    levels=st.lists(st.integers(1, 99), min_size=2, max_size=6, unique=True),
)
def test_fitted_levels_never_cross_on_any_data(seed, n, levels):
    rng = default_rng(seed)
    X, y = rng.standard_normal((n, 2)), rng.standard_cauchy(n)
    levels = sorted(level / 100 for level in levels)
    model = RFRBoostRegressor(**SINGLE, loss="quantile", quantile=levels).fit(X, y)
    far = 100 * rng.standard_normal((200, 2))
    found = model.predict(far)
    assert found.shape == (200, len(levels))
    assert (np.diff(found, axis=1) >= 0).all()
    assert all((np.diff(stage, axis=1) >= 0).all() for stage in model.staged_predict(far))


def test_the_loss_is_the_sum_over_levels():
    rng = default_rng(0)
    raw, y, move = rng.standard_normal((20, 3)), rng.standard_normal((20, 1)), np.ones((20, 3))
    loss = Quantiles(np.array(LEVELS), 0.3)
    singles = [Quantile(level, 0.3) for level in LEVELS]
    columns = [raw[:, [k]] for k in range(3)]
    pairs = list(zip(singles, columns, strict=True))
    np.testing.assert_allclose(loss.value(raw, y), sum(s.value(c, y) for s, c in pairs))
    np.testing.assert_allclose(
        loss.gradient(raw, y), np.hstack([s.gradient(c, y) for s, c in pairs])
    )
    slopes = loss.slope_and_curvature(raw, y, move)
    parts = [s.slope_and_curvature(c, y, move[:, :1]) for s, c in pairs]
    for found, expected in zip(slopes, np.sum(parts, axis=0), strict=True):
        np.testing.assert_allclose(found, expected)
    w = rng.uniform(0.1, 2.0, 20)
    np.testing.assert_array_equal(loss.start(y, w), [s.start(y, w)[0] for s in singles])


def test_no_layers_is_linear_quantile_regression_at_every_level():
    X, y = skewed(150)
    model = RFRBoostRegressor(0, loss="quantile", quantile=LEVELS, l2_head=0).fit(X, y)
    lines = [QuantileRegressor(quantile=level, alpha=0).fit(X, y).predict(X) for level in LEVELS]
    least = pinball(np.column_stack(lines), y[:, None], np.array(LEVELS)).sum()
    # Where the lines cross, sorting may make up for what the rounding of the kink costs.
    assert pinball(model.predict(X), y[:, None], np.array(LEVELS)).sum() < 1.005 * least


@pytest.mark.parametrize("name", MODELS)
def test_shapes_and_scores(name, fitted):
    model = fitted[name]
    X, y = skewed(400, seed=1)
    found = model.predict(X)
    assert found.shape == (400, 3)
    assert (np.diff(found, axis=1) >= 0).all()
    last = list(model.staged_predict(X))[-1]
    np.testing.assert_allclose(last, found, rtol=0, atol=1e-6 * np.abs(found).max())
    lost = sum(mean_pinball_loss(y, found[:, k], alpha=LEVELS[k]) for k in range(3))
    at_stake = sum(
        mean_pinball_loss(
            y, np.full(400, np.quantile(y, level, method="inverted_cdf")), alpha=level
        )
        for level in LEVELS
    )
    assert model.score(X, y) == pytest.approx(1 - lost / at_stake, rel=1e-9)
    assert model.score(X, y) > 0.3


def test_one_level_in_a_sequence_scores_as_scikit_learn_does():
    X, y = skewed(100)
    model = RFRBoostRegressor(**SINGLE, loss="quantile", quantile=[0.7]).fit(X, y)
    assert model.predict(X).shape == (100, 1)
    theirs = d2_pinball_score(y, model.predict(X)[:, 0], alpha=0.7)
    assert model.score(X, y) == pytest.approx(theirs, abs=1e-3)
    constant = Quantiles(np.array(LEVELS))
    ones = np.ones((5, 1))
    assert constant.score(np.ones((5, 3)), ones, None) == 1.0
    assert constant.score(np.zeros((5, 3)), ones, None) == 0.0


def test_an_automatic_fit_knows_its_levels_out_of_fold(fitted):
    _, y = skewed(200)
    model = fitted["automatic"]
    assert model.oof_prediction_.shape == (200, 3)
    assert (np.diff(model.oof_prediction_, axis=1) >= 0).all()
    scaled = model._fitted.loss.score(model.oof_prediction_, y[:, None], None)
    assert model.oof_score_ == pytest.approx(scaled, abs=1e-9)
    below = (y[:, None] <= model.oof_prediction_).mean(axis=0)
    np.testing.assert_allclose(below, LEVELS, atol=0.08)


@pytest.mark.parametrize("name", MODELS)
def test_levels_are_saved_and_loaded(name, fitted, tmp_path):
    model = fitted[name]
    X, _ = skewed(50, seed=2)
    model.save(tmp_path / "model")
    loaded = rfrboost.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.quantile == LEVELS


def test_levels_may_be_a_tuple_a_list_or_an_array(tmp_path):
    X, y = skewed(60)
    answers = []
    for levels in (LEVELS, list(LEVELS), np.array(LEVELS)):
        model = RFRBoostRegressor(**SINGLE, loss="quantile", quantile=levels).fit(X, y)
        model.save(tmp_path / "model")
        answers += [model.predict(X), rfrboost.load(tmp_path / "model").predict(X)]
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])


BAD = [(), (0.5, 0.5), (0.9, 0.1), (0.0, 0.5), (0.5, 1.0), ((0.1, 0.2),), ("a", "b")]


@pytest.mark.parametrize("levels", [*BAD, (0.1, np.nan)])
def test_levels_that_do_not_rise_within_0_and_1_are_refused(levels):
    X, y = skewed(60)
    with pytest.raises(ValueError, match="each larger than the one before"):
        RFRBoostRegressor(**SINGLE, loss="quantile", quantile=levels).fit(X, y)


def test_several_levels_of_several_targets_are_refused():
    X, y = regression(60, outputs=2)
    with pytest.raises(ValueError, match="y has 2 columns"):
        RFRBoostRegressor(**SINGLE, loss="quantile", quantile=LEVELS).fit(X, y)


def test_a_table_of_one_target_is_one_target():
    X, y = skewed(60)
    model = RFRBoostRegressor(**SINGLE, loss="quantile", quantile=LEVELS)
    flat = clone(model).fit(X, y).predict(X)
    np.testing.assert_array_equal(clone(model).fit(X, y[:, None]).predict(X), flat)
    assert model.fit(X, y[:, None]).score(X, y[:, None]) == model.fit(X, y).score(X, y)


def test_gradients_have_a_column_for_each_level(fitted):
    X, _ = skewed(5)
    assert fitted["network"].input_gradient(X).shape == (5, 3, 3)
