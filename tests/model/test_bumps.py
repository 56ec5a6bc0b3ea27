"""Bumps: distances, values and derivatives, against the plainest computation of each."""

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.spatial.distance import cdist

from rfrboost._model.bumps import Bumps, Distances, bumps_of, measured, two_valued
from rfrboost._model.network import centered

D = 5
METRICS = {
    "identity": np.eye(D),
    "full": default_rng(1).standard_normal((D, D)),
    "diagonal": default_rng(2).uniform(0.2, 3.0, D),
}


def rows(n, seed=0):
    """Rows of which the last two columns have two values each."""
    rng = default_rng(seed)
    X = rng.standard_normal((n, D))
    X[:, -2] = 0.7 * (X[:, -2] > 0)
    X[:, -1] = np.where(X[:, -1] > 0.5, 3.0, -2.0)
    return X


def as_matrix(L):
    return np.diag(L) if L.ndim == 1 else L


def bumps_in(L, mix, reach=1.5, n_centres=7):
    X = rows(60)
    distances = measured(X[:30], X[30:], L, two_valued(X))
    return Bumps(X[:n_centres], distances, reach, mix)


@pytest.mark.parametrize("name", METRICS)
def test_the_euclidean_distance_is_that_of_stretched_rows(name):
    L, A, B = METRICS[name], rows(20), rows(9, seed=3)
    distances = Distances(L, np.zeros(D), euclidean_unit=2.5)
    expected = cdist(A @ as_matrix(L), B @ as_matrix(L)) / 2.5
    np.testing.assert_allclose(distances.euclidean(A, B), expected, atol=2e-3)
    apart = expected > 0.1
    np.testing.assert_allclose(distances.euclidean(A, B)[apart], expected[apart], rtol=1e-4)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("n", [20, 150])
def test_the_absolute_distance_is_the_city_block_with_two_valued_columns_exact(name, n):
    L, A, B = METRICS[name], rows(n), rows(9, seed=3)
    scales = np.linalg.norm(as_matrix(L), axis=1)
    expected = cdist(A * scales, B * scales, "cityblock") / 2.5
    for spans in (two_valued(rows(200)), np.zeros(D)):
        distances = Distances(L, spans, absolute_unit=2.5)
        np.testing.assert_allclose(distances.absolute(A, B), expected, rtol=1e-4, atol=1e-3)


def test_units_are_medians_of_pairs_that_differ():
    X = rows(40)
    A, B = X[:20].copy(), X[20:]
    A[:7] = B[:7]
    L = METRICS["full"]
    distances = measured(A, B, L, np.zeros(D))
    apart = np.linalg.norm((A - B)[7:] @ L, axis=1)
    assert distances.euclidean_unit == pytest.approx(np.median(apart))
    absolute = (np.abs(A - B) * np.linalg.norm(L, axis=1)).sum(axis=1)[7:]
    assert distances.absolute_unit == pytest.approx(np.median(absolute))


def test_rows_that_are_all_equal_have_a_unit_too():
    X = np.ones((10, D))
    distances = measured(X, X, np.eye(D), two_valued(X))
    assert (distances.euclidean_unit, distances.absolute_unit) == (1.0, 1.0)
    assert not distances.absolute(X, X).any()


def test_columns_of_two_values():
    X = np.column_stack([[1, 1, 4], [2, 2, 2], [1, 2, 3], [0, -5, 0]]).astype(float)
    np.testing.assert_array_equal(two_valued(X), [3, 0, 0, 5])


@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
def test_a_bump_is_the_exponential_of_minus_the_distance(mix):
    bumps = bumps_in(METRICS["full"], mix)
    X = rows(30, seed=3)
    out = np.empty((30, 7), np.float32, order="F")
    bumps(centered(X, np.zeros(D)), out)
    euclidean = bumps.distances.euclidean(X, bumps.centres)
    absolute = bumps.distances.absolute(X, bumps.centres)
    expected = (1 - mix) * np.exp(-euclidean / 1.5) + mix * np.exp(-absolute / 1.5)
    np.testing.assert_allclose(out, expected, rtol=1e-5)
    assert (out <= bumps.bound).all()
    assert (out > 0).all()


def test_mixing_leaves_distances_as_they_are():
    """They are computed once and used for many settings."""
    euclidean, absolute = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)
    bumps_of(euclidean, absolute, 2.0, 0.5)
    assert (euclidean == 1).all()
    assert (absolute == 2).all()


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
def test_the_pullback_is_the_slope(name, mix):
    bumps, X, step = bumps_in(METRICS[name], mix), rows(40, seed=3) + 0.05, 1e-2
    # Away from the kinks, which are at the coordinates of centres.
    X = X[(np.abs(X[:, None] - bumps.centres) > 2 * step).all(axis=(1, 2))]
    assert len(X) > 10
    cotangent = default_rng(4).standard_normal((len(X), bumps.width))
    actual = bumps.pullback(centered(X, np.zeros(D)))(cotangent)
    assert actual.shape == X.shape
    for j in range(D):
        shift = np.zeros(D)
        shift[j] = step
        ahead, behind = (bumps.between(X + s, bumps.centres).astype(float) for s in (shift, -shift))
        expected = ((ahead - behind) * cotangent).sum(axis=1) / (2 * step)
        np.testing.assert_allclose(
            actual[:, j], expected, atol=2e-3 * np.abs(actual).max(), err_msg=f"column {j}"
        )


@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_at_a_centre_the_slope_is_that_of_the_others(mix):
    """A bump has no slope at its own top; what is returned there is finite."""
    bumps = bumps_in(METRICS["full"], mix)
    at_centres = centered(bumps.centres, np.zeros(D))
    assert np.isfinite(bumps.pullback(at_centres)(np.ones((7, 7)))).all()
    alone = Bumps(bumps.centres[:1], bumps.distances, bumps.reach, mix)
    np.testing.assert_allclose(alone.pullback(at_centres[:1])(np.ones((1, 1))), 0.0, atol=1e-12)


@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("reach", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("name", METRICS)
def test_bumps_among_rows_are_positive_semi_definite(mix, reach, name):
    X = np.vstack([rows(60), rows(10)])  # with copies, whose eigenvalues are 0
    shape = bumps_in(METRICS[name], mix, reach)
    K = shape.between(X, X).astype(float)
    np.testing.assert_allclose(K, K.T, atol=1e-6)
    assert np.linalg.eigvalsh((K + K.T) / 2)[0] > -1e-4


@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_equal_rows_are_at_no_distance_however_far_out(mix):
    X = rows(150)
    X[::3] *= 1e4
    K = bumps_in(METRICS["full"], mix).between(X, X)
    np.testing.assert_allclose(np.diag(K), 1.0, rtol=1e-6)
    np.testing.assert_allclose(K[:, :3], bumps_in(METRICS["full"], mix).between(X, X[:3]))


@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("size", [1e-90, 1e-30, 1e20, 1e35])
def test_bumps_have_no_unit(mix, size):
    X = rows(60)
    expected = bumps_in(np.eye(D), mix).between(X[40:], X[:7])
    distances = measured(size * X[:30], size * X[30:], np.eye(D), two_valued(size * X))
    actual = Bumps(size * X[:7], distances, 1.5, mix).between(size * X[40:], size * X[:7])
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_no_bump_reaches_far_away(mix):
    bumps = bumps_in(METRICS["full"], mix)
    far = 1e50 * rows(10, seed=3)
    assert not bumps.between(far, bumps.centres).any()
    assert not bumps.pullback(centered(far, np.zeros(D)))(np.ones((10, 7))).any()
