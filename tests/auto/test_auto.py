"""Automatic fits: the network is its parts put together, and the estimators keep their word."""

from itertools import pairwise
from time import perf_counter

import numpy as np
import pytest
from model_zoo import classification, regression
from numpy.random import default_rng
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import rfrboost
import rfrboost._auto.bags as bags_module
import rfrboost._auto.fit as auto_module
from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost._auto.importances import averaged

MODELS = {
    "regressor": RFRBoostRegressor(random_state=0),
    "huber": RFRBoostRegressor(loss="huber", random_state=0),
    "quantile": RFRBoostRegressor(loss="quantile", quantile=0.8, random_state=0),
    "one bag": RFRBoostRegressor(n_bags=1, random_state=0),
    "classifier": RFRBoostClassifier(random_state=0),
}
KINDS = {
    **MODELS,
    "two outputs": RFRBoostRegressor(random_state=0),
    "nearly linear": RFRBoostRegressor(random_state=0),
    "poisson": RFRBoostRegressor(loss="poisson", random_state=0),
    "two classes": RFRBoostClassifier(random_state=0),
    "five classes": RFRBoostClassifier(n_bags=3, random_state=0),
}


def data_for(name, n=120, seed=0):
    if "class" in name:
        classes = {"two classes": 2, "five classes": 5}.get(name, 3)
        return classification(n, classes=classes, seed=seed)
    X, y = regression(n, outputs=2 if name == "two outputs" else 0, seed=seed)
    if name == "nearly linear":
        y = X.sum(axis=1) + 0.2 * y
    return X, np.round(np.exp(y)) if name == "poisson" else y


def output(model, X):
    """The raw prediction, or what is closest to it."""
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def layer_raw(piece, x):
    """What a piece adds to the predictions of its members, side by side."""
    F = np.empty((len(x), piece.features.width), piece.features.dtype, order="F")
    piece.features(x, F)
    return F.astype(float) @ piece.C + piece.c


def members_by_hand(bags, mean, loss, linear, boosted, kernel, v, b, X):
    """Every member's weighted prediction of new rows (n, members, d), family by family."""
    x, d = auto_module.centered(X, mean), len(b)
    start = np.stack([loss.start(bags.y[i], bags.w[i]) for i in map(bags.training, bags.members)])
    families = [np.tile(start, (len(x), 1, 1))]
    for layer in linear.layers:
        add(families[0], layer, x, d)
    for family in boosted:
        families.append(families[0].copy())
        for layer in family.layers:
            add(families[-1], layer, x, d)
    if kernel is not None:
        families.append(np.zeros_like(families[0]))
        add(families[-1], kernel.pieces, x, d)
    return sum(share * family for share, family in zip(v, families, strict=True)) + b


