"""Losses: derivatives, convexity, starting points, ranges; and the line search along them."""

from typing import get_args

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.optimize import minimize_scalar

from rfrboost._model.loss import LINKS, Link, Loss
from rfrboost._model.losses import (
    BUILT_IN,
    BinaryLogLoss,
    Huber,
    LabelsLogLoss,
    Poisson,
    Quantile,
    Quantiles,
    SoftmaxLogLoss,
    SquaredError,
    fitted_loss,
    is_built_in,
    loss_names,
    named_loss,
    robust_spread,
    weighted_quantile,
)
from rfrboost._paper.line_search import minimize_convex


class LogCosh(Loss):
    """A loss that a user defines: value and gradient only."""

    def value(self, raw, y):
        return np.sum(np.logaddexp(raw - y, y - raw), axis=1)

    def gradient(self, raw, y):
        return np.tanh(raw - y)


LOSSES = {
    "squared": SquaredError(),
    "huber": Huber(0.7),
    "quantile": Quantile(0.8, 0.3),
    "quantiles": Quantiles(np.array([0.2, 0.9]), 0.3),
    "poisson": Poisson(),
    "binary": BinaryLogLoss(),
    "labels": LabelsLogLoss(),
    "softmax": SoftmaxLogLoss(),
    "user": LogCosh(),
}


def data(name: str, n: int = 40):
    rng = default_rng(0)
    d = {"squared": 2, "quantiles": 2, "labels": 3, "softmax": 4}.get(name, 1)
    raw, y = rng.standard_normal((n, d)), rng.standard_normal((n, d))
    if name == "quantiles":
        y = y[:, :1]
    if name == "poisson":
        y = rng.poisson(2.0, (n, d)).astype(float)
    if name in ("binary", "labels"):
        y = rng.integers(0, 2, (n, d)).astype(float)
    if name == "softmax":
        y = np.eye(d)[rng.integers(0, d, n)]
    return raw, y, rng.standard_normal((n, d))


