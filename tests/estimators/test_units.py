"""Units do not matter in automatic fits: neither those of columns nor those of outputs."""

from functools import cache
from typing import ClassVar

import numpy as np
import pytest
from numpy.random import default_rng
from sklearn.base import clone
from sklearn.metrics import r2_score
from small_sizes import with_sizes

from rfrboost import Huber, Loss, Quantile, RFRBoostRegressor, RowBlocks, file_info, load
from rfrboost._numerics.sizes import Sizes

MODEL = RFRBoostRegressor(n_bags=2, random_state=0)

#: rows in blocks that are few are fitted as if they were many
LARGE = Sizes(sampled_rows=100)

#: rescaled numbers round differently, and the draws of random features follow; R² moves by less
CLOSE = 0.01


def rows(n=200, seed=0):
    X = default_rng(seed).standard_normal((n, 6))
    return X, np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]])


def noisy(n=200):
    X, Y = rows(n)
    return X, Y + 0.05 * default_rng(9).standard_normal(Y.shape)


def fitted(model, X, Y):
    return clone(model).fit(X, Y)


def scores_in_units(model, factors, shifts):
    """R² of each output on new rows, if outputs are in other units."""
    X, Y = noisy(300)
    new, truth = rows(1000, seed=1)
    predicted = fitted(model, X, Y * factors + shifts).predict(new)
    return r2_score(truth, (predicted - shifts) / factors, multioutput="raw_values")


@pytest.mark.parametrize("loss", ["squared_error", "huber", "quantile"])
def test_units_of_outputs_do_not_matter(loss):
    model = clone(MODEL).set_params(loss=loss)
    expected = scores_in_units(model, 1.0, 0.0)
    assert expected.min() > 0.5
    for factors, shifts in (([1.0, 10.0], 0.0), ([100.0, 0.01], 0.0), ([1.0, 100.0], [0.0, 1e3])):
        scores = scores_in_units(model, np.array(factors), np.array(shifts))
        np.testing.assert_allclose(scores, expected, atol=CLOSE)


def test_large_fits_scale_outputs_apart_too():
    X, Y = noisy(400)
    new, truth = rows(1000, seed=1)
    units = np.array([1.0, 1000.0])
    model = with_sizes(RFRBoostRegressor(random_state=0), LARGE)
    model.fit(RowBlocks.from_arrays(X, Y * units))
    # Which rows are held out depends on y, so that it cannot be compared with a fit in other units.
    assert r2_score(truth, model.predict(new) / units, multioutput="raw_values").min() > 0.85


def test_powers_of_two_change_no_digit():
    X, Y = noisy(150)
    units = np.array([2.0**10, 2.0**-20])
    model, other = fitted(MODEL, X, Y), fitted(MODEL, X, Y * units)
    np.testing.assert_allclose(other.predict(X), model.predict(X) * units, rtol=1e-9)
    for name in ("predict_interval", "input_gradient"):
        plain, scaled = (getattr(m, name)(X) for m in (model, other))
        axis = units[:, None] if name == "predict_interval" else units
        np.testing.assert_allclose(scaled, plain * axis, rtol=1e-7, atol=1e-9 * units.max())
    deviations = [m.predict(X, return_std=True)[1] for m in (model, other)]
    np.testing.assert_allclose(deviations[1], deviations[0] * units, rtol=1e-7)
    np.testing.assert_allclose(other.oof_prediction_, model.oof_prediction_ * units, rtol=1e-7)
    assert other.oof_score_ == pytest.approx(model.oof_score_)


@cache
def score_with_column(column, factor, shift):
    """R² of new rows if one column is in other units."""
    X, Y = noisy(300)
    new, truth = rows(1000, seed=1)
    for table in (X, new):
        table[:, column] = factor * (table[:, column] + shift)
    return r2_score(truth[:, 0], fitted(MODEL, X, Y[:, 0]).predict(new))


@pytest.mark.parametrize("column", [0, 1, 5])
@pytest.mark.parametrize(("factor", "shift"), [(0.01, 0.0), (100.0, 0.0), (1.0, 100.0)])
def test_units_of_columns_do_not_matter(column, factor, shift):
    score = score_with_column(column, factor, shift)
    assert score == pytest.approx(score_with_column(0, 1.0, 0.0), abs=CLOSE)


def test_an_output_that_does_not_vary_costs_the_others_nothing():
    X, Y = noisy()
    new, truth = rows(1000, seed=1)
    model = fitted(MODEL, X, np.column_stack([Y[:, 0], np.full(len(X), 1e9)]))
    predicted = model.predict(new)
    alone = fitted(MODEL, X, Y[:, 0]).predict(new)
    assert r2_score(truth[:, 0], predicted[:, 0]) > r2_score(truth[:, 0], alone) - CLOSE
    np.testing.assert_array_equal(predicted[:, 1], 1e9)


def test_losses_given_as_objects_are_in_the_units_of_each_output():
    X, Y = noisy(150)
    units = np.array([1.0, 1024.0])
    for plain, other in (
        (Huber(np.array([0.1, 0.2])), Huber(np.array([0.1, 0.2]) * units)),
        (Quantile(0.7, np.array([0.1, 0.2])), Quantile(0.7, np.array([0.1, 0.2]) * units)),
    ):
        expected = fitted(clone(MODEL).set_params(loss=plain), X, Y).predict(X) * units
        model = fitted(clone(MODEL).set_params(loss=other), X, Y * units)
        np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6, atol=1e-6)


