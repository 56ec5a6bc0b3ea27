"""Tree members: best questions by brute force, ridge on leaves, held-out rows never seen."""

from dataclasses import replace
from itertools import product as combinations

import numpy as np
import pytest
from fake_clock import Clock, install
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from small_bags import RUN, table

from rfrboost import RFRBoostClassifier, RFRBoostRegressor, load
from rfrboost._auto import trees as module
from rfrboost._auto.trees import (
    BINS,
    HEIGHT,
    LAYER_TREES,
    LEAF_PENALTY,
    Forest,
    binned_rows,
    borders_between,
    drawn_rows,
    explained_by,
    fit_trees,
    grow,
    grow_layer,
    leaf_numbers,
    leaf_values,
    packed_targets,
    tree_columns,
)
from rfrboost._model.losses import SquaredError
from rfrboost._model.trees import Trees


def steps(n=600, seed=0):
    """A table of thresholds: which of two columns counts depends on a third."""
    rng = default_rng(seed)
    X = rng.uniform(-1, 1, (n, 5))
    y = np.where(X[:, 0] > 0.2, np.sign(X[:, 1]), np.floor(3 * X[:, 2])) + (X[:, 3] > 0.5)
    return X, y


# --- bins ---------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.floats(-1e60, 1e60) | st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=200)
)
def test_borders_lie_between_values(values):
    column = np.array(values)
    borders = borders_between(column)
    distinct = np.unique(column)
    assert len(borders) < BINS
    assert (np.diff(borders) > 0).all()
    # Every border tells two neighbouring values apart, up to rounding of the smallest gaps.
    below = np.searchsorted(distinct, borders, side="right")
    assert ((below > 0) & (below <= len(distinct))).all()
    if len(distinct) <= BINS:
        assert len(borders) == len(distinct) - 1


def test_bins_of_many_values_hold_equally_many_rows():
    column = default_rng(0).standard_normal(10_000)
    bins = np.searchsorted(borders_between(column), column)
    counts = np.bincount(bins)
    assert len(counts) == BINS
    assert counts.min() > 0.9 * len(column) / BINS


def test_borders_do_not_see_validation_rows():
    from rfrboost._auto.bags import bag_apart
    from rfrboost._model.network import centered

    bags = table(n=100)
    far = (centered(np.full((50, 3), 1e6), np.zeros(3)), np.zeros((50, 1)))
    apart = bag_apart(bags.x, bags.y, None, far, default_rng(0), bags.sizes)
    for mine, theirs in zip(binned_rows(bags).borders, binned_rows(apart).borders, strict=True):
        np.testing.assert_array_equal(mine, theirs)


# --- questions ----------------------------------------------------------------------------------


def explained_by_hand(bins, targets, copies, leaf, column, border):
    right = bins[column] > border
    total = 0.0
    for number, side in combinations(np.unique(leaf), (False, True)):
        own = (leaf == number) & (right == side)
        total += (copies[own] @ targets[own]) ** 2 / (copies[own].sum() + LEAF_PENALTY)
    return total


def some_bins(n, seed=3):
    rng = default_rng(seed)
    counts = np.array([4, 2, 7])
    bins = np.array([rng.integers(0, count, n) for count in counts])
    return bins, counts, rng.standard_normal(n), rng.integers(1, 4, n).astype(float)


def test_each_level_takes_the_question_that_explains_most():
    bins, counts, targets, copies = some_bins(80)
    places, cuts, gains = grow(bins, counts, targets, copies)
    leaf = np.zeros(80, int)
    before = 0.0
    for level in range(HEIGHT):
        every = {
            (c, b): explained_by_hand(bins, targets, copies, leaf, c, b)
            for c in range(3)
            for b in range(counts[c] - 1)
        }
        taken = every[places[level], cuts[level]]
        assert taken == pytest.approx(max(every.values()), rel=1e-6)
        assert gains[level] == pytest.approx(max(taken - before, 0), rel=1e-3, abs=1e-6)
        before = taken
        leaf = 2 * leaf + (bins[places[level]] > cuts[level])