@pytest.mark.parametrize("name", LOSSES)
def test_the_gradient_is_the_derivative_of_the_value(name):
    loss, (raw, y, _), e = LOSSES[name], data(name), 1e-6
    numeric = np.empty_like(raw)
    for k in range(raw.shape[1]):
        step = np.zeros_like(raw)
        step[:, k] = e
        numeric[:, k] = (loss.value(raw + step, y) - loss.value(raw - step, y)) / (2 * e)
    np.testing.assert_allclose(loss.gradient(raw, y), numeric, atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_slope_and_curvature_are_derivatives_along_the_move(name):
    loss, (raw, y, move), e = LOSSES[name], data(name), 1e-6
    slope, curvature = loss.slope_and_curvature(raw, y, move)
    np.testing.assert_allclose(slope, np.sum(loss.gradient(raw, y) * move, axis=1), atol=1e-12)
    ahead, behind = (np.sum(loss.gradient(raw + s * move, y) * move, 1) for s in (e, -e))
    smooth = np.abs(ahead + behind - 2 * slope) < 1e-9  # a kink has no second derivative
    assert smooth.mean() > 0.9
    np.testing.assert_allclose(
        curvature[smooth], ((ahead - behind) / (2 * e))[smooth], rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("name", LOSSES)
def test_value_and_gradient_agree_with_each_alone(name):
    loss, (raw, y, _) = LOSSES[name], data(name)
    value, gradient = loss.value_and_gradient(raw, y)
    np.testing.assert_allclose(value, loss.value(raw, y), rtol=1e-12)
    np.testing.assert_allclose(gradient, loss.gradient(raw, y), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_convex(name):
    loss, (raw, y, move) = LOSSES[name], data(name)
    middle = loss.value(raw + 0.5 * move, y)
    assert (middle <= 0.5 * (loss.value(raw, y) + loss.value(raw + move, y)) + 1e-12).all()


@pytest.mark.parametrize("name", ["squared", "poisson", "binary", "softmax"])
def test_the_start_is_the_best_constant(name):
    loss, (_, y, _) = LOSSES[name], data(name)
    w = default_rng(1).uniform(0.5, 2, len(y))
    start = loss.start(y, w)
    gradient = w @ loss.gradient(np.tile(start, (len(y), 1)), y) / w.sum()
    np.testing.assert_allclose(gradient, 0, atol=1e-12)


@pytest.mark.parametrize(("loss", "level"), [(Huber(1e-9), 0.5), (Quantile(0.8, 1e-9), 0.8)])
def test_the_start_of_a_kinked_loss_is_a_quantile(loss, level):
    y = default_rng(0).standard_normal((101, 1))
    expected = np.quantile(y, level, method="inverted_cdf")
    assert loss.start(y, np.ones(101))[0] == expected


def test_losses_stay_finite_far_out():
    for name, loss in LOSSES.items():
        raw, y, move = data(name)
        for scale in (1e3, 1e8):
            assert np.isfinite(loss.gradient(scale * raw, y)).all()
            assert np.isfinite(loss.value(scale * raw, y)).all()
            assert np.isfinite(loss.slope_and_curvature(scale * raw, y, move)).all()


def test_softmax_of_two_classes_is_the_binary_loss():
    rng = default_rng(0)
    raw, labels = rng.standard_normal((30, 1)), rng.integers(0, 2, 30)
    two = np.hstack([np.zeros_like(raw), raw])
    y1, y2 = labels[:, None].astype(float), np.eye(2)[labels]
    np.testing.assert_allclose(SoftmaxLogLoss().value(two, y2), BinaryLogLoss().value(raw, y1))
    np.testing.assert_allclose(SoftmaxLogLoss().predict(two), BinaryLogLoss().predict(raw))


def test_the_loss_of_several_labels_is_the_sum_of_their_binary_losses():
    raw, y, _ = data("labels")
    loss, columns = LabelsLogLoss(), [[j] for j in range(raw.shape[1])]
    by_label = [BinaryLogLoss().value(raw[:, j], y[:, j]) for j in columns]
    np.testing.assert_allclose(loss.value(raw, y), np.sum(by_label, axis=0))
    p = [BinaryLogLoss().predict(raw[:, j])[:, 1] for j in columns]
    np.testing.assert_array_equal(loss.predict(raw), np.column_stack(p))
    starts = [BinaryLogLoss().start(y[:, j], np.ones(len(y))) for j in columns]
    np.testing.assert_allclose(loss.start(y, np.ones(len(y))), np.concatenate(starts))
    assert [built_in for built_in in BUILT_IN if built_in.separate_outputs] == [LabelsLogLoss]
    assert not loss.accepts(1)


def test_huber_within_delta_is_squared_error():
    rng = default_rng(0)
    raw, y = rng.uniform(-1, 1, (20, 1)), rng.uniform(-1, 1, (20, 1))
    np.testing.assert_allclose(Huber(3.0).value(raw, y), SquaredError().value(raw, y))


def test_poisson_refuses_negative_counts():
    with pytest.raises(ValueError, match="y >= 0"):
        Poisson().check(np.array([[1.0], [-1.0]]))


def test_weighted_quantile_is_that_of_repeated_rows():
    rng = default_rng(0)
    y, w = rng.standard_normal((30, 2)), rng.integers(1, 4, 30)
    repeated = np.repeat(y, w, axis=0)
    for level in (0.1, 0.5, 0.9):
        expected = np.quantile(repeated, level, axis=0, method="inverted_cdf")
        np.testing.assert_array_equal(weighted_quantile(y, w.astype(float), level), expected)


@pytest.mark.parametrize("name", LOSSES)
def test_the_line_search_finds_the_minimum(name):
    loss, (raw, y, noise) = LOSSES[name], data(name)
    # Downhill on the whole, uphill for some rows, so that there is a minimum.
    move = 0.5 * noise - loss.gradient(raw, y)
    alpha = minimize_convex(
        lambda a: tuple(float(v.sum()) for v in loss.slope_and_curvature(raw + a * move, y, move))
    )
    best = minimize_scalar(lambda a: loss.value(raw + a * move, y).sum(), bracket=(0, 1), tol=1e-12)
    assert alpha == pytest.approx(best.x, rel=1e-4)


def test_the_line_search_stays_put_where_there_is_no_descent():
    assert minimize_convex(lambda a: (1.0 + a, 1.0)) == 0.0
    assert minimize_convex(lambda a: (0.0, 0.0)) == 0.0


def test_the_line_search_stops_where_there_is_no_minimum():
    """Separable data: the slope never turns, the answer is far out but finite."""
    alpha = minimize_convex(lambda a: (-np.exp(-a), np.exp(-a)))
    assert 1.0 < alpha < 1e3


def test_every_built_in_loss_is_among_those_tested():
    assert {type(loss) for loss in LOSSES.values() if is_built_in(loss)} == set(BUILT_IN)


def test_built_in_losses_have_tags_names_and_links_of_their_own():
    assert len({loss.tag for loss in BUILT_IN}) == len(BUILT_IN)
    names = [loss.name for loss in BUILT_IN if loss.name is not None]
    assert sorted(names) == ["huber", "poisson", "quantile", "squared_error"]
    assert loss_names() == set(names)
    assert set(LINKS) == set(get_args(Link)) == {loss.link for loss in BUILT_IN}


def test_a_class_derived_from_a_built_in_loss_is_not_built_in():
    class Own(Huber):
        pass

    assert is_built_in(Huber(1.0))
    assert not is_built_in(Own(1.0))
    assert not is_built_in(LogCosh())


def test_names_stand_for_losses_and_objects_for_themselves():
    for name in loss_names():
        assert named_loss(name, 0.5).name == name
    assert named_loss("quantile", 0.3) == Quantile(0.3)
    several = named_loss("quantile", [0.3, 0.6])
    assert type(several) is Quantiles
    np.testing.assert_array_equal(several.level, [0.3, 0.6])
    own = LogCosh()
    assert named_loss(own, 0.5) is own


@pytest.mark.parametrize("loss", ["squared_error", "quantile", LogCosh()])
def test_levels_are_checked_whatever_the_loss(loss):
    with pytest.raises(ValueError, match="each larger than the one before"):
        named_loss(loss, (0.9, 0.1))


def test_named_losses_take_their_scale_from_the_targets():
    rng = default_rng(0)
    y, w = rng.standard_normal((50, 2)) * [1.0, 30.0], rng.uniform(0.5, 2.0, 50)
    spread = robust_spread(y, w)
    assert spread.shape == (2,)
    huber = fitted_loss("huber", 0.5, 0.1, 7.0, y, w)
    np.testing.assert_array_equal(huber.delta, 1.345 * spread)
    quantile = fitted_loss("quantile", 0.8, 0.1, 7.0, y, w)
    assert quantile.level == 0.8
    np.testing.assert_array_equal(quantile.smoothing, 0.1 * spread)
    several = fitted_loss("quantile", (0.1, 0.9), 0.1, 7.0, y[:, :1], None)
    assert type(several) is Quantiles
    np.testing.assert_array_equal(several.smoothing, 0.1 * robust_spread(y[:, :1], np.ones(50)))
    assert fitted_loss("squared_error", 0.5, 0.1, 7.0, y, w) == SquaredError()


def test_losses_given_as_objects_keep_their_scale_in_units_of_y():
    y = default_rng(0).standard_normal((50, 1))
    assert fitted_loss(Huber(2.0), 0.5, 0.1, np.array([4.0]), y, None) == Huber(0.5)
    assert fitted_loss(Quantile(0.8, 2.0), 0.5, 0.1, np.array([4.0]), y, None) == Quantile(0.8, 0.5)


@pytest.mark.parametrize(
    ("loss", "outputs"),
    [
        (SquaredError(), {1, 2, 3}),
        (Poisson(), {1, 2, 3}),
        (Huber(1.0), {1, 2, 3}),
        (Huber(np.ones(3)), {3}),
        (Quantile(0.5, 1.0), {1, 2, 3}),
        (Quantile(0.5, np.ones(2)), {2}),
        (Quantiles(np.array([0.1, 0.5, 0.9]), np.ones(1)), {3}),
        (Quantiles(np.array([0.1, 0.9]), np.ones(2)), set()),
        (BinaryLogLoss(), {1}),
        (SoftmaxLogLoss(), {2, 3}),
    ],
    ids=str,
)
def test_losses_know_how_many_outputs_their_fields_suit(loss, outputs):
    assert {d for d in (1, 2, 3) if loss.accepts(d)} == outputs


def test_only_several_levels_say_that_they_share_one_target():
    assert [loss for loss in BUILT_IN if loss.several_levels] == [Quantiles]
    assert not LogCosh().several_levels
