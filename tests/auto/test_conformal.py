"""Conformal prediction on arrays: the definitions by brute force, and what they promise."""

from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from rfrboost._auto.conformal import calibrate, conforming, intervals, variance


def problem(seed, members=3, outputs=2, rows=7, weighted=False, whole=False):
    """Residuals and weights by member, and members' predictions of new rows."""
    rng = default_rng(seed)
    sizes = rng.integers(3, 12, members)
    scores = [np.abs(rng.standard_normal((n, outputs))) for n in sizes]
    weights = [rng.integers(1, 5, n) if weighted else np.ones(n) for n in sizes]
    centres = rng.standard_normal((rows, members, outputs))
    if whole:  # numbers in eighths, so that sums and differences are exact and many are equal
        scores, centres = [np.round(8 * s) / 8 for s in scores], np.round(8 * centres) / 8
    return scores, [w.astype(float) for w in weights], centres


def brute_force(scores, weights, centres, coverage):
    """Every sum and difference of a prediction and a residual, sorted, row by row."""
    mass = np.concatenate(weights)
    mass = mass * len(mass) / mass.sum()
    need = coverage * (len(mass) + 1) - 1e-9
    ends = np.empty((len(centres), centres.shape[2], 2))
    for i, centre in enumerate(centres):
        for j in range(centres.shape[2]):
            for side, sign in ((0, -1.0), (1, 1.0)):
                moved = [sign * mu[j] + s[:, j] for mu, s in zip(centre, scores, strict=True)]
                values = np.concatenate(moved)
                order = np.argsort(values)
                reached = np.cumsum(mass[order]) >= need
                best = values[order][np.argmax(reached)] if reached.any() else np.inf
                ends[i, j, side] = sign * best
    return ends


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    members=st.integers(1, 5),
    coverage=st.floats(0.05, 0.97),
    weighted=st.booleans(),
    whole=st.booleans(),
)
def test_intervals_are_those_of_a_double_loop(seed, members, coverage, weighted, whole):
    scores, weights, centres = problem(seed, members, weighted=weighted, whole=whole)
    found = intervals(calibrate(scores, weights), centres, coverage)
    expected = brute_force(scores, weights, centres, coverage)
    # The ends are found by halving: so exactly and no more.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def test_the_order_statistic_is_that_of_barber_and_others():
    """The ⌈(1 − α)(n + 1)⌉-th smallest, spelt out."""
    scores, weights, centres = problem(3, members=4, outputs=1)
    sums = np.sort(np.concatenate([centres[0, k, 0] + s[:, 0] for k, s in enumerate(scores)]))
    place = ceil(0.8 * (len(sums) + 1))
    found = intervals(calibrate(scores, weights), centres, 0.8)
    assert found[0, 0, 1] == pytest.approx(sums[place - 1], rel=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_whole_weights_are_repeated_rows_up_to_the_new_row(seed):
    """Up to the new row's own weight: that of a mean row, which is lighter among repeated ones."""
    scores, weights, centres = problem(seed, weighted=True)
    repeated = [np.repeat(s, w.astype(int), axis=0) for s, w in zip(scores, weights, strict=True)]
    n, N = sum(map(len, scores)), sum(map(len, repeated))
    ones = [np.ones(len(s)) for s in repeated]
    found = intervals(calibrate(scores, weights), centres, 0.7 * n / (n + 1))
    expected = intervals(calibrate(repeated, ones), centres, 0.7 * N / (N + 1))
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_factor_in_all_weights_changes_nothing(weighted):
    scores, weights, centres = problem(0, weighted=weighted)
    found = intervals(calibrate(scores, weights), centres, 0.8)
    scaled = intervals(calibrate(scores, [1024.0 * w for w in weights]), centres, 0.8)
    np.testing.assert_array_equal(found, scaled)


def test_more_coverage_is_wider_and_too_much_is_infinite():
    scores, weights, centres = problem(1)
    calibration = calibrate(scores, weights)
    widths = [np.diff(intervals(calibration, centres, c)) for c in (0.5, 0.7, 0.9)]
    assert (widths[0] <= widths[1]).all()
    assert (widths[1] <= widths[2]).all()
    n = calibration.total()
    assert np.isfinite(intervals(calibration, centres, n / (n + 1))).all()
    assert np.isinf(intervals(calibration, centres, (n + 0.01) / (n + 1))).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_many_residuals_are_thinned_to_their_quantiles(weighted):
    rng = default_rng(0)
    scores = [np.abs(rng.standard_normal((5000, 2))) for _ in range(3)]
    weights = [rng.uniform(0.1, 2.0, 5000) if weighted else np.ones(5000) for _ in range(3)]
    centres = rng.standard_normal((50, 3, 2))
    whole = calibrate(scores, weights)
    thin = calibrate(scores, weights, most_scores=1000)
    assert [len(s) for s in thin.scores] == [1000] * 3
    assert thin.total() == pytest.approx(whole.total())
    assert thin.fits(3, 2)
    np.testing.assert_allclose(variance(thin), variance(whole), rtol=1e-2)
    for coverage in (0.5, 0.9, 0.99):
        found = intervals(thin, centres, coverage)
        # Each of the thousand stands for a thousandth: so much coverage may come or go.
        less, more = (intervals(whole, centres, coverage + by) for by in (-1e-3, 1e-3))
        assert (less[..., 1] <= found[..., 1]).all()
        assert (found[..., 1] <= more[..., 1]).all()


def test_the_variance_is_the_weighted_mean_of_squares():
    scores, weights, _ = problem(4, weighted=True)
    expected = np.average(np.vstack(scores) ** 2, axis=0, weights=np.concatenate(weights))
    np.testing.assert_allclose(variance(calibrate(scores, weights)), expected, rtol=1e-12)


@pytest.mark.parametrize("members", [1, 3])
def test_sets_are_those_of_a_double_loop(members):
    scores, weights, centres = problem(2, members, outputs=1, weighted=True)
    candidates = np.abs(np.concatenate([centres, centres + 0.5, centres - 0.5], axis=2))
    found = conforming(calibrate(scores, weights), candidates, 0.6)
    mass = np.concatenate(weights)
    mass = mass * len(mass) / mass.sum()
    for i, c in np.ndindex(found.shape):
        worse = np.concatenate([s[:, 0] < candidates[i, k, c] for k, s in enumerate(scores)])
        assert found[i, c] == (mass[worse].sum() < 0.6 * (len(mass) + 1))


def test_split_conformal_covers_exactly():
    """One member: the rank of a new residual among n others is uniform, so coverage is known."""
    rng, n, trials = default_rng(0), 24, 4000
    inside = 0
    for _ in range(trials):
        residuals = np.abs(rng.standard_exponential((n + 1, 1)))
        ends = intervals(calibrate([residuals[:n]], [np.ones(n)]), np.zeros((1, 1, 1)), 0.9)
        inside += residuals[n, 0] <= ends[0, 0, 1]
    expected = ceil(0.9 * (n + 1)) / (n + 1)
    deviation = np.sqrt(expected * (1 - expected) / trials)
    assert abs(inside / trials - expected) < 4 * deviation


def test_cross_conformal_covers_what_it_says():
    """Members are the means of all rows but their fold's: exchangeable, so CV+ must cover."""
    rng, n, folds, trials = default_rng(1), 30, 5, 600
    inside = 0
    fold = np.arange(n) % folds
    for _ in range(trials):
        y = rng.standard_normal(n + 1)
        means = np.array([y[:n][fold != k].mean() for k in range(folds)])
        residuals = [np.abs(y[:n][fold == k] - means[k])[:, None] for k in range(folds)]
        calibration = calibrate(residuals, [np.ones(n // folds)] * folds)
        low, high = intervals(calibration, means[None, :, None], 0.8)[0, 0]
        inside += low <= y[n] <= high
    deviation = np.sqrt(0.8 * 0.2 / trials)
    assert 0.8 - 4 * deviation < inside / trials < 0.8 + 4 * deviation + 2 / n