def test_packed_sums_are_exact():
    bins, counts, targets, copies = some_bins(5000)
    packed, unit = packed_targets(targets * 1e-200, copies)
    ends = np.cumsum(counts)
    starts = ends - counts
    cells = (bins + starts[:, None]).ravel()
    sums = np.bincount(cells, np.tile(packed, 3)).reshape(1, -1)
    found = explained_by(sums, starts, ends)
    whole = np.rint(targets * 1e-200 / unit)
    for c in range(3):
        for b in range(counts[c] - 1):
            exact = explained_by_hand(bins, whole, copies, np.zeros(5000, int), c, b)
            assert found[starts[c] + b] == pytest.approx(exact, rel=1e-12)


def test_rows_are_drawn_by_weight():
    w = np.array([0.0, 1.0, 3.0, 0.0, 6.0])
    rows, copies = drawn_rows(w, 100_000, default_rng(0))
    np.testing.assert_array_equal(rows, [1, 2, 4])
    np.testing.assert_allclose(copies / copies.sum(), [0.1, 0.3, 0.6], atol=0.01)


def test_columns_that_explained_much_are_asked_about_more_often():
    counts = np.full(200, 5)
    counts[:100] = 1
    explained = np.zeros(200)
    explained[150] = 1.0
    rng = default_rng(0)
    drawn = [tree_columns(counts, explained, rng) for _ in range(200)]
    assert all(len(set(own)) == module.TREE_COLUMNS and own.min() >= 100 for own in drawn)
    assert np.mean([150 in own for own in drawn]) > 0.95
    others = np.bincount(np.concatenate(drawn), minlength=200)[100:]
    assert np.median(others) > 20


# --- leaves -------------------------------------------------------------------------------------


def test_leaf_values_are_a_ridge_regression_on_leaf_indicators():
    rng = default_rng(0)
    leaf = rng.integers(0, 2**HEIGHT, 300)
    R = rng.standard_normal((300, 2))
    w = rng.uniform(0.5, 2, 300)
    F = np.eye(2**HEIGHT)[leaf]
    expected = np.linalg.solve(
        F.T @ (w[:, None] * F) + 0.7 * np.eye(2**HEIGHT), F.T @ (w[:, None] * R)
    )
    values = leaf_values(leaf, R, np.ones_like(R), w, 0.7)
    np.testing.assert_allclose(values, expected, atol=1e-12)


def test_a_member_never_sees_the_targets_it_holds_out():
    bags = table(n=200)
    y = bags.y.copy()
    y[bags.folds[0]] += 100.0
    values = []
    for own in (bags, replace(bags, y=y)):
        forest = Forest(0, default_rng(0), np.zeros(own.y.shape), np.zeros(3), [], [], [])
        grow_layer(own, binned_rows(own), forest, SquaredError(), LEAF_PENALTY)
        values.append(forest.values)
    np.testing.assert_array_equal(*values)


def test_the_feature_map_gives_the_predictions_of_the_fit():
    bags = table(n=300)
    start = np.tile(bags.y.mean(axis=0), (len(bags.members), 1))
    fit = fit_trees(bags, start, SquaredError(), 3, default_rng(0), RUN)
    out = np.empty((300, fit.features.width), order="F")
    fit.features(bags.x, out)
    raw = out.reshape(300, len(bags.members), -1) + start
    np.testing.assert_allclose(bags.out_of_fold(raw), fit.out_of_fold, atol=1e-10)
    assert fit.features.columns.shape[1] == len(fit.records) * LAYER_TREES


def test_no_layer_is_grown_that_would_end_after_the_deadline(monkeypatch):
    bags = table(n=300)
    start = np.zeros((len(bags.members), 1))
    layers = []
    # The clock is read once for each of three columns, and some times for each layer.
    for deadline in (0.0, 2.0, 10.0, 30.0):
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
    start = np.zeros((len(bags.members), 1))
    assert fit_trees(replace(bags, x=x), start, SquaredError(), 5, default_rng(0), RUN) is None


def test_leaf_numbers_are_those_of_the_map():
    bags = table(n=150)
    binned = binned_rows(bags)
    columns = np.array([0, 2, 1])
    cuts = np.array([3, 10, 5])
    thresholds = np.array([binned.borders[c][b] for c, b in zip(columns, cuts, strict=True)])
    one = Trees(columns[None, None], thresholds[None, None], np.arange(8.0).reshape(1, 1, 8, 1))
    number = np.empty((len(bags.x), 1))
    one(bags.x, number)
    np.testing.assert_array_equal(number[:, 0], leaf_numbers(binned.bins, columns, cuts))


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
    assert isinstance(model.network_.layers[-1].features.from_x, Trees)
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
