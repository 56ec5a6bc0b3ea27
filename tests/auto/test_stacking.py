"""Stacking: non-negative weights for families of predictions."""

from math import inf

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.optimize import minimize, nnls

from rfrboost._auto.assemble import Families, family_weights, mixture, stack
from rfrboost._auto.bags import bag
from rfrboost._auto.members import Boosted
from rfrboost._model.losses import (
    BinaryLogLoss,
    Huber,
    Poisson,
    Quantile,
    SoftmaxLogLoss,
    SquaredError,
)

N = 200


def targets(loss, outputs, seed=0):
    rng = default_rng(seed)
    signal = rng.standard_normal((N, outputs))
    if isinstance(loss, BinaryLogLoss):
        return signal, (signal + rng.logistic(size=signal.shape) > 0).astype(float)
    if isinstance(loss, SoftmaxLogLoss):
        return signal, np.eye(outputs)[np.argmax(signal + rng.gumbel(size=signal.shape), axis=1)]
    if isinstance(loss, Poisson):
        return signal, rng.poisson(np.exp(signal)).astype(float)
    return signal, signal + 0.3 * rng.standard_normal(signal.shape)


def families(signal, seed=1):
    """A good one, a poor one and one that is wrong way round, all of different sizes."""
    rng = default_rng(seed)
    noise = [rng.standard_normal(signal.shape) for _ in range(3)]
    return [0.7 * signal + 0.3 * noise[0], 5 * (0.2 * signal + noise[1]), -signal + noise[2]]


PROBLEMS = {
    "squared error": (SquaredError(), 1),
    "two outputs": (SquaredError(), 2),
    "huber": (Huber(0.5), 1),
    "quantile": (Quantile(0.8, 0.01), 1),
    "poisson": (Poisson(), 1),
    "two classes": (BinaryLogLoss(), 1),
    "four classes": (SoftmaxLogLoss(), 4),
}


def mean_loss(loss, raw, y, w):
    return w @ loss.value(raw, y) / w.sum()


def best_alone(loss, family, y, w):
    """The lowest loss of one family with a free scale ≥ 0 and intercept."""

    def objective(p):
        return mean_loss(loss, p[0] * family + p[1:], y, w)

    d = family.shape[1]
    bounds = [(0, None)] + [(None, None)] * d
    return minimize(objective, np.r_[0.5, np.zeros(d)], method="L-BFGS-B", bounds=bounds).fun


@pytest.mark.parametrize("name", PROBLEMS)
def test_weights_are_not_negative_and_no_family_alone_is_better(name):
    loss, outputs = PROBLEMS[name]
    signal, y = targets(loss, outputs)
    w = default_rng(2).uniform(0.5, 2.0, N)
    raws = families(signal)
    v, b = stack(raws, y, w, loss)
    assert (v >= 0).all()
    assert v[2] <= 0.1 * v[0]
    assert b.shape == (outputs,)
    combined = mean_loss(loss, np.tensordot(v, np.stack(raws), 1) + b, y, w)
    for family in raws:
        assert combined <= best_alone(loss, family, y, w) + 1e-4


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_for_squared_error_they_are_non_negative_least_squares(outputs, weighted):
    loss = SquaredError()
    signal, y = targets(loss, outputs)
    w = default_rng(2).uniform(0.5, 2.0, N) if weighted else np.ones(N)
    raws = families(signal)
    v, b = stack(raws, y, w, loss)
    # An intercept of either sign as two columns, an output each.
    ones = np.tile(np.eye(outputs), (N, 1))
    columns = np.column_stack([*(r.ravel() for r in raws), ones, -ones])
    root = np.sqrt(np.repeat(w, outputs))
    expected, _ = nnls(root[:, None] * columns, root * y.ravel())
    np.testing.assert_allclose(v, expected[:3], atol=2e-3)
    np.testing.assert_allclose(b, expected[3 : 3 + outputs] - expected[3 + outputs :], atol=2e-3)


