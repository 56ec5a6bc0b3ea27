"""Splits of the user's own: what members are fitted on, hold out, and are combined by."""

import numpy as np
import pytest
from numpy.random import default_rng
from small_bags import ALONE, RUN, SHARED, feature_values, features_for, ridge_by_hand

from rfrboost._auto.bags import Splits, bag, bag_split
from rfrboost._auto.fit import held_by
from rfrboost._auto.kernel import DualRidge, PrimalRidge, bumps_in, fit_kernel, runs_of
from rfrboost._auto.layer import GroupFeatures, member_residuals, solve_members
from rfrboost._model.losses import SquaredError
from rfrboost._model.network import centered
from rfrboost._numerics.sizes import Sizes

N = 90
DRAWS = {"alone": ALONE, "shared": SHARED}


def rows(n=N, seed=0):
    rng = default_rng(seed)
    X = rng.standard_normal((n, 3))
    return centered(X, np.zeros(3)), np.sin(2 * X[:, :1]) + X[:, 1:2], rng.uniform(0.5, 2.0, n)


def by_time(n=N, blocks=3):
    """Member k is fitted on the first k + 1 blocks and holds out the next."""
    block = np.arange(n) * (blocks + 1) // n
    ks = np.arange(blocks)[:, None]
    return Splits(block <= ks, block == ks + 1)


def overlapping(n=N, members=4, seed=3):
    """Each member holds out a fifth of the rows, drawn anew."""
    held = default_rng(seed).random((members, n)) < 0.2
    return Splits(~held, held)


SPLITS = {"by time": by_time(), "overlapping": overlapping()}


def made(kind, draws="alone", weighted=False):
    x, y, w = rows()
    return bag_split(x, y, w if weighted else None, SPLITS[kind], default_rng(1), DRAWS[draws])


def brute(kind, bags):
    """Masks of training and held-out rows in the order of the bags, one row per member."""
    here = np.argsort(bags.origin)
    splits = SPLITS[kind]
    fitted, held = splits.fitted[:, here], splits.held[:, here]
    if kind == "by time":
        fitted, held = np.vstack([fitted, np.ones(N, bool)]), np.vstack([held, np.zeros(N, bool)])
    return fitted, held


@pytest.mark.parametrize("n_bags", [2, 5])
@pytest.mark.parametrize("n", [40, 53])
def test_folds_of_ones_own_that_are_the_usual_ones_are_the_usual_bags(n, n_bags):
    """Equal to the bit, whatever is drawn afterwards."""
    x, y, w = rows(n)
    usual = bag(x.copy(), y, w, n_bags, False, default_rng(7))
    holding = np.zeros((n_bags, n), bool)
    for k in usual.members:
        holding[k, np.argsort(usual.origin)[usual.split(k)[1]]] = True
    own = bag_split(x, y, w, Splits(~holding, holding), default_rng(7))
    for name in ("x", "y", "w", "held_out", "origin"):
        np.testing.assert_array_equal(getattr(own, name), getattr(usual, name))
    assert (own.held, own.groups, own.kept, own.judge) == (
        usual.held,
        usual.groups,
        usual.kept,
        usual.judge,
    )
    for k in usual.members:
        np.testing.assert_array_equal(own.split(k)[0], usual.split(k)[0])


@pytest.mark.parametrize("kind", SPLITS)
@pytest.mark.parametrize("draws", DRAWS)
def test_members_are_fitted_on_and_hold_out_what_the_splits_say(kind, draws):
    bags = made(kind, draws)
    fitted, held = brute(kind, bags)
    for k in bags.members:
        train, kept_apart = bags.split(k)
        np.testing.assert_array_equal(train, np.flatnonzero(fitted[k]))
        np.testing.assert_array_equal(kept_apart, np.flatnonzero(held[k]))
    np.testing.assert_array_equal(bags.held_out, np.flatnonzero(held.any(axis=0)))
    for group in bags.groups:
        expected = np.flatnonzero(fitted[list(group)].any(axis=0))
        np.testing.assert_array_equal(bags.seen[group], expected)
    raw = default_rng(0).standard_normal((N, len(bags.members), 2))
    expected = [raw[i, held[:, i]].mean(axis=0) for i in bags.held_out]
    np.testing.assert_allclose(bags.out_of_fold(raw), expected, atol=1e-14)