def add(raw, pieces, x, d):
    for piece in pieces:
        moves = layer_raw(piece, x)
        for i, k in enumerate(piece.group):
            raw[:, k] += moves[:, i * d : (i + 1) * d]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_the_network_is_the_mean_of_members_that_are_their_weighted_families(
    monkeypatch, name, shared
):
    monkeypatch.setattr(bags_module, "SHARED_ROWS", 0 if shared else 10**9)
    parts = []
    assemble = auto_module.assemble
    monkeypatch.setattr(auto_module, "assemble", lambda *p: parts.append(p) or assemble(*p))
    X, y = data_for(name, n=80)
    model = clone(KINDS[name]).fit(X, y)
    fresh, _ = data_for(name, n=30, seed=1)
    members = members_by_hand(*parts[0], fresh)
    np.testing.assert_allclose(
        model.transform(fresh), members.reshape(30, -1), rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(
        model.network_.raw(fresh), members.mean(axis=1), rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(
        averaged(model.network_).raw(fresh), model.network_.raw(fresh), atol=1e-3
    )
    bags = parts[0][0]
    members = members_by_hand(*parts[0], X)[np.argsort(bags.origin)]
    held = bags.held_out()
    expected = np.full((len(y), members.shape[2]), np.nan)
    expected[held] = bags.out_of_fold(members)
    predicted = model._fitted.loss.predict(expected[bags.origin])
    if name in ("classifier", "two classes", "five classes", "poisson"):
        actual = model.oof_prediction_.reshape(predicted.shape)
    else:
        actual = model._fitted.targets.scale.shrink(model.oof_prediction_.reshape(predicted.shape))
    np.testing.assert_allclose(actual, predicted, rtol=2e-3, atol=2e-3)


def slopes(model, X, step):
    """Central differences of the prediction (of its logarithm for counts), column by column."""
    log = getattr(model, "loss", "") == "poisson"
    found = []
    for shift in step * np.eye(X.shape[1]):
        ahead, behind = (output(model, X + s) for s in (shift, -shift))
        found.append((np.log(ahead / behind) if log else ahead - behind) / (2 * step))
    return np.stack(found, axis=1)


@pytest.mark.parametrize("name", KINDS)
def test_the_input_gradient_is_the_slope_of_the_prediction(name):
    X, y = data_for(name, n=80)
    fresh = data_for(name, n=25, seed=1)[0]
    model = clone(KINDS[name]).set_params(features="swim", l2_step=1e-9).fit(X, y)
    expected = slopes(model, fresh, 1e-5)
    atol = 1e-4 * np.abs(expected).max()
    np.testing.assert_allclose(model.input_gradient(fresh), expected, atol=atol)


@pytest.mark.parametrize("name", ["regressor", "two outputs", "two classes"])
def test_with_bumps_too_as_far_as_kinks_and_single_precision_allow(name):
    X, y = data_for(name)
    model = clone(KINDS[name]).set_params(features=("bumps",)).fit(X, y)
    fresh = data_for(name, n=25, seed=1)[0]
    assert not all(hasattr(a.features.from_x, "weights") for a in model.network_.layers)
    expected = slopes(model, fresh, 1e-3)
    wrong = np.abs(model.input_gradient(fresh) - expected) / np.abs(expected).max()
    assert np.quantile(wrong, 0.9) < 0.02


@pytest.mark.parametrize("name", ["regressor", "huber", "two outputs", "two classes", "classifier"])
def test_a_saved_model_predicts_the_same_bits(name, tmp_path):
    X, y = data_for(name)
    model = clone(KINDS[name]).fit(X, y)
    model.save(tmp_path / "model")
    loaded = rfrboost.load(tmp_path / "model")
    np.testing.assert_array_equal(output(loaded, X), output(model, X))
    np.testing.assert_array_equal(loaded.input_gradient(X), model.input_gradient(X))


@pytest.mark.parametrize("name", MODELS)
def test_seed_order_threads_and_the_size_of_weights(name):
    X, y = data_for(name)
    model = clone(MODELS[name]).fit(X, y)
    expected = output(model, X)
    np.testing.assert_array_equal(output(clone(model).fit(X, y), X), expected)
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert not np.array_equal(output(other, X), expected)
    rounding = 5e-3
    near = {"rtol": rounding, "atol": rounding * np.abs(expected).max()}
    order = default_rng(0).permutation(len(X))
    shuffled = clone(model).fit(X[order], y[order])
    np.testing.assert_allclose(output(shuffled, X), expected, **near)
    np.testing.assert_allclose(shuffled.oof_score_, model.oof_score_, atol=rounding)
    importances = model.feature_importances_
    np.testing.assert_allclose(shuffled.feature_importances_, importances, atol=rounding)
    doubled = clone(model).fit(X, y, sample_weight=np.full(len(X), 2.0))
    np.testing.assert_allclose(output(doubled, X), expected, **near)
    with threadpool_limits(2):
        np.testing.assert_array_equal(output(clone(model).fit(X, y), X), expected)


@pytest.mark.parametrize("name", MODELS)
def test_a_row_of_weight_zero_is_absent(name):
    X, y = data_for(name)
    w = (default_rng(0).random(len(X)) < 0.7).astype(float)
    present = w > 0
    weighted = clone(MODELS[name]).fit(X, y, sample_weight=w)
    expected = clone(MODELS[name]).fit(X[present], y[present], sample_weight=w[present])
    np.testing.assert_array_equal(output(weighted, X), output(expected, X))
    if name != "one bag":
        np.testing.assert_array_equal(np.isnan(weighted.oof_prediction_[:, ...]).any(), True)
        np.testing.assert_array_equal(weighted.oof_prediction_[present], expected.oof_prediction_)


@pytest.mark.parametrize("name", ["regressor", "classifier"])
@pytest.mark.parametrize("n_bags", [1, 2, 7])
def test_as_many_members_as_bags(name, n_bags):
    X, y = data_for(name)
    model = clone(MODELS[name]).set_params(n_bags=n_bags).fit(X, y)
    d = 1 if name == "regressor" else 3
    assert model.transform(X).shape == (len(X), n_bags * d)
    known = np.isfinite(model.oof_prediction_).reshape(len(X), -1).all(axis=1)
    assert known.sum() == (len(X) if n_bags > 1 else len(X) // 5)
    assert model.oof_score_ < model.score(X, y)
    assert model.oof_score_ > (0.5 if name == "regressor" else 0.45)


def test_no_more_members_than_rows():
    X, y = regression(52)
    model = RFRBoostRegressor(n_bags=60, features="swim", n_features=20, random_state=0).fit(X, y)
    assert model.transform(X).shape == (52, 52)
    assert model.oof_score_ > 0.3


@pytest.mark.parametrize("name", ["regressor", "huber", "two outputs", "classifier", "two classes"])
def test_rows_given_to_stop_by(name):
    X, y = data_for(name)
    held = data_for(name, seed=1)
    model = clone(KINDS[name]).fit(X, y, X_val=held[0], y_val=held[1])
    assert not hasattr(model, "oof_prediction_")
    assert not hasattr(model, "oof_score_")
    assert len(model.transform(X).reshape(len(X), -1).T) == len(np.atleast_2d(output(model, X).T))
    assert model.score(X, y) > model.score(*held) > 0.4
    # The rows decide something: when to stop, and how families weigh.
    noise = default_rng(0).permutation(held[1])
    misled = clone(KINDS[name]).fit(X, y, X_val=held[0], y_val=noise)
    assert misled.score(X, y) < model.score(X, y)


@pytest.mark.parametrize("n", [120, 3000])
@pytest.mark.parametrize("name", ["regressor", "classifier"])
def test_little_time_is_enough_for_a_usable_model(name, n):
    X, y = data_for(name, n)
    clock = perf_counter()
    model = clone(MODELS[name]).set_params(max_seconds=1e-6).fit(X, y)
    assert perf_counter() - clock < 5.0
    assert len(model.history_) <= 1
    assert all(hasattr(a.features.from_x, "weights") for a in model.network_.layers)
    held = data_for(name, seed=1)
    assert model.score(*held) > (0.4 if name == "regressor" else 0.45)


def test_the_history_is_of_the_layers_that_were_kept():
    """Family by family from layer 1 on, and the last one kept is the best of its family."""
    X, y = data_for("regressor", n=300)
    model = clone(MODELS["regressor"]).fit(X, y)
    layers = [record["layer"] for record in model.history_]
    starts = [i for i, layer in enumerate(layers) if layer == 1] + [len(layers)]
    for begin, end in pairwise(starts):
        assert layers[begin:end] == list(range(1, end - begin + 1))
        losses = [record["loss"] for record in model.history_[begin:end]]
        assert losses[-1] == min(losses)
