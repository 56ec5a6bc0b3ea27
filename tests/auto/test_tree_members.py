"""Tree members: trees as scikit-learn grows them, ridge on leaves, held-out rows never seen."""

from dataclasses import replace

import numpy as np
import pytest
from fake_clock import Clock, install
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import RandomState, default_rng
from small_bags import RUN, table
from small_forests import features

from rfrboost import RFRBoostClassifier, RFRBoostRegressor, load
from rfrboost._auto import trees as module
from rfrboost._auto.trees import (
    GROWING_SHARE,
    LAYER_TREES,
    LEAF_PENALTY,
    LEAF_ROWS,
    LEAVES,
    Growth,
    fit_trees,
    grid_of,
    grow,
    grow_layer,
    node_values,
)
from rfrboost._model.bumps import LARGEST_CENTRE, single
from rfrboost._model.forest import Forest, of_grown, rounded_down
from rfrboost._model.losses import SquaredError


def steps(n=600, seed=0):
    """A table of thresholds: which of two columns counts depends on a third."""
    rng = default_rng(seed)
    X = rng.uniform(-1, 1, (n, 5))
    y = np.where(X[:, 0] > 0.2, np.sign(X[:, 1]), np.floor(3 * X[:, 2])) + (X[:, 3] > 0.5)
    return X, y


def grown(X, train, residuals, w, rng, grid=None):
    """A tree that is grown with a new random state."""
    return grow(X, train, GROWING_SHARE, residuals, w, rng, grid, RandomState())


def in_single(bags):
    return np.ascontiguousarray(single(bags.x[:, :-1], LARGEST_CENTRE))


# --- one tree -----------------------------------------------------------------------------------


def test_a_tree_has_few_leaves_of_several_rows():
    X, y = steps()
    rows = np.arange(0, 600, 2)
    tree = grown(single(X), rows, y[:, None], np.ones(600), default_rng(0))
    leaves = tree.apply(single(X[rows]))
    assert len(np.unique(leaves)) == tree.n_leaves <= LEAVES
    assert tree.n_node_samples[tree.children_left < 0].min() >= LEAF_ROWS


def test_what_a_random_state_drew_before_does_not_matter():
    X, y = steps()
    used = RandomState(7)
    used.normal(size=3)
    X, rows = single(X), np.arange(600)
    tree = grow(X, rows, GROWING_SHARE, y[:, None], np.ones(600), default_rng(0), None, used)
    again = grown(X, rows, y[:, None], np.ones(600), default_rng(0))
    assert tree.threshold.tolist() == again.threshold.tolist()


def test_questions_explain_the_residuals_of_all_outputs():
    X, y = steps()
    residuals = np.column_stack([y, np.sign(X[:, 4])])
    node = grown(single(X), np.arange(600), residuals, np.ones(600), default_rng(0)).apply(
        single(X)
    )
    within = residuals.copy()
    for own in np.unique(node):
        within[node == own] -= residuals[node == own].mean(axis=0)
    assert (within.var(axis=0) < 0.3 * residuals.var(axis=0)).all()


def test_random_mixtures_of_many_outputs_tell_rows_apart(monkeypatch):
    monkeypatch.setattr(module, "MIXTURES", 2)
    X, y = steps()
    residuals = np.column_stack([y, -y, np.abs(y), y**2])
    node = grown(single(X), np.arange(600), residuals, np.ones(600), default_rng(0)).apply(
        single(X)
    )
    means = np.array([y[node == own].mean() for own in np.unique(node)])
    counts = np.unique(node, return_counts=True)[1]
    assert np.average((means - y.mean()) ** 2, weights=counts) > 0.6 * y.var()


def test_rows_without_weight_do_not_count():
    X, y = steps()
    w = (np.arange(600) % 3 > 0).astype(float)
    other = np.where(w > 0, y, 50.0)
    trees = [
        grown(single(X), np.arange(600), own[:, None], w, default_rng(0)) for own in (y, other)
    ]
    np.testing.assert_array_equal(trees[0].threshold, trees[1].threshold)


