"""Linear members: ridge regression on columns, and its dual form where rows are fewer."""

import tracemalloc

import numpy as np
import pytest
from numpy.random import default_rng
from small_bags import RUN, ridge_by_hand

from rfrboost._auto import layer
from rfrboost._auto.bags import bag, bag_apart
from rfrboost._auto.layer import column_solver, linear_layers, member_residuals
from rfrboost._auto.linear import row_solver
from rfrboost._auto.members import fit_linear, held_out_loss
from rfrboost._model.losses import BinaryLogLoss, SquaredError
from rfrboost._model.network import centered
from rfrboost._numerics.least_squares import Moments, ridge, ridge_of_rows
from rfrboost._numerics.sizes import SIZES

PENALTIES = (1e-6, 1e-2, 3.0)


def table(n, D, n_bags=3, weighted=False, outputs=2, sizes=SIZES):
    """Bags of a noisy linear target of the first columns."""
    rng = default_rng(0)
    X = rng.standard_normal((n, D)) + rng.standard_normal(D)
    y = X[:, : min(D, 5)].sum(axis=1, keepdims=True) + rng.standard_normal((n, outputs))
    w = rng.uniform(0.2, 3.0, n) if weighted else None
    if n_bags == 0:
        held = (centered(X[:10], np.zeros(D)), y[:10])
        w = None if w is None else w[10:]
        return bag_apart(centered(X[10:], np.zeros(D)), y[10:], w, held, rng, sizes)
    return bag(centered(X, np.zeros(D)), y, w, n_bags, False, rng, sizes)


def constants(bags, loss):
    start = [loss.start(bags.y[rows], bags.w[rows]) for rows, _ in map(bags.split, bags.members)]
    return np.tile(np.stack(start), (len(bags.y), 1, 1))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("held", [slice(0, 0), slice(0, 6), slice(9, 20), slice(20, 30)])
@pytest.mark.parametrize("shape", [(30, 50), (30, 4), (30, 30)])
def test_the_dual_form_solves_the_same_problem(shape, held, weighted):
    rng = default_rng(1)
    F = rng.standard_normal(shape) + 3.0
    R = rng.standard_normal((len(F), 2))
    w = rng.uniform(0.1, 5.0, len(F)) if weighted else np.ones(len(F))
    kept = np.delete(np.arange(len(F)), held)
    A, c = ridge_of_rows(F @ F.T, kept, w, R, PENALTIES)
    assert not A[held].any()
    for i, penalty in enumerate(PENALTIES):
        own = slice(2 * i, 2 * i + 2)
        by_hand, intercept = ridge_by_hand(F[kept], R[kept], w[kept], penalty)
        np.testing.assert_allclose(F.T @ A[:, own], by_hand, atol=1e-6)
        np.testing.assert_allclose(c[own], intercept, atol=1e-6)
        moments = Moments(F.shape[1], 2)
        moments.add(F[kept], R[kept], w[kept])
        primal, _ = ridge(moments, penalty)
        np.testing.assert_allclose(F.T @ A[:, own], primal, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_bags", [0, 1, 3])
@pytest.mark.parametrize("shape", [(60, 90), (90, 20)])
def test_members_are_ridge_regressions_without_the_rows_they_hold_out(shape, n_bags, weighted):
    """By either solver, each member's coefficients are those of its own rows alone."""
    bags = table(*shape, n_bags=n_bags, weighted=weighted)
    loss = SquaredError()
    start = constants(bags, loss)
    R = np.hstack([member_residuals(bags, start, k, loss) for k in bags.members])
    solved = [solver(bags, R, map)(PENALTIES) for solver in (column_solver, row_solver)]
    for i, penalty in enumerate(PENALTIES):
        for k in bags.members:
            rows, _ = bags.split(k)
            C, c = ridge_by_hand(
                bags.x[rows, :-1], R[rows, 2 * k : 2 * k + 2], bags.w[rows], penalty
            )
            own = slice(2 * (i * len(bags.members) + k), 2 * (i * len(bags.members) + k) + 2)
            for found, intercepts in solved:
                np.testing.assert_allclose(found[:, own], C, atol=1e-5)
                np.testing.assert_allclose(intercepts[own], c, atol=1e-5)


@pytest.mark.parametrize(("shape", "form"), [((60, 90), "row"), ((60, 39), "column")])
def test_the_form_with_fewer_equations_is_chosen(monkeypatch, shape, form):
    other = {"row": "column_solver", "column": "row_solver"}[form]
    monkeypatch.setattr(layer, other, None)
    bags = table(*shape)
    next(linear_layers(bags, constants(bags, SquaredError()), SquaredError(), PENALTIES, map))


@pytest.mark.parametrize("at_once", [1, 2, 100])
@pytest.mark.parametrize("loss", [SquaredError(), BinaryLogLoss()])
def test_the_best_penalty_is_kept_however_many_are_fitted_at_once(monkeypatch, at_once, loss):
    bags = table(60, 90, outputs=1)
    if isinstance(loss, BinaryLogLoss):
        bags.y[...] = bags.y > 0
    start = constants(bags, loss)
    monkeypatch.setattr(layer, "PREDICTIONS_AT_ONCE", at_once * start.size)
    best, raw = fit_linear(bags, start, loss, PENALTIES, RUN)
    each = [fit_linear(bags, start, loss, (penalty,), RUN)[0].loss for penalty in PENALTIES]
    assert best.loss == pytest.approx(min(each), rel=1e-9)
    assert best.penalty == PENALTIES[int(np.argmin(each))]
    assert best.loss == pytest.approx(held_out_loss(bags, raw, loss), rel=1e-12)
    ((own,),) = best.layers
    moved = start + (bags.x[:, :-1] @ own.C + own.c).reshape(start.shape)
    np.testing.assert_allclose(raw, moved, atol=1e-9)
    np.testing.assert_allclose(best.out_of_fold, bags.out_of_fold(raw), atol=1e-12)


def test_without_a_linear_signal_there_is_no_layer():
    bags = table(60, 90, outputs=1)
    bags.y[...] = default_rng(3).standard_normal(bags.y.shape)
    start = constants(bags, SquaredError())
    best, raw = fit_linear(bags, start, SquaredError(), (1e-6,), RUN)
    assert best.layers == ()
    assert raw is start


@pytest.mark.parametrize(("shape", "outputs"), [((60, 4000), 1), ((400, 10), 100)])
def test_memory_is_a_small_multiple_of_the_data(monkeypatch, shape, outputs):
    """Neither a matrix of columns by columns, nor predictions of all penalties at a time."""
    bags = table(*shape, outputs=outputs)
    start = constants(bags, SquaredError())
    penalties = tuple(10.0 ** np.arange(-6, 1, 0.5))
    monkeypatch.setattr(layer, "PREDICTIONS_AT_ONCE", start.size)
    tracemalloc.start()
    try:
        fit_linear(bags, start, SquaredError(), penalties, RUN)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * (bags.x.nbytes + start.nbytes)
