"""Automatic fits: the network is its parts put together, and the estimators keep their word."""

from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from time import process_time

import numpy as np
import pytest
from model_zoo import classification, regression
from numpy.random import SeedSequence, default_rng
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from small_bags import ALONE, RUN, SHARED, Seen, feature_values
from threadpoolctl import threadpool_limits

import rfrboost
from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost._auto.assemble import assemble, family_weights
from rfrboost._auto.bags import Bags, bag
from rfrboost._auto.fit import Plan, fit_auto, fit_families
from rfrboost._model.losses import (
    BinaryLogLoss,
    Huber,
    LabelsLogLoss,
    Poisson,
    Quantile,
    SoftmaxLogLoss,
    SquaredError,
)
from rfrboost._model.network import centered
from rfrboost._model.samplers import SWIM, SparseSWIM
from rfrboost._numerics.arrays import coarse

MODELS = {
    "regressor": RFRBoostRegressor(n_bags=2, random_state=0),
    "huber": RFRBoostRegressor(loss="huber", n_bags=2, random_state=0),
    "quantile": RFRBoostRegressor(loss="quantile", quantile=0.8, n_bags=2, random_state=0),
    "one bag": RFRBoostRegressor(n_bags=1, random_state=0),
    "classifier": RFRBoostClassifier(n_bags=2, random_state=0),
}
KINDS = {
    **MODELS,
    "two outputs": RFRBoostRegressor(n_bags=2, random_state=0),
    "nearly linear": RFRBoostRegressor(n_bags=2, random_state=0),
    "poisson": RFRBoostRegressor(loss="poisson", n_bags=2, random_state=0),
    "two classes": RFRBoostClassifier(n_bags=2, random_state=0),
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


#: for each kind of model its loss and targets, the number of bags, and whether targets are classes
PROBLEMS = {
    "squared error": (SquaredError(), 1, 3, False),
    "one bag": (SquaredError(), 1, 1, False),
    "two outputs": (SquaredError(), 2, 3, False),
    "nearly linear": (SquaredError(), 1, 3, False),
    "huber": (Huber(0.5), 1, 3, False),
    "quantile": (Quantile(0.8), 1, 3, False),
    "poisson": (Poisson(), 1, 3, False),
    "two classes": (BinaryLogLoss(), 1, 3, True),
    "three classes": (SoftmaxLogLoss(), 3, 3, True),
    "five classes": (SoftmaxLogLoss(), 5, 3, True),
    "three labels": (LabelsLogLoss(), 3, 3, True),
}


def targets_for(name, X):
    """Targets (n, k) in the range of the loss."""
    loss, outputs, _, _ = PROBLEMS[name]
    rng = default_rng(2)
    y = np.column_stack([np.sin(2 * X[:, 0] + k) + X[:, 1] * X[:, -1] for k in range(outputs)])
    y = y + 0.1 * rng.standard_normal(y.shape)
    if name == "nearly linear":
        return X.sum(axis=1, keepdims=True) + 0.2 * y
    if isinstance(loss, Poisson):
        return np.round(np.exp(y))
    if isinstance(loss, BinaryLogLoss):
        return (y > 0).astype(float)
    if isinstance(loss, SoftmaxLogLoss):
        return np.eye(outputs)[np.argmax(y, axis=1)]
    return y


def plan_for(name, sizes):
    """All families, with few layers."""
    loss, _, n_bags, strata = PROBLEMS[name]
    samplers = (SWIM(0.7, "tanh"), SparseSWIM(0.7, "tanh"))
    return Plan(
        loss=loss,
        n_bags=n_bags,
        strata=strata,
        n_layers=8,
        learning_rate=0.6,
        n_features=None,
        linear_penalties=(1e-5, 1e-3, 1e-1, 10.0),
        step_penalties=(1e-2, 1e-4),
        first_samplers=samplers,
        samplers=samplers,
        bumps=True,
        trees=True,
        learns_metric=True,
        seed=0,
        sizes=sizes,
    )


def members_by_hand(families, v, b, x):
    """Every member's weighted prediction (n, members, d) of rows x, family by family."""
    d = len(b)
    start = np.tile(families.constants, (len(x), 1, 1))
    raw = [start.copy()]
    for layer in families.linear.layers:
        add(raw[0], layer, x, d)
    for family in families.boosted:
        raw.append(raw[0].copy())
        for layer in family.layers:
            add(raw[-1], layer, x, d)
    if families.kernel is not None:
        raw.append(np.zeros_like(start))
        add(raw[-1], families.kernel.layers, x, d)
    if families.trees is not None:
        members = [feature_values(own, x) for own in families.trees.members]
        raw.append(families.constants + np.stack(members, axis=1))
    return sum(weight * own for weight, own in zip(v, raw, strict=True)) + b


def add(raw, by_group, x, d):
    for layer in by_group:
        moves = feature_values(layer.features, x) @ layer.C + layer.c
        for i, k in enumerate(layer.group):
            raw[:, k] += moves[:, i * d : (i + 1) * d]


@pytest.mark.parametrize("sizes", [ALONE, SHARED], ids=["alone", "shared"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_network_is_the_mean_of_members_that_are_their_weighted_families(
    name, sizes, monkeypatch
):
    X, fresh = (default_rng(seed).standard_normal((n, 4)) for seed, n in ((0, 80), (1, 30)))
    y, plan = targets_for(name, X), plan_for(name, sizes)
    mean = coarse(X.mean(axis=0), np.ptp(X, axis=0))
    rng = default_rng(SeedSequence(plan.seed))
    one_label = name != "three labels"
    bags = bag(centered(X, mean), y, None, plan.n_bags, plan.strata, rng, sizes, one_label)
    as_it_was = deepcopy(rng)
    families, _ = fit_families(bags, bags, plan, rng, RUN)
    assert families.boosted
    assert (families.kernel is not None) == plan.loss.least_squares
    for k in bags.members:
        rows, _ = bags.split(k)
        np.testing.assert_array_equal(
            families.constants[k], plan.loss.start(bags.y[rows], bags.w[rows])
        )
    network, held_out_raw = assemble(bags, mean, plan.loss, families)
    v, b, _ = family_weights(bags, plan.loss, families)
    members = members_by_hand(families, v, b, centered(fresh, mean))
    near = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(network.transform(fresh), members.reshape(30, -1), **near)
    np.testing.assert_allclose(network.raw(fresh), members.mean(axis=1), **near)
    # Out-of-fold predictions are those of members before they were moved to a fit of all rows.
    with monkeypatch.context() as patch:
        patch.setattr(Bags, "together", False)
        before, _ = fit_families(bags, bags, plan, as_it_was, RUN)
    out_of_fold = bags.out_of_fold(members_by_hand(before, v, b, bags.x))
    np.testing.assert_allclose(held_out_raw, out_of_fold, rtol=2e-3, atol=2e-3)

    fit = fit_auto(centered(X, np.zeros(X.shape[1])), y, None, None, None, plan, Seen())
    np.testing.assert_array_equal(fit.network.raw(fresh), network.raw(fresh))
    in_order = np.full((80, len(b)), np.nan)
    in_order[np.argsort(bags.origin)[bags.held_out]] = held_out_raw
    np.testing.assert_array_equal(fit.out_of_fold, in_order)
    np.testing.assert_array_equal(np.vstack([held.raw for held in fit.held_out]), held_out_raw)


def test_one_label_is_fitted_as_two_classes_are():
    """The loss of several labels, given one, fits the network of the binary loss to the bit."""
    X = default_rng(0).standard_normal((80, 4))
    y, plan = targets_for("two classes", X), plan_for("two classes", SHARED)
    fits = [
        fit_auto(
            centered(X, np.zeros(X.shape[1])), y, None, None, None, replace(plan, loss=loss), Seen()
        )
        for loss in (BinaryLogLoss(), LabelsLogLoss())
    ]
    np.testing.assert_array_equal(*(fit.network.raw(X) for fit in fits))
    np.testing.assert_array_equal(*(fit.out_of_fold for fit in fits))


def from_members(name, model, X, members):
    """Members' predictions (n, members, d) in the form and the units of the model's own."""
    if name == "poisson":
        return np.exp(members)
    if "class" in name:
        p = expit(members) if members.shape[2] == 1 else softmax(members, axis=2)
        return np.concatenate([1 - p, p], axis=2) if members.shape[2] == 1 else p
    mean = members.mean(axis=1)
    predicted = model.predict(X).reshape(mean.shape)
    lines = [np.polyfit(mean[:, j], predicted[:, j], 1) for j in range(mean.shape[1])]
    return np.stack([np.polyval(line, members[:, :, j]) for j, line in enumerate(lines)], axis=2)


@pytest.mark.parametrize("name", KINDS)
def test_an_out_of_fold_prediction_is_that_of_one_member(name):
    X, y = data_for(name, n=80)
    model = clone(KINDS[name]).fit(X, y)
    members = from_members(name, model, X, model.transform(X).reshape(80, model.n_bags, -1))
    predicted = model.oof_prediction_.reshape(80, -1)
    known = np.isfinite(predicted).all(axis=1)
    away = np.abs(members[known] - predicted[known, None]).max(axis=2)
    assert away.min(axis=1).max() < 2e-3 * np.abs(predicted[known]).max()
    counts = np.bincount(away.argmin(axis=1), minlength=model.n_bags)
    assert counts.max() - counts.min() <= 2
    assert known.sum() == (80 if model.n_bags > 1 else 16)


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
    model = clone(KINDS[name]).set_params(features="swim", l2_step=1e-9, n_bags=5).fit(X, y)
    # A step that is large beside the rounding of predictions, within 1.5e-6 of their spread.
    expected = slopes(model, fresh, 1e-3)
    atol = 5e-3 * np.abs(expected).max()
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
def test_another_seed_differs_but_not_order_threads_or_the_size_of_weights(name):
    X, y = data_for(name)
    model = clone(MODELS[name]).fit(X, y)
    expected = output(model, X)
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert not np.array_equal(output(other, X), expected)
    rounding = 5e-3
    near = {"rtol": rounding, "atol": rounding * np.abs(expected).max()}
    order = default_rng(0).permutation(len(X))
    shuffled = clone(model).fit(X[order], y[order])
    np.testing.assert_array_equal(output(shuffled, X), expected)
    assert shuffled.oof_score_ == pytest.approx(model.oof_score_, abs=1e-12)
    importances = model.feature_importances_
    np.testing.assert_allclose(shuffled.feature_importances_, importances, atol=1e-9)
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
    model = RFRBoostRegressor(n_bags=60, features="swim", n_features=8, random_state=0).fit(X, y)
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
    # Processor time, which other work on the machine does not lengthen.
    clock = process_time()
    model = clone(MODELS[name]).set_params(max_seconds=1e-6, n_bags=5).fit(X, y)
    assert process_time() - clock < 5.0
    assert len(model.history_) <= 1
    assert len(model.network_.layers) <= 1
    held = data_for(name, seed=1)
    linear = LinearRegression() if name == "regressor" else LogisticRegression()
    assert model.score(*held) > linear.fit(X, y).score(*held) - 0.02


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