@pytest.mark.parametrize("grid", [None, np.full(10, 2.0**-16)])
def test_rounding_does_not_decide_between_questions_that_part_rows_alike(grid):
    # Equal columns, and nodes of few rows: many questions have the same gain.
    X, y = steps()
    X = np.hstack([X, X]).round(1)
    noise = 1e-14 * default_rng(1).standard_normal(600)
    trees = [
        grown(single(X), np.arange(600), (y + own)[:, None] / 3, np.ones(600), default_rng(0), grid)
        for own in (0.0, noise)
    ]
    np.testing.assert_array_equal(trees[0].feature, trees[1].feature)
    np.testing.assert_array_equal(trees[0].threshold, trees[1].threshold)


def test_a_tree_of_best_thresholds_finds_a_sharp_one():
    x = default_rng(0).uniform(size=(600, 1))
    y = (x > 0.3).astype(float)
    grids = (None, np.array([2.0**-16]))
    found = [grown(single(x), np.arange(600), y, np.ones(600), default_rng(0), g) for g in grids]
    random, best = (abs(tree.threshold[0] - 0.3) for tree in found)
    assert best < 0.01 < random


def test_best_thresholds_do_not_part_numbers_that_differ_by_rounding():
    rng = default_rng(0)
    x = rng.integers(0, 5, (600, 1)) + 1e-6 * rng.integers(0, 2, (600, 1))
    y, w = rng.standard_normal((600, 1)), np.ones(600)
    tree = grown(single(x), np.arange(600), y, w, rng, grid_of(x, w))
    thresholds = tree.threshold[tree.children_left >= 0]
    assert len(thresholds) > 2
    assert np.abs(thresholds - thresholds.round()).min() > 0.4


@pytest.mark.parametrize("factor", [1e-9, 3.0, 1e9])
def test_the_grid_follows_the_unit_of_a_column(factor):
    X, w = default_rng(0).standard_normal((600, 2)), np.ones(600)
    ratio = grid_of(factor * X, w) / grid_of(X, w) / factor
    assert ((ratio >= 0.5) & (ratio <= 2)).all()
    np.testing.assert_array_equal(grid_of(np.zeros((600, 2)), w), 2.0**-16)


def test_leaf_values_are_a_ridge_regression_on_leaf_indicators():
    rng = default_rng(0)
    leaf = rng.integers(0, 9, 300)
    R = rng.standard_normal((300, 2))
    w = rng.uniform(0.5, 2, 300)
    F = np.eye(11)[leaf]
    expected = np.linalg.solve(F.T @ (w[:, None] * F) + 0.7 * np.eye(11), F.T @ (w[:, None] * R))
    values = node_values(leaf, 11, R, np.ones_like(R), w, 0.7)
    np.testing.assert_allclose(values, expected, atol=1e-12)


def test_a_renumbered_tree_gives_every_row_the_value_of_its_leaf():
    X, y = steps()
    tree = grown(single(X), np.arange(600), y[:, None], np.ones(600), default_rng(0))
    values = default_rng(1).standard_normal((tree.node_count, 3)).astype(np.float32)
    own = of_grown(tree, values)
    assert (own.children > np.arange(len(own.columns))[:, None]).all()
    found = features(own, np.hstack([X, np.ones((600, 1))]))
    np.testing.assert_array_equal(found, values[tree.apply(single(X))])


@settings(deadline=None, max_examples=100)
@given(
    st.floats(-1e30, 1e30),
    st.floats(-(2.0**99), 2.0**99, width=32),
    st.sampled_from([-1e-9, 0.0, 1e-9]),
)
def test_a_rounded_threshold_tells_single_precision_numbers_apart_like_the_threshold(t, x, nudge):
    for threshold in (t, x * (1 + nudge)):
        low = rounded_down(np.array([threshold]))
        assert low.dtype == np.float32
        assert (np.float32(x) > low[0]) == (float(x) > threshold)


# --- members ------------------------------------------------------------------------------------


def test_a_member_never_sees_the_targets_it_holds_out():
    bags = table(n=200)
    y = bags.y.copy()
    y[bags.folds[0]] += 100.0
    values = []
    for own in (bags, replace(bags, y=y)):
        member = Growth(0, default_rng(0), np.zeros(own.y.shape), [])
        X = in_single(own)
        grow_layer(own, X, grid_of(X, own.w), member, SquaredError(), LEAF_PENALTY, RUN)
        values.append(np.concatenate([tree.values for tree in member.trees]))
    np.testing.assert_array_equal(*values)


