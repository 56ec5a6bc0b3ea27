"""Heads against scikit-learn's solvers, and the theorem on the constrained gradient fit."""

import numpy as np
import pytest
from model_zoo import classification, moments_of, regression
from numpy.random import default_rng
from sklearn.linear_model import (
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from sklearn.preprocessing import StandardScaler

from rfrboost import Huber, Loss, Quantile, RFRBoostClassifier, RFRBoostRegressor
from rfrboost._numerics.least_squares import solve


@pytest.mark.parametrize("l2", [0.0, 1e-6, 0.1])
@pytest.mark.parametrize("outputs", [0, 3])
def test_no_layers_is_ridge_regression(l2, outputs):
    X, y = regression(outputs=outputs)
    w = default_rng(1).uniform(0.5, 2, len(X))
    model = RFRBoostRegressor(0, l2_head=l2).fit(X, y, sample_weight=w)
    ridge = (Ridge(alpha=w.sum() * l2) if l2 else LinearRegression()).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(model.predict(X), ridge.predict(X), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("l2", [1e-4, 0.05])
def test_no_layers_is_logistic_regression(classes, l2):
    X, y = classification(classes=classes)
    w = default_rng(1).uniform(0.5, 2, len(X))
    model = RFRBoostClassifier(0, l2_head=l2).fit(X, y, sample_weight=w)
    C = 1 / (2 * w.sum() * l2)
    reference = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(model.predict_proba(X), reference.predict_proba(X), atol=1e-6)


def test_the_large_problems_tolerance_is_enough():
    """Above the size where heads are polished, L-BFGS alone must be close to the optimum."""
    X, y = classification(n=6000, columns=20, classes=5)
    model = RFRBoostClassifier(0, l2_head=1e-4).fit(X, y)
    reference = LogisticRegression(C=1 / (2 * 6000 * 1e-4), tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), reference.predict_proba(X), atol=1e-3)


def test_no_layers_is_poisson_regression():
    X, _ = regression(300)
    y = default_rng(0).poisson(np.exp(0.5 * X[:, 0]))
    model = RFRBoostRegressor(0, loss="poisson", l2_head=0.05).fit(X, y)
    # scikit-learn halves the penalty: ½α‖w‖².
    reference = PoissonRegressor(alpha=0.1, tol=1e-9, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.predict(X), reference.predict(X), rtol=1e-5)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_no_layers_is_quantile_regression(level):
    X, y = regression(400)
    model = RFRBoostRegressor(0, loss="quantile", quantile=level, l2_head=0).fit(X, y)
    reference = QuantileRegressor(quantile=level, alpha=0).fit(X, y)
    pinball = lambda p: np.mean(np.maximum(level * (y - p), (level - 1) * (y - p)))  # noqa: E731
    assert pinball(model.predict(X)) <= pinball(reference.predict(X)) * (1 + 1e-3)


def test_no_layers_is_huber_regression():
    X, y = regression(300)
    y = y + 30 * (default_rng(0).random(300) < 0.05)
    reference = HuberRegressor(epsilon=1.35, alpha=0, max_iter=1000, tol=1e-10).fit(X, y)
    model = RFRBoostRegressor(0, loss=Huber(1.35 * reference.scale_), l2_head=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), reference.predict(X), atol=1e-3)


def test_robust_losses_resist_outliers():
    X, y = regression(400)
    spoiled = y + 100 * (default_rng(0).random(400) < 0.03)
    error = {}
    for loss in ("squared_error", "huber", "quantile"):
        model = RFRBoostRegressor(4, loss=loss, n_features=64, random_state=0).fit(X, spoiled)
        error[loss] = np.mean(np.abs(model.predict(X) - y))
    assert error["huber"] < 0.5 * error["squared_error"]
    assert error["quantile"] < 0.5 * error["squared_error"]


class ScaledSquare(Loss):
    """Squared error without its closed form, as a user would write it."""

    def value(self, raw, y):
        return np.sum((raw - y) ** 2, axis=1)

    def gradient(self, raw, y):
        return 2 * (raw - y)


@pytest.mark.parametrize("outputs", [0, 2])
def test_a_users_loss_goes_the_general_way_to_the_same_model(outputs):
    """l = ‖r‖² has the very objective of the ridge head, so every layer must agree."""
    X, y = regression(outputs=outputs)
    X = StandardScaler().fit_transform(X)
    shared = {"n_features": 20, "l2_step": 1e-3, "random_state": 0}
    closed = RFRBoostRegressor(3, **shared).fit(X, y)
    general = RFRBoostRegressor(3, **shared, loss=ScaledSquare()).fit(X, y)
    # Up to the line search's small penalty, which the closed form does without.
    np.testing.assert_allclose(general.predict(X), closed.predict(X), atol=1e-3)
    steps = [[h["step_length"] for h in m.history_] for m in (general, closed)]
    np.testing.assert_allclose(steps[0], steps[1], rtol=1e-3)


def test_quantile_levels_cover_what_they_say():
    X, y = regression(1500)
    for level in (0.1, 0.9):
        loss = Quantile(level, 1e-3)
        model = RFRBoostRegressor(3, loss=loss, n_features=40, random_state=0).fit(X, y)
        assert np.mean(y <= model.predict(X)) == pytest.approx(level, abs=0.02)


@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_outputs_of_unlike_scale_are_covered_alike(scale):
    X, y = regression(600)
    Y = np.column_stack([y, scale * y])
    model = RFRBoostRegressor(2, loss="quantile", quantile=0.9, n_features=40, random_state=0)
    covered = np.mean(model.fit(X, Y).predict(X) >= Y, axis=0)
    np.testing.assert_allclose(covered, 0.9, atol=0.03)


@pytest.mark.parametrize(("n", "p"), [(60, 5), (200, 20)])
def test_the_theorem_on_the_constrained_fit(n, p):
    """Theorem theoremConstrainedLeastSquaresL2Dmu: among all A with ‖Af‖ ≤ 1 none has a larger
    inner product with the gradient than the normalised least-squares fit."""
    rng = default_rng(0)
    F, G = rng.standard_normal((n, p)), rng.standard_normal((n, 3))
    moments = moments_of(F, G)
    A = solve(moments.ff, 0.0, moments.fr).T
    np.testing.assert_allclose(A, np.linalg.lstsq(F, G, rcond=None)[0].T, rtol=1e-8)
    norm = lambda A: np.sqrt(np.mean(np.sum((F @ A.T) ** 2, axis=1)))  # noqa: E731
    inner = lambda A: np.mean(np.sum((F @ A.T) * G, axis=1))  # noqa: E731
    best = inner(A / norm(A))
    for _ in range(200):
        other = A + rng.standard_normal(A.shape) * rng.choice([0.01, 0.1, 1.0])
        assert inner(other / norm(other)) <= best + 1e-12
    # And it is the least-squares fit under the same constraint.
    misfit = lambda A: np.mean(np.sum((G - F @ A.T) ** 2, axis=1))  # noqa: E731
    for _ in range(200):
        other = A + rng.standard_normal(A.shape) * 0.1
        assert misfit(A / norm(A)) <= misfit(other / norm(other)) + 1e-12
