"""Moments and solvers: sums over rows, and systems that are singular or badly scaled."""

import numpy as np
import pytest
from model_zoo import moments_of
from numpy.random import default_rng

from rfrboost._numerics.least_squares import Moments, merged, multiply, solve, solve_shifts
from rfrboost._numerics.precision import gram_dtype


def gram(n: int, p: int, seed: int = 0, scale: float = 1.0):
    F = scale * default_rng(seed).standard_normal((n, p))
    return np.asfortranarray(np.tril(F.T @ F)), F


def full(G):
    return np.tril(G) + np.tril(G, -1).T


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_moments_are_weighted_sums_over_rows(dtype):
    rng = default_rng(0)
    F, R, w = rng.standard_normal((50, 6)), rng.standard_normal((50, 2)), rng.uniform(0, 2, 50)
    F = F.astype(dtype)
    moments = moments_of(F, R, w)
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(
        full(moments.ff), F.T @ (w[:, None] * F), rtol=tolerance, atol=tolerance
    )
    np.testing.assert_allclose(moments.fr, F.T @ (w[:, None] * R), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(moments.f, w @ F, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(moments.r, w @ R, rtol=tolerance)
    assert moments.weight == pytest.approx(w.sum())


def test_moments_add_over_batches():
    rng = default_rng(0)
    F, R = rng.standard_normal((50, 6)), rng.standard_normal((50, 2))
    whole = moments_of(F, R)
    batches = Moments(6, 2)
    for s in (slice(0, 7), slice(7, 8), slice(8, 50)):
        batches.add(F[s], R[s], None)
    for name in ("weight", "f", "r", "ff", "fr", "rr"):
        np.testing.assert_allclose(getattr(batches, name), getattr(whole, name), atol=1e-12)


def test_merged_moments_are_those_of_all_rows_and_leave_the_parts_alone():
    rng = default_rng(0)
    F, R = rng.standard_normal((50, 6)), rng.standard_normal((50, 2))
    parts = [moments_of(F[:20], R[:20]), moments_of(F[20:], R[20:])]
    whole = moments_of(F, R)
    for _ in range(2):
        total = merged(parts)
        for name in ("weight", "f", "r", "ff", "fr", "rr"):
            np.testing.assert_allclose(getattr(total, name), getattr(whole, name), atol=1e-12)


def test_centering_equals_centring_the_rows():
    rng = default_rng(0)
    F, R, w = rng.standard_normal((50, 6)) + 3, rng.standard_normal((50, 2)), rng.uniform(1, 2, 50)
    moments = moments_of(F, R, w)
    moments.center()
    centred = moments_of(F - np.average(F, 0, w), R - np.average(R, 0, w), w)
    np.testing.assert_allclose(full(moments.ff), full(centred.ff), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(moments.fr, centred.fr, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(("n", "p"), [(80, 12), (5, 12)])
@pytest.mark.parametrize("columns", [1, 3, 7])
def test_solve_equals_a_dense_solve(n, p, columns, single):
    G, _ = gram(n, p)
    B = default_rng(1).standard_normal((p, columns))
    expected = np.linalg.solve(full(G) + 0.3 * np.eye(p), B)
    np.testing.assert_allclose(solve(G, 0.3, B, single), expected, rtol=1e-8, atol=1e-9)


def test_a_singular_system_has_the_least_squares_answer():
    """λ = 0 and n < p: what can be fitted is fitted exactly."""
    G, F = gram(5, 12)
    r = default_rng(1).standard_normal((5, 1))
    X = solve(G, 0.0, F.T @ r)
    np.testing.assert_allclose(F @ X, r, atol=1e-9)
    # With equal diagonals it would be the pseudo-inverse's; here it is at least of its size.
    assert np.linalg.norm(X) < 3 * np.linalg.norm(np.linalg.pinv(F) @ r)


def test_columns_of_wild_scales_are_solved_for():
    F = default_rng(0).standard_normal((60, 3)) * [1e-30, 1.0, 1e30]
    y = F @ np.array([2e30, 3.0, 4e-30])
    G = np.asfortranarray(F.T @ F)
    np.testing.assert_allclose(F @ solve(G, 0.0, (F.T @ y)[:, None])[:, 0], y, rtol=1e-8)


@pytest.mark.parametrize("G", [np.zeros((3, 3)), np.ones((3, 3)), -1e-14 * np.eye(3)])
def test_systems_without_a_solution_do_not_raise(G):
    assert np.isfinite(solve(np.asfortranarray(G), 0.0, np.ones((3, 1)))).all()


@pytest.mark.parametrize("n_shifts", [3, 20])
def test_shifted_systems(n_shifts):
    G, _ = gram(50, 8)
    shifts = np.linspace(0.1, 5, n_shifts)
    B = default_rng(1).standard_normal((8, n_shifts))
    expected = [
        np.linalg.solve(full(G) + s * np.eye(8), b) for s, b in zip(shifts, B.T, strict=True)
    ]
    np.testing.assert_allclose(solve_shifts(G, shifts, B), np.transpose(expected), rtol=1e-8)


@pytest.mark.parametrize("columns", [1, 4, 9])
def test_multiply_reads_one_triangle(columns):
    G, _ = gram(20, 6)
    B = default_rng(1).standard_normal((6, columns))
    np.testing.assert_allclose(multiply(np.asfortranarray(np.tril(G)), B), full(G) @ B, rtol=1e-12)


def test_single_precision_grams_are_as_good_as_promised():
    """The bound behind gram_dtype, on strongly correlated features."""
    rng = default_rng(0)
    n, p = 4000, 512
    F = np.tanh(rng.standard_normal((n, 3)) @ rng.standard_normal((3, p)) + 1)
    R = np.sin(F[:, :1] * 3) + 0.1 * rng.standard_normal((n, 1))
    l2 = 16 * 2.0**-24 * p
    assert gram_dtype(l2, p, 1.0) == np.float32
    assert gram_dtype(l2 / 2, p, 1.0) == np.float64
    assert gram_dtype(l2, p, np.inf) == np.float64
    fits = []
    for dtype in (np.float32, np.float64):
        F_rounded = F.astype(np.float32).astype(dtype)
        moments = moments_of(F_rounded, R)
        moments.center()
        C = solve(moments.ff, n * l2, moments.fr, single=dtype == np.float32)
        fits.append(F @ C)
    assert np.std(fits[0] - fits[1]) < 1e-3 * np.std(fits[1])
