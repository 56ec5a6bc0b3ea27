"""Boosting all members: held-out labels are not used, and no step makes the fit worse."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import default_rng
from small_bags import ALONE, RUN, SHARED, Seen, feature_values, features_for, ridge_by_hand, table

from rfrboost._auto.bags import bag
from rfrboost._auto.layer import (
    LONGEST_STEP,
    GroupFeatures,
    Settings,
    member_residuals,
    solve_members,
    step_length,
)
from rfrboost._auto.members import boost_members, held_out_loss
from rfrboost._model.losses import (
    BinaryLogLoss,
    Huber,
    Poisson,
    Quantile,
    SoftmaxLogLoss,
    SquaredError,
)
from rfrboost._model.network import centered
from rfrboost._model.samplers import SWIM

SIZES = {"alone": ALONE, "shared": SHARED}


def swim_settings(penalties=(1e-3,), n_layers=4, metric=True):
    swim = SWIM(1.0, "tanh")
    return Settings(n_layers, 0.6, 20, penalties, swim, swim, metric)


@pytest.mark.parametrize("weighted", [False, True])
def test_small_tables_members_do_not_feel_the_labels_they_hold_out(weighted):
    """Features, metric and coefficients are equal to the bit in all layers that both fits have."""
    k = 1
    fits = []
    for change in (False, True):
        bags = table(weighted=weighted)
        if change:
            bags.y[bags.folds[k]] += default_rng(9).standard_normal((40, 1))
        start = np.zeros((len(bags.y), 3, 1))
        fits.append(
            boost_members(bags, start, SquaredError(), swim_settings(), default_rng(2), RUN)[0]
        )
    here, there = fits
    together = list(zip(here.layers, there.layers, strict=False))
    assert len(together) >= 2
    for mine, theirs in together:
        np.testing.assert_array_equal(mine[k].features.weights, theirs[k].features.weights)
        np.testing.assert_array_equal(mine[k].C, theirs[k].C)
        np.testing.assert_array_equal(mine[k].c, theirs[k].c)
        assert not np.array_equal(mine[0].C, theirs[0].C)


@pytest.mark.parametrize("loss", [SquaredError(), Huber(0.5), Quantile(), Poisson()])
def test_where_draws_are_shared_coefficients_do_not_feel_held_out_labels(loss):
    k, found = 1, []
    for change in (0.0, 5.0):
        bags = table(sizes=SHARED)
        bags.y[...] = np.abs(bags.y)
        bags.y[bags.folds[k]] += change
        raw = 0.1 * default_rng(5).standard_normal((len(bags.y), 3, 1))
        features = features_for(table())
        rows = GroupFeatures(bags, bags.groups[0], map)
        R = np.hstack([member_residuals(bags, raw, j, loss) for j in bags.groups[0]])
        assert not R[bags.folds[k], k].any()
        columns = np.arange(3).reshape(1, 3, 1)
        C, c = solve_members(
            rows.first_pass(features, R, bags.w), rows.parts, columns, (1e-3,), map
        )
        moves = rows.second_pass(features, C) + c
        alpha = [step_length(bags, j, raw[:, j], moves[:, [j]], loss) for j in range(3)]
        found.append((C, c, alpha))
    (C, c, alpha), (C2, c2, alpha2) = found
    np.testing.assert_array_equal(C[:, k], C2[:, k])
    assert c[k] == c2[k]
    assert alpha[k] == alpha2[k]
    assert not np.array_equal(C[:, 0], C2[:, 0])


LOSSES = {
    "huber": (Huber(0.5), 1),
    "quantile": (Quantile(0.8, 1e-3), 1),
    "poisson": (Poisson(), 1),
    "two classes": (BinaryLogLoss(), 1),
    "three classes": (SoftmaxLogLoss(), 3),
}


def labelled(loss, outputs, sizes=ALONE):
    """Targets in the range of a loss."""
    bags = table(weighted=True, outputs=outputs, sizes=sizes)
    if isinstance(loss, BinaryLogLoss):
        bags.y[...] = bags.y > 0
    if isinstance(loss, SoftmaxLogLoss):
        bags.y[...] = np.eye(3)[np.argmax(bags.y, axis=1)]
    if isinstance(loss, Poisson):
        bags.y[...] = default_rng(0).poisson(np.exp(bags.y))
    return bags


@pytest.mark.parametrize("name", LOSSES)
def test_a_step_lowers_the_loss_of_the_rows_fitted(name):
    loss, d = LOSSES[name]
    bags = labelled(loss, d)
    train, _ = bags.split(0)
    start = np.tile(loss.start(bags.y[train], bags.w[train]), (len(bags.y), 1))
    moves = -loss.gradient(start, bags.y)

    def risk(alpha):
        return bags.w[train] @ loss.value(start + alpha * moves, bags.y)[train]

    alpha = step_length(bags, 0, start, moves, loss)
    assert 0 < alpha <= LONGEST_STEP
    least = min(risk(a) for a in np.linspace(0, 8, 200))
    assert risk(0.6 * alpha) < risk(0.0)
    if "classes" not in name:
        assert risk(alpha) <= least + 1e-3 * (risk(0.0) - least)
    assert step_length(bags, 0, start, -moves, loss) == 0.0
    assert step_length(bags, 0, start, np.zeros_like(moves), loss) == 0.0


@pytest.mark.parametrize("draws", SIZES)
@pytest.mark.parametrize("name", ["squared error", *LOSSES])
def test_layers_add_up_to_what_is_predicted_out_of_fold(draws, name):
    loss, d = LOSSES.get(name, (SquaredError(), 1))
    bags = labelled(loss, d, SIZES[draws])
    start = np.zeros((len(bags.y), 3, d))
    settings = swim_settings((1e-2, 1e-4))
    boosted, *_ = boost_members(bags, start, loss, settings, default_rng(2), RUN)
    assert boosted.layers
    assert len(boosted.records) == len(boosted.layers)
    raw = start.copy()
    for layer in boosted.layers:
        assert sorted(k for of_group in layer for k in of_group.group) == [0, 1, 2]
        for of_group in layer:
            moves = feature_values(of_group.features, bags.x) @ of_group.C + of_group.c
            for i, k in enumerate(of_group.group):
                raw[:, k] += moves[:, i * d : (i + 1) * d]
    np.testing.assert_allclose(boosted.out_of_fold, bags.out_of_fold(raw), atol=1e-4)
    assert held_out_loss(bags, raw, loss) < held_out_loss(bags, start, loss)
    assert boosted.records[-1].loss == pytest.approx(held_out_loss(bags, raw, loss), rel=1e-4)


def test_layers_that_do_not_help_are_not_kept():
    bags = table()
    bags.y[...] = default_rng(7).standard_normal(bags.y.shape)
    seen = Seen()
    boosted, *_ = boost_members(
        bags,
        np.zeros((120, 3, 1)),
        SquaredError(),
        swim_settings((1e-7,), n_layers=30),
        default_rng(2),
        replace(RUN, watch=seen),
    )
    assert boosted.layers == ()
    assert 6 <= len(seen.records) < 30


def test_a_loss_below_zero_has_to_fall_too():
    """A user's loss may be negative; a rise by less than a thousandth is no improvement."""

    class Lowered(SquaredError):  # noqa: N818 (no exception, whatever its name)
        def value(self, raw, y):
            return super().value(raw, y) - 1000.0

    bags = table()
    bags.y[...] = default_rng(0).standard_normal(bags.y.shape)
    start, seen = np.zeros((120, 3, 1)), Seen()
    boosted, *_ = boost_members(
        bags,
        start,
        Lowered(),
        swim_settings((1e-7,), 30),
        default_rng(2),
        replace(RUN, watch=seen),
    )
    assert held_out_loss(bags, start, Lowered()) < 0
    assert boosted.layers == ()
    assert len(seen.records) < 30