def test_under_splits_by_time_a_member_of_all_rows_predicts_alone():
    bags = made("by time")
    assert bags.kept == (3,)
    assert bags.held[3] == ()
    assert bags.judge == 2
    assert made("overlapping").kept == (0, 1, 2, 3)


def test_rows_held_out_by_several_count_once_in_all():
    bags = made("overlapping", weighted=True)
    raw = default_rng(0).standard_normal((N, 1))
    parts = [held_by(bags, k, raw) for k in bags.kept]
    assert sum(part.w.sum() for part in parts) == pytest.approx(bags.w[bags.held_out].sum())
    bags = made("by time")
    (only,) = [held_by(bags, k, raw) for k in bags.kept]
    np.testing.assert_array_equal(only.y, bags.y[bags.held_out])


@pytest.mark.parametrize("kind", SPLITS)
@pytest.mark.parametrize("draws", DRAWS)
def test_regressions_of_a_layer_are_those_of_the_rows_fitted(kind, draws):
    bags = made(kind, draws, weighted=True)
    fitted, held = brute(kind, bags)
    features = features_for(bags)
    raw = default_rng(5).standard_normal((N, len(bags.members), 1))
    F = feature_values(features, bags.x)
    for group in bags.groups:
        own = GroupFeatures(bags, group, map)
        R = np.hstack([member_residuals(bags, raw, k, SquaredError()) for k in group])
        columns = np.arange(len(group)).reshape(1, -1, 1)
        sums = own.first_pass(features, R, bags.w)
        C, c = solve_members(sums, own.parts, columns, (1e-2,), map)
        moves = own.second_pass(features, C) + c
        for i, k in enumerate(group):
            rows = fitted[k]
            residuals = bags.y[rows] - raw[rows, k]
            by_hand = ridge_by_hand(F[rows], residuals, bags.w[rows], 1e-2)
            np.testing.assert_allclose(C[:, [i]], by_hand[0], atol=1e-3)
            here = rows | held[k]
            np.testing.assert_allclose(moves[here, i], (F @ C + c)[here, i], atol=1e-4)


@pytest.mark.parametrize("kind", SPLITS)
@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("ridge", [DualRidge, PrimalRidge])
def test_kernel_members_do_not_feel_rows_they_are_not_fitted_on(kind, draws, ridge):
    bags, changed = (made(kind, draws) for _ in range(2))
    fitted, held = brute(kind, bags)
    for group in bags.groups:
        bumps = bumps_in(bags, group, np.eye(3), np.zeros(3), default_rng(2))
        for k in group:
            changed.y[...] = bags.y
            changed.y[~fitted[k]] = 1e6
            here, there = (ridge(b, group, bumps, map).fit(k, 0.1) for b in (bags, changed))
            np.testing.assert_array_equal(here.C, there.C)
            assert len(here.held_out) == held[k].sum()
            if held[k].any():
                expected = bumps.between(bags.x[held[k], :-1], bumps.centres) @ here.C + here.c
                np.testing.assert_allclose(here.held_out, expected, atol=1e-4)


@pytest.mark.parametrize("kind", SPLITS)
@pytest.mark.parametrize("most_centres", [1000, 20])
def test_kernel_members_of_any_splits_predict_held_out_rows(kind, most_centres):
    x, y, _ = rows()
    sizes = Sizes(shared_draw_rows=0, most_centres=most_centres, drawn_centres=15)
    bags = bag_split(x, y, None, SPLITS[kind], default_rng(1), sizes)
    fit = fit_kernel(bags, (np.eye(3),) * len(bags.groups), default_rng(2), RUN)
    wrong = fit.out_of_fold - bags.y[bags.held_out]
    assert np.mean(wrong**2) < 0.9 * bags.y[bags.held_out].var()


def test_rows_as_runs():
    assert runs_of(np.array([0, 1, 2, 5, 7, 8])) == [slice(0, 3), slice(5, 6), slice(7, 9)]
    assert runs_of(np.arange(4)) == [slice(0, 4)]
