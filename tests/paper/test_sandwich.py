"""Each closed form against a brute-force Kronecker solution."""

import numpy as np
import pytest
from model_zoo import least_squares_problem, moments_of

from rfrboost._paper.sandwich import sandwich_dense, sandwich_diagonal, sandwich_scalar

SHAPES = [
    pytest.param(60, 7, 5, 1, id="tall, one output"),
    pytest.param(60, 7, 5, 3, id="tall, three outputs"),
    pytest.param(6, 11, 5, 1, id="wide, one output"),
    pytest.param(6, 11, 5, 3, id="wide, three outputs"),
    pytest.param(60, 4, 2, 5, id="more outputs than D"),
    pytest.param(40, 6, 20, 18, id="many outputs"),
]
PENALTIES = [1e-3, 0.7]


def objective(A, F, R, W, w, l2):
    """J(A) = (1/n) Σ w‖r − WᵀAf‖² + λ‖A‖²."""
    residual = R - F @ A.T @ W
    return (w @ residual**2).sum() / w.sum() + l2 * np.sum(A**2)


def kronecker_solution(F, R, W, w, l2):
    """vec(A) from the normal equations written out: no structure used."""
    G, B = F.T @ (w[:, None] * F), W @ (R.T @ (w[:, None] * F))
    system = np.kron(W @ W.T, G) + w.sum() * l2 * np.eye(B.size)
    return np.linalg.solve(system, B.ravel()).reshape(B.shape)


@pytest.mark.parametrize("l2", PENALTIES)
@pytest.mark.parametrize(("n", "p", "D", "d"), SHAPES)
def test_dense_equals_kronecker(n, p, D, d, l2):
    F, R, W, w = least_squares_problem(n, p, D, d)
    C, U = sandwich_dense(moments_of(F, R, w), W, l2)
    np.testing.assert_allclose(U @ C.T, kronecker_solution(F, R, W, w, l2), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("n", "p", "D", "d"), SHAPES)
def test_dense_equals_the_theorems_spectral_formula(n, p, D, d):
    F, R, W, _ = least_squares_problem(n, p, D, d)
    l2 = 0.05
    SW, U = np.linalg.eigh(W @ W.T)
    SF, V = np.linalg.eigh(F.T @ F)
    A = U @ ((U.T @ W @ R.T @ F @ V) / (n * l2 + SW[:, None] * SF)) @ V.T
    C, basis = sandwich_dense(moments_of(F, R), W, l2)
    np.testing.assert_allclose(basis @ C.T, A, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("l2", PENALTIES)
@pytest.mark.parametrize(("n", "p", "D", "d"), SHAPES)
def test_diagonal_equals_least_squares_on_its_columns(n, p, D, d, l2):
    F, R, W, w = least_squares_problem(n, D, D, d)
    # The prediction is linear in diag(A): one design column an entry, outputs stacked.
    design = np.einsum("nk,kd->ndk", F, W).reshape(-1, D)
    weights = np.repeat(w, d)
    system = design.T @ (weights[:, None] * design) + w.sum() * l2 * np.eye(D)
    expected = np.linalg.solve(system, design.T @ (weights * R.ravel()))
    np.testing.assert_allclose(sandwich_diagonal(moments_of(F, R, w), W, l2), expected, rtol=1e-8)


@pytest.mark.parametrize("l2", PENALTIES)
@pytest.mark.parametrize(("n", "p", "D", "d"), SHAPES)
def test_scalar_equals_one_column_least_squares(n, p, D, d, l2):
    F, R, W, w = least_squares_problem(n, D, D, d)
    column, weights = (F @ W).ravel(), np.repeat(w, d)
    expected = weights * column @ R.ravel() / (weights * column @ column + w.sum() * l2)
    assert sandwich_scalar(moments_of(F, R, w), W, l2) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("form", ["scalar", "diagonal", "dense"])
def test_no_neighbour_is_better(form):
    F, R, W, w = least_squares_problem(50, 5, 5, 2)
    moments, l2 = moments_of(F, R, w), 0.1
    if form == "dense":
        C, U = sandwich_dense(moments, W, l2)
        A = U @ C.T
    elif form == "diagonal":
        A = np.diag(sandwich_diagonal(moments, W, l2))
    else:
        A = sandwich_scalar(moments, W, l2) * np.eye(5)
    # A scalar is penalised once, not once an entry of its multiple of the identity.
    penalty = l2 / 5 if form == "scalar" else l2
    pattern = {"scalar": np.eye(5), "diagonal": np.eye(5), "dense": np.ones((5, 5))}[form]
    rng = np.random.default_rng(1)
    for _ in range(20):
        step = rng.standard_normal() if form == "scalar" else rng.standard_normal((5, 5))
        other = A + 1e-3 * pattern * step
        assert objective(A, F, R, W, w, penalty) <= objective(other, F, R, W, w, penalty)


def test_a_head_of_zeros_gives_a_step_of_zeros():
    F, R, W, _ = least_squares_problem(30, 4, 4, 2)
    C, U = sandwich_dense(moments_of(F, R), 0 * W, 0.1)
    assert (U @ C.T == 0).all()
    assert (sandwich_diagonal(moments_of(F, R), 0 * W, 0.1) == 0).all()
    assert sandwich_scalar(moments_of(F, R), 0 * W, 0.0) == 0.0