def test_the_feature_map_gives_the_predictions_of_the_fit():
    bags = table(n=300)
    start = np.tile(bags.y.mean(axis=0), (len(bags.members), 1))
    fit = fit_trees(bags, start, SquaredError(), 6, default_rng(0), RUN)
    raw = np.stack([features(own, bags.x) for own in fit.members], axis=1) + start
    np.testing.assert_allclose(bags.out_of_fold(raw), fit.out_of_fold, atol=1e-5)
    for own in fit.members:
        assert own.roots.shape == (1, len(fit.records) * LAYER_TREES)


def test_no_tree_is_grown_after_the_deadline(monkeypatch):
    bags = table(n=300)
    start = np.zeros((len(bags.members), 1))
    layers = []
    # The clock is read for each tree, and some times for each layer.
    for deadline in (0.0, 5.0, 60.0, 200.0):
        clock = install(monkeypatch, Clock())
        late = replace(RUN, deadline=deadline)
        fit = fit_trees(bags, start, SquaredError(), 40, default_rng(0), late)
        layers.append(0 if fit is None else len(fit.records))
        assert clock.readings <= deadline + 5
    assert layers[:2] == [0, 0]
    assert 0 < layers[2] < layers[3] < 40


def test_constant_columns_grow_no_tree():
    bags = table(n=100)
    x = bags.x.copy()
    x[:] = 1.0
    start = np.tile(bags.y.mean(axis=0), (len(bags.members), 1))
    assert fit_trees(replace(bags, x=x), start, SquaredError(), 5, default_rng(0), RUN) is None


# --- estimators ---------------------------------------------------------------------------------


def hours_and_days(n, seed):
    """Counts by hour and day, which jump from one to the next, and three columns without effect."""
    level = default_rng(0).standard_normal((2, 24))
    rng = default_rng(seed)
    hour = rng.integers(0, 24, n)
    day = rng.integers(0, 7, n)
    X = np.column_stack([hour, day, rng.standard_normal((n, 3))])
    return X, level[(day > 4).astype(int), hour] + 0.1 * rng.standard_normal(n)


def test_jumps_are_learned_that_neurons_and_bumps_see_badly():
    X, y = hours_and_days(1000, 1)
    X_test, y_test = hours_and_days(1000, 2)
    smooth = RFRBoostRegressor(features=("swim", "bumps"), random_state=0).fit(X, y)
    model = RFRBoostRegressor(features=("swim", "bumps", "trees"), random_state=0).fit(X, y)
    wrong = [1 - m.score(X_test, y_test) for m in (model, smooth)]
    assert wrong[0] < 0.6 * wrong[1]


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": "squared_error"},
        {"loss": "huber"},
        {"loss": "quantile", "quantile": 0.3},
        {"loss": "quantile", "quantile": (0.1, 0.5, 0.9)},
        {"loss": "poisson"},
    ],
    ids=lambda p: "-".join(map(str, p.values())),
)
def test_every_loss_grows_trees(parameters):
    X, y = steps(400)
    y = y - y.min() if parameters["loss"] == "poisson" else y
    model = RFRBoostRegressor(features=("trees",), random_state=0, **parameters).fit(X, y)
    assert isinstance(model.network_.layers[-1].features.from_x, Forest)
    constant = RFRBoostRegressor(n_layers=0, l2_head=1e6, **parameters).fit(X, y)
    assert model.score(X, y) > constant.score(X, y) + 0.3


def test_weights_of_rows_count():
    X, y = steps(400)
    w = np.where(X[:, 4] > 0, 1.0, 1e-3)
    model = RFRBoostRegressor(features=("trees",), random_state=0)
    y = np.where(X[:, 4] > 0, y, -y)
    heavy = X[:, 4] > 0
    model.fit(X[:, :4], y, sample_weight=w)
    assert model.score(X[heavy, :4], y[heavy]) > 0.6


@pytest.mark.parametrize("classes", [2, 4])
def test_classes_and_files(classes, tmp_path):
    X, y = steps(500)
    labels = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    model = RFRBoostClassifier(features=("trees",), random_state=0).fit(X, labels)
    assert model.oof_score_ > 0.8
    model.save(tmp_path / "model.rfrboost")
    again = load(tmp_path / "model.rfrboost")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