@pytest.mark.parametrize("seed", range(40))
def test_families_that_are_much_alike_get_their_best_weights(seed):
    rng = default_rng(seed)
    signal = rng.standard_normal((400, 1))
    y = signal + 0.15 * rng.standard_normal((400, 1))
    common = 0.1 * rng.standard_normal((400, 1))
    sizes = rng.uniform(0.02, 0.2, 7)
    raws = [signal + common + size * rng.standard_normal((400, 1)) for size in sizes]
    v, b = stack(raws, y, np.ones(400), SquaredError())
    columns = np.column_stack([*raws, np.ones(400), -np.ones(400)])
    lowest = nnls(columns, y[:, 0])[1] ** 2
    reached = np.square(np.tensordot(v, np.stack(raws), 1) + b - y).sum()
    assert reached <= lowest * (1 + 1e-4)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_unit_of_a_family_does_not_matter(name):
    loss, outputs = PROBLEMS[name]
    signal, y = targets(loss, outputs)
    raws, w = families(signal), np.ones(N)
    v, b = stack(raws, y, w, loss)
    scaled, b_scaled = stack([raws[0] * 8.0, raws[1] / 4.0, raws[2]], y, w, loss)
    here = np.tensordot(v, np.stack(raws), 1) + b
    there = 8 * scaled[0] * raws[0] + scaled[1] / 4 * raws[1] + scaled[2] * raws[2] + b_scaled
    assert np.sqrt(np.mean((here - there) ** 2)) < 0.02 * np.sqrt(np.mean(here**2))


@pytest.mark.parametrize("name", PROBLEMS)
def test_equal_families_share_their_weight(name):
    loss, outputs = PROBLEMS[name]
    signal, y = targets(loss, outputs)
    family = families(signal)[0]
    v, _ = stack([family, family.copy()], y, np.ones(N), loss)
    assert v[0] == pytest.approx(v[1], rel=1e-2)
    assert v.sum() > 0.3


@pytest.mark.parametrize("name", PROBLEMS)
def test_families_that_say_nothing_leave_a_constant(name):
    loss, outputs = PROBLEMS[name]
    _, y = targets(loss, outputs)
    flat = [np.zeros((N, outputs)), np.full((N, outputs), 3.0)]
    v, b = stack(flat, y, np.ones(N), loss)
    raw = np.tensordot(v, np.stack(flat), 1) + b
    assert np.isfinite(raw).all()
    start = np.tile(loss.start(y, np.ones(N)), (N, 1))
    assert mean_loss(loss, raw, y, np.ones(N)) <= mean_loss(loss, start, y, np.ones(N)) + 1e-3


@pytest.mark.parametrize("name", PROBLEMS)
def test_mixtures_add_up_to_one_and_no_other_mixture_is_better(name):
    loss, outputs = PROBLEMS[name]
    signal, y = targets(loss, outputs)
    w = default_rng(2).uniform(0.5, 2.0, N)
    raws = np.stack(families(signal))
    v, b = mixture(raws, y, w, loss)
    assert (v >= 0).all()
    assert v.sum() == pytest.approx(1.0)
    assert not b.any()
    found = mean_loss(loss, np.tensordot(v, raws, 1), y, w)
    others = default_rng(0).dirichlet(np.ones(3), 300)
    least = min(mean_loss(loss, np.tensordot(other, raws, 1), y, w) for other in others)
    assert found <= least + 1e-4 * abs(least)


def test_a_score_chooses_among_stackings_of_all_fewer_and_single_families():
    loss = SquaredError()
    signal, y = targets(loss, 1)
    bags = bag(np.c_[signal, np.ones(N)], y, None, 2, False, default_rng(0))
    raws = [raw[bags.held_out] for raw in families(bags.x[:, :1])]
    linear, *boosted = [Boosted((), raw, 0.0, (), 1.0, ()) for raw in raws]
    all_families = Families(np.zeros((2, 1)), linear, tuple(boosted), None, None)

    def chosen(score, deadline=inf):
        return np.flatnonzero(family_weights(bags, loss, all_families, deadline, score)[0])

    assert list(chosen(None)) == [0, 1]

    def like_the_second(raw):
        """Highest, whatever the scale and shift, for the second family alone."""
        return np.corrcoef(raw.T, raws[1].T)[0, 1]

    assert list(chosen(like_the_second)) == [1]
    # Nothing but the stacking of all families is tried after the deadline.
    np.testing.assert_array_equal(chosen(like_the_second, -inf), chosen(None, -inf))
    assert list(chosen(lambda raw: 0.0)) == [0, 1]
