"""Kernel members: ridge regression on bumps, against its normal equations written out."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from fake_clock import Clock, install
from numpy.random import default_rng
from small_bags import ALONE, RUN, SHARED, with_own_fits

from rfrboost._auto import kernel
from rfrboost._auto.bags import Splits, bag, bag_apart, bag_split
from rfrboost._auto.kernel import (
    SMALLEST_PENALTY,
    DualRidge,
    PrimalRidge,
    Trial,
    bumps_among,
    bumps_in,
    choose,
    fit_kernel,
    refined_penalty,
    runs_of,
    sampled,
)
from rfrboost._model.bumps import Bumps, Distances, measured
from rfrboost._model.network import centered
from rfrboost._numerics.least_squares import solve_kernel
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._numerics.threads import OutOfTimeError

NO_TIME = replace(RUN, deadline=0.0)
DRAWS = {"alone": ALONE, "shared": SHARED}
D = 3


def table(n=90, n_bags=3, weighted=False, outputs=2, seed=0, sizes=SIZES):
    """Bags of a smooth target."""
    rng = default_rng(seed)
    X = rng.standard_normal((n, D))
    y = np.column_stack([np.sin(X[:, 0] + k) * X[:, 1] for k in range(outputs)])
    y += 0.1 * rng.standard_normal(y.shape)
    w = rng.uniform(0.2, 3.0, n) if weighted else None
    return bag(centered(X, np.zeros(D)), y, w, n_bags, False, default_rng(1), sizes)


def shaped(bags, group, mix=0.5, reach=1.0):
    """Bumps around all rows that the group sees."""
    spans = np.zeros(D)
    shape = bumps_in(bags, group, np.eye(D), spans, default_rng(2))
    return Bumps(shape.centres, shape.distances, reach, mix)


def by_hand(bags, bumps, member, penalty):
    """C over all centres and c: argmin Σ w(y − c − KC)² + s·CᵀMC with c the weighted mean of y."""
    X, train = bags.x[:, :-1], bags.split(member)[0]
    K = bumps.between(X[train], bumps.centres).astype(float)
    M = bumps.between(bumps.centres, bumps.centres).astype(float)
    w = bags.w[train][:, None]
    mean = (w * bags.y[train]).sum(axis=0) / w.sum()
    C = np.linalg.lstsq(
        K.T @ (w * K) + penalty * M, K.T @ (w * (bags.y[train] - mean)), rcond=1e-12
    )
    return C[0], mean


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_dual_ridge_is_the_minimum_of_its_objective(draws, weighted):
    bags = table(weighted=weighted, sizes=DRAWS[draws])
    for group in bags.groups:
        bumps = shaped(bags, group)
        problem = DualRidge(bags, group, bumps, map)
        for k in group:
            fit = problem.fit(k, 0.05)
            C, mean = by_hand(bags, bumps, k, 0.05)
            held = bags.x[bags.folds[k], :-1]
            expected = bumps.between(held, bumps.centres) @ C + mean
            np.testing.assert_allclose(fit.held_out, expected, atol=2e-4)
            np.testing.assert_allclose(fit.c, mean, atol=1e-12)
            from_parts = bumps.between(held, bumps.centres) @ fit.C + fit.c
            np.testing.assert_allclose(fit.held_out, from_parts, atol=1e-5)


def test_rows_a_member_holds_out_have_no_coefficient():
    bags = table(sizes=SHARED)
    problem = DualRidge(bags, bags.groups[0], shaped(bags, bags.groups[0]), map)
    for k in bags.members:
        C = problem.fit(k, 0.1).C
        assert not C[bags.folds[k]].any()
        assert C[bags.split(k)[0]].all()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_primal_ridge_is_the_minimum_of_its_objective(weighted):
    sizes = replace(SHARED, most_centres=20, drawn_centres=15, batch_rows=7, kernel_strip_rows=4)
    bags = table(weighted=weighted, sizes=sizes)
    bumps = shaped(bags, bags.groups[0])
    assert bumps.width == 15
    problem = PrimalRidge(bags, bags.groups[0], bumps, map)
    for k in bags.members:
        fit = problem.fit(k, 0.05)
        C, mean = by_hand(bags, bumps, k, 0.05)
        np.testing.assert_allclose(fit.c, mean, atol=1e-12)
        expected = bumps.between(bags.x[bags.folds[k], :-1], bumps.centres) @ C + mean
        np.testing.assert_allclose(fit.held_out, expected, atol=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_with_every_row_a_centre_primal_and_dual_agree(weighted):
    bags = table(weighted=weighted, sizes=SHARED)
    bumps = shaped(bags, bags.groups[0])
    primal, dual = (r(bags, bags.groups[0], bumps, map) for r in (PrimalRidge, DualRidge))
    for k in bags.members:
        np.testing.assert_allclose(
            primal.fit(k, 0.5).held_out, dual.fit(k, 0.5).held_out, atol=5e-3
        )


@pytest.mark.parametrize("ridge", [DualRidge, PrimalRidge])
@pytest.mark.parametrize("weighted", [False, True])
def test_members_that_share_a_kernel_have_the_mean_of_a_fit_to_all_rows(ridge, weighted):
    few = {"most_centres": 20, "drawn_centres": 15} if ridge is PrimalRidge else {}
    bags = table(weighted=weighted, sizes=replace(SHARED, **few))
    fit = fit_kernel(bags, (np.eye(D),), default_rng(3), RUN)
    layer = fit.layers[0]
    k, d = len(bags.members), bags.y.shape[1]
    K = layer.features.between(bags.x[:, :-1], layer.features.centres)
    predicted = (K.astype(float) @ layer.C + layer.c).reshape(len(K), k, d)
    problem = ridge(bags, bags.groups[0], layer.features, map)
    # The penalty that was chosen is the one whose fits differ as the members do.
    penalties = penalties_of(problem)
    differences = predicted - predicted.mean(axis=1, keepdims=True)
    errors = []
    for penalty in penalties:
        own = np.stack([K @ f.C + f.c for f in (problem.fit(i, penalty) for i in range(k))], axis=1)
        errors.append(np.abs(own - own.mean(axis=1, keepdims=True) - differences).max())
    chosen = penalties[int(np.argmin(errors))]
    assert min(errors) < 1e-4
    everyone = replace(bags, fitted=(tuple(range(len(bags.folds))),) * k)
    C, c = by_hand(everyone, layer.features, 0, chosen)
    np.testing.assert_allclose(predicted.mean(axis=1), K @ C + c, atol=2e-3)
    # Out-of-fold predictions are those of the members alone.
    held_out = np.vstack([problem.fit(i, chosen).held_out for i in range(k)])
    np.testing.assert_allclose(fit.out_of_fold, held_out, atol=1e-6)


def penalties_of(problem):
    """All penalties that a fit may choose: powers of ten for each row of a sample."""
    rows = len(problem.bags.split(0)[0])
    return [rows * 10.0**k for k in range(-9, 1)]


def test_members_are_not_moved_where_some_rows_are_fitted_by_none_or_draws_are_their_own():
    rng = default_rng(0)
    x, y = centered(rng.standard_normal((60, D)), np.zeros(D)), rng.standard_normal((60, 1))
    assert bag(x.copy(), y, None, 3, False, default_rng(1), SHARED).together
    assert not bag(x.copy(), y, None, 1, False, default_rng(1), SHARED).together
    assert not bag(x.copy(), y, None, 3, False, default_rng(1), ALONE).together
    assert not bag_apart(x.copy(), y, None, (x[:9], y[:9]), default_rng(1), SHARED).together
    by_time = np.arange(60) < np.array([[20], [40]])
    later = Splits(by_time, ~by_time & (np.arange(60) < np.array([[40], [60]])))
    assert not bag_split(x.copy(), y, None, later, default_rng(1), SHARED).together
    by_group = Splits(by_time[:1], ~by_time[:1])
    both = Splits(
        np.vstack([by_group.fitted, by_group.held]), np.vstack([by_group.held, by_group.fitted])
    )
    assert bag_split(x.copy(), y, None, both, default_rng(1), SHARED).together


@pytest.mark.parametrize("ridge", [DualRidge, PrimalRidge])
@pytest.mark.parametrize("draws", DRAWS)
def test_a_members_fit_does_not_depend_on_labels_it_holds_out(ridge, draws):
    bags, changed = (table(sizes=DRAWS[draws]) for _ in range(2))
    k = 1
    group = next(g for g in bags.groups if k in g)
    changed.y[changed.folds[k]] = 1e6
    here, there = (ridge(b, group, shaped(b, group), map).fit(k, 0.1) for b in (bags, changed))
    np.testing.assert_array_equal(here.C, there.C)
    np.testing.assert_array_equal(here.c, there.c)
    np.testing.assert_array_equal(here.held_out, there.held_out)


@pytest.mark.parametrize("held", [slice(0, 0), slice(0, 30), slice(40, 70), slice(90, 120)])
@pytest.mark.parametrize(("s", "tolerance"), [(1.0, 1e-4), (1e-3, 2e-3), (1e-6, 5e-3)])
@pytest.mark.parametrize("copies", [1, 2])
def test_the_kernel_solver_solves_also_where_rows_are_copies(held, s, tolerance, copies):
    rng = default_rng(0)
    X = np.repeat(rng.standard_normal((120 // copies, D)), copies, axis=0)
    K = np.exp(-np.linalg.norm(X[:, None] - X, axis=2)).astype(np.float32)
    before = K.copy()
    kept = np.delete(np.arange(120), np.r_[held])
    A = K[np.ix_(kept, kept)].astype(float) + s * np.eye(len(kept))
    expected = np.repeat(rng.standard_normal((60, 2)), 2, axis=0)[kept]
    runs = runs_of(kept)
    solution = solve_kernel(K, runs, s, A @ expected)
    np.testing.assert_array_equal(K, before)
    # What a solution is for: the fit. Between copies the coefficients themselves are arbitrary.
    np.testing.assert_allclose(
        A @ solution, A @ expected, atol=tolerance * np.abs(A @ expected).max()
    )


@pytest.mark.parametrize("seed", range(4))
def test_bumps_are_chosen_by_their_error_on_held_out_rows(seed):
    rng = default_rng(seed)
    X = rng.uniform(-1, 1, (200, D))
    y = [np.sign(X).sum(axis=1), 9 * np.linalg.norm(X, axis=1)][seed % 2][:, None]
    bags = bag(centered(X, np.zeros(D)), y, None, 4, False, default_rng(1))
    shape = bumps_in(bags, (0,), np.eye(D), np.zeros(D), default_rng(2))
    chosen = choose(bags, 0, shape, default_rng(3), RUN)
    trial = Trial(bags, shape, bags.split(0)[0], np.r_[bags.folds[0]])
    errors = {mix: trial.errors(mix, chosen.reach, [chosen.penalty])[0] for mix in (0.0, 0.5, 1.0)}
    assert errors[chosen.mix] == min(errors.values())
    # Steps along columns are for absolute distances alone, a cone is not.
    assert (chosen.mix == 1.0) == (seed % 2 == 0)
    problem = DualRidge(
        bags, (0,), Bumps(shape.centres, shape.distances, chosen.reach, chosen.mix), map
    )
    wrong = problem.fit(0, chosen.penalty).held_out - bags.y[bags.folds[0]]
    assert errors[chosen.mix] == pytest.approx(np.square(wrong).sum(), rel=1e-2)
    noisy = bag(bags.x, y + 9 * rng.standard_normal(y.shape), None, 4, False, default_rng(1))
    assert choose(noisy, 0, shape, default_rng(3), RUN).penalty > chosen.penalty


@pytest.mark.parametrize("start", [1e-6, 1e3])
def test_the_penalty_is_refined_from_either_side(start):
    bags = table(n=150, outputs=1)
    bags.y[...] += 0.5 * default_rng(5).standard_normal(bags.y.shape)
    problem = DualRidge(bags, (0,), shaped(bags, (0,)), map)

    def error(s):
        return np.square(problem.fit(0, s).held_out - bags.y[bags.folds[0]]).sum()

    refined = refined_penalty(bags, 0, problem, start, RUN)
    assert error(refined) < error(start)
    assert error(refined) <= min(error(refined * 10), error(refined / 10))
    assert refined_penalty(bags, 0, problem, start, NO_TIME) == start


def test_without_noise_the_penalty_falls_only_as_far_as_single_precision_reaches():
    bags = table(n=200, outputs=1)
    smooth = bag(bags.x, bags.x[:, :1] ** 2, None, 3, False, default_rng(1))
    problem = DualRidge(smooth, (0,), shaped(smooth, (0,)), map)
    refined = refined_penalty(smooth, 0, problem, 1e-3, RUN)
    assert refined >= SMALLEST_PENALTY * 200


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("most", [10, 1000])
def test_a_fit_predicts_out_of_fold_what_its_layers_do(draws, most):
    sizes = replace(DRAWS[draws], most_centres=most, drawn_centres=25)
    bags = with_own_fits(table(outputs=2, sizes=sizes))
    metrics = (np.eye(D),) * len(bags.groups)
    fit = fit_kernel(bags, metrics, default_rng(0), RUN)
    raw = np.zeros((len(bags.y), len(bags.members), 2))
    for layer in fit.layers:
        assert layer.features.width == (25 if most == 10 else len(bags.seen[layer.group]))
        predicted = layer.features.between(bags.x[:, :-1], layer.features.centres) @ layer.C
        for i, k in enumerate(layer.group):
            raw[:, k] = predicted[:, 2 * i : 2 * i + 2] + layer.c[2 * i : 2 * i + 2]
    np.testing.assert_allclose(fit.out_of_fold, bags.out_of_fold(raw), atol=1e-3)
    error = np.square(fit.out_of_fold - bags.y[bags.held_out]).mean()
    assert error < 0.7 * bags.y.var(axis=0).mean()
    assert fit_kernel(bags, metrics, default_rng(0), NO_TIME) is None


def test_memory_does_not_grow_with_rows_times_centres():
    sizes = Sizes(most_centres=100, drawn_centres=200, batch_rows=256)
    bags = table(n=20_000, outputs=1, sizes=sizes)
    bumps = shaped(bags, bags.groups[0])
    tracemalloc.start()
    PrimalRidge(bags, bags.groups[0], bumps, map).fit(0, 0.1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * len(bags.y) * bumps.width * np.dtype(np.float32).itemsize


@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_bumps_among_rows_are_the_same_strip_by_strip(mix):
    X = default_rng(0).standard_normal((50, D))
    bumps = Bumps(X, measured(X[:25], X[25:], np.eye(D), np.zeros(D)), 1.0, mix)
    K = bumps_among(bumps, X, map, strip_rows=16)
    np.testing.assert_allclose(K, bumps.between(X, X), atol=1e-5)


@pytest.mark.parametrize("stage", ["choice", "dual", "primal"])
def test_distances_of_wide_rows_are_given_up_strip_by_strip(monkeypatch, stage):
    # Strips of one row: with time for three of them, no more than those are computed.
    monkeypatch.setattr(kernel, "STRIP_ENTRIES", 1)
    computed = []
    both, between = Distances.both, Bumps.between
    monkeypatch.setattr(Distances, "both", lambda *own: computed.append(1) or both(*own))
    monkeypatch.setattr(Bumps, "between", lambda *own: computed.append(1) or between(*own))
    few = Sizes(most_centres=20, drawn_centres=10)
    bags = table(sizes=few if stage == "primal" else SIZES)
    bumps = shaped(bags, bags.groups[0])
    ridge = DualRidge if stage == "dual" else PrimalRidge
    stages = {"choice": lambda: choose(bags, 0, bumps, default_rng(0), replace(RUN, deadline=3.0))}
    run = stages.get(stage, lambda: ridge(bags, bags.groups[0], bumps, map, deadline=3.0))
    install(monkeypatch, Clock())
    with pytest.raises(OutOfTimeError):
        run()
    assert len(computed) == 3


def test_a_sample_is_of_different_rows_and_prefers_heavy_ones():
    w = np.ones(40)
    w[10:15] = 1e6
    rows = np.arange(5, 35)
    sample = sampled(rows, w, 12, default_rng(0))
    assert len(set(sample)) == 12
    assert set(range(10, 15)) <= set(sample) <= set(rows)
    np.testing.assert_array_equal(sampled(rows, w, 30, default_rng(0)), rows)