def test_every_penalty_keeps_its_own_layers_and_time_ends_a_fit():
    bags = table(n=300)
    start = np.zeros((300, 3, 1))
    settings = swim_settings((1e2, 1e-4, 1e1), n_layers=12)
    results = boost_members(bags, start, SquaredError(), settings, default_rng(2), RUN)
    assert results[0].penalty == 1e-4
    assert [r.loss for r in results] == sorted(r.loss for r in results)
    assert {r.penalty for r in results} <= {1e2, 1e-4, 1e1}
    for result in results:
        wrong = bags.y[bags.held_out] - result.out_of_fold
        assert np.mean(wrong**2) / 2 == pytest.approx(result.loss)
    # On the same features: what one draws is the other's too.
    first, second = (r.layers[0][0] for r in results[:2])
    assert first.features is second.features
    assert not np.array_equal(first.C, second.C)
    short, *_ = boost_members(
        bags,
        start,
        SquaredError(),
        settings,
        default_rng(2),
        replace(RUN, deadline=0.0),
    )
    assert short.layers == ()


def test_the_metric_finds_the_columns_that_matter():
    rng = default_rng(0)
    X = rng.standard_normal((400, 8))
    y = np.sin(2 * X[:, :1]) * np.cos(2 * X[:, 1:2])
    bags = bag(centered(X, np.zeros(8)), y, None, 3, False, default_rng(1))
    boosted, *_ = boost_members(
        bags,
        np.zeros((400, 3, 1)),
        SquaredError(),
        replace(swim_settings(n_layers=12), n_features=100),
        default_rng(2),
        RUN,
    )
    for L in boosted.metrics:
        assert np.diag(L)[:2].min() > 1.5 * np.diag(L)[2:].max()