class SquaredLength(Loss):
    """A user's loss; ``size`` records the units that it was asked for."""

    degree = 2
    sizes: ClassVar[list] = []

    def in_units(self, scale):
        self.sizes.append(np.shape(scale))
        return self

    def value(self, raw, y):
        return 0.5 * ((raw - y) ** 2).sum(axis=1)

    def gradient(self, raw, y):
        return raw - y


@pytest.mark.parametrize(
    ("n_layers", "outputs", "shape"), [("auto", 2, (2,)), (1, 2, ()), ("auto", 1, ())]
)
def test_own_losses_are_told_one_unit_or_one_for_each_output(n_layers, outputs, shape):
    X, Y = noisy(100)
    SquaredLength.sizes.clear()
    model = RFRBoostRegressor(n_layers, loss=SquaredLength(), random_state=0)
    if n_layers == "auto":
        model.set_params(n_bags=2)
    model.fit(X, Y[:, :outputs])
    assert SquaredLength.sizes == [shape]


def test_a_single_network_keeps_the_sum_of_the_losses_in_the_units_of_y():
    X, Y = noisy()
    Y = Y * [1.0, 10.0]
    model = RFRBoostRegressor(3, n_features=20, random_state=0).fit(X, Y)
    expected = 0.5 * np.mean(np.sum((Y - model.predict(X)) ** 2, axis=1))
    assert model.history_[-1]["loss"] == pytest.approx(expected)


def test_the_history_of_several_outputs_does_not_depend_on_their_units():
    X, Y = noisy(150)
    histories = [fitted(MODEL, X, Y * units).history_ for units in (1.0, [1.0, 1024.0])]
    for name in ("loss", "gradient_norm", "step_length"):
        one, other = ([record[name] for record in history] for history in histories)
        assert one == pytest.approx(other)


#: how many times larger records are if y is s times as large, as powers of s: the loss of degree k,
#: the functional gradient, and the step length
SINGLE_POWERS = {1: (1, 1, 0), 2: (2, 2, 0)}
ENSEMBLE_POWERS = {1: (1, 0, 1), 2: (2, 1, 0)}


@pytest.mark.parametrize(("loss", "degree"), [("squared_error", 2), ("huber", 2), ("quantile", 1)])
@pytest.mark.parametrize("n_layers", [2, "auto"])
def test_the_history_is_in_the_units_of_y(loss, degree, n_layers):
    X, Y = noisy(120)
    model = RFRBoostRegressor(n_layers, n_features=20, loss=loss, random_state=0)
    if n_layers == 2:
        model.set_params(l2_head=0.0)  # a penalty in the units of y would count for less
    else:
        model.set_params(n_bags=2)
    s = 2.0**7
    one, other = (clone(model).fit(X, factor * Y[:, 0]).history_[0] for factor in (1.0, s))
    powers = (SINGLE_POWERS if n_layers == 2 else ENSEMBLE_POWERS)[degree]
    for name, power in zip(("loss", "gradient_norm", "step_length"), powers, strict=True):
        assert other[name] == pytest.approx(one[name] * s**power), name


def test_the_gradient_norm_of_an_ensemble_is_that_of_the_held_out_gradient():
    X, Y = noisy(200)
    y = 100 * Y[:, 0]
    model = RFRBoostRegressor(n_bags=2, features="swim", random_state=0).fit(X, y)
    record = model.history_[-1]
    # ∇l of squared error is the residual: its mean square is twice the loss.
    assert record["gradient_norm"] == pytest.approx(np.sqrt(2 * record["loss"]))


def test_models_of_several_outputs_are_saved_in_format_2(tmp_path):
    X, Y = noisy(100)
    several, one = fitted(MODEL, X, Y * [1.0, 50.0]), fitted(MODEL, X, Y[:, 0])
    single = RFRBoostRegressor(2, n_features=20, random_state=0).fit(X, Y)
    for model, number in ((several, 2), (one, 1), (single, 1)):
        path = tmp_path / "model.rfrboost"
        model.save(path)
        assert file_info(path)["format"] == number
        np.testing.assert_array_equal(load(path).predict(X), model.predict(X))


@pytest.mark.parametrize("kind", ["onnx", "torch"])
def test_exported_models_know_the_units_of_every_output(kind):
    X, Y = noisy(100)
    units = np.array([1.0, 1000.0])
    model = fitted(MODEL, X, Y * units)
    if kind == "torch":
        torch = pytest.importorskip("torch")
        with torch.no_grad():
            predicted = model.to_torch()(torch.from_numpy(model.encode(X))).numpy()
    else:
        pytest.importorskip("onnx")
        runtime = pytest.importorskip("onnxruntime")
        data = model.to_onnx(dtype="float64").SerializeToString()
        feed = model.onnx_inputs(X, dtype="float64")
        predicted = runtime.InferenceSession(data).run(None, feed)[0]
    np.testing.assert_allclose(predicted / units, model.predict(X) / units, atol=1e-5)