@pytest.mark.parametrize("draws", SIZES)
def test_penalties_side_by_side_begin_as_each_would_alone(draws):
    bags, penalties = table(sizes=SIZES[draws]), (1e-1, 1e-2, 1e-3)

    def first_layers(some):
        start, settings = np.zeros((len(bags.y), 3, 1)), swim_settings(some, n_layers=1)
        results = boost_members(bags, start, SquaredError(), settings, default_rng(2), RUN)
        return {result.penalty: result.layers[0] for result in results}

    together = first_layers(penalties)
    assert set(together) == set(penalties)
    for penalty in penalties:
        for mine, alone in zip(together[penalty], first_layers((penalty,))[penalty], strict=True):
            np.testing.assert_allclose(mine.C, alone.C, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(mine.c, alone.c, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("draws", SIZES)
@pytest.mark.parametrize("outputs", [1, 2])
def test_under_each_penalty_every_layer_is_a_ridge_on_its_own_residuals(draws, outputs):
    bags = table(weighted=True, outputs=outputs, sizes=SIZES[draws])
    start = np.zeros((len(bags.y), 3, outputs))
    settings = swim_settings((1e-1, 1e-3), n_layers=3)
    results = boost_members(bags, start, SquaredError(), settings, default_rng(2), RUN)
    assert [len(result.layers) for result in results] == [3, 3]
    for result in results:
        raw = start.copy()
        for layer in result.layers:
            moved = raw.copy()
            for of_group in layer:
                F = feature_values(of_group.features, bags.x)
                for i, k in enumerate(of_group.group):
                    rows, own = bags.split(k)[0], slice(i * outputs, (i + 1) * outputs)
                    R = (bags.y - raw[:, k])[rows]
                    C, c = ridge_by_hand(F[rows], R, bags.w[rows], result.penalty)
                    eta = settings.learning_rate
                    atol = 5e-3 * np.abs(C).max()  # features are in single precision
                    np.testing.assert_allclose(of_group.C[:, own], eta * C, atol=atol)
                    np.testing.assert_allclose(of_group.c[own], eta * c, atol=atol)
                    moved[:, k] += F @ of_group.C[:, own] + of_group.c[own]
            raw = moved
