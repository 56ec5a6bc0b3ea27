"""Compiled sums are those of NumPy up to rounding, and nothing needs them."""

import os
import subprocess
import sys

import numpy as np
import pytest
from test_prediction import TASKS, ensemble

from rfrboost import RFRBoostRegressor
from rfrboost._kernels import available
from rfrboost._kernels.layout import PIECE, tiled
from rfrboost._model import prediction

#: the largest difference to NumPy's sums, in units of the predictions' spread: twice the noise that
#: single precision may cause, since both have it
CLOSE = 3e-6


@pytest.fixture(scope="module", params=TASKS)
def network_and_rows(request):
    model, X = ensemble(request.param)
    return model.network_, model.encode(X + 0.2)


@pytest.fixture
def sums():
    pytest.importorskip("numba")
    return pytest.importorskip("rfrboost._kernels.sums")


@pytest.fixture
def asked(monkeypatch):
    """The user asks for compiled predictions; what was found before is forgotten."""
    monkeypatch.setattr(prediction, "ASKED", True)
    available.kernels.cache_clear()
    yield
    available.kernels.cache_clear()


def predicted(network, X):
    """Predictions and features, by forms that have not decided yet how they are computed."""
    for form in (network.prediction, network.representation):
        form.__dict__.pop("compiled", None)
    return network.raw(X), network.raw(X[:1]), network.transform(X)


def test_compiled_predictions_are_those_of_numpy(sums, asked, network_and_rows, monkeypatch):
    network, X = network_and_rows
    assert prediction.compiled_kernels() is not None
    compiled = predicted(network, X)
    monkeypatch.setattr(prediction, "ASKED", False)
    plain = predicted(network, X)
    for found, expected in zip(compiled, plain, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSE * plain[0].std())
    assert any((f != e).any() for f, e in zip(compiled, plain, strict=True))


@pytest.mark.parametrize("value", [None, "0", "1"])
def test_a_variable_asks_for_compiled_predictions(value):
    environment = {k: v for k, v in os.environ.items() if k != available.VARIABLE}
    if value is not None:
        environment[available.VARIABLE] = value
    code = "from rfrboost._model import prediction; print(prediction.ASKED)"
    found = subprocess.run(
        [sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True
    )
    assert found.stdout.strip() == str(value == "1")


def test_numba_is_not_needed(asked, monkeypatch):
    model, X = ensemble("numbers", 60)
    for module in ("rfrboost._kernels.sums", "rfrboost._kernels.trees"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.delattr("rfrboost._kernels.sums", raising=False)
    monkeypatch.delattr("rfrboost._kernels.trees", raising=False)
    monkeypatch.setitem(sys.modules, "rfrboost._kernels.compile", None)
    model.network_.prediction.__dict__.pop("compiled", None)
    with pytest.warns(UserWarning, match="Install numba"):
        found = model.predict(X)
    assert np.isfinite(found).all()
    model.network_.prediction.__dict__.pop("compiled", None)


def test_functions_are_compiled_where_no_cache_can_be_written(sums, monkeypatch):
    from rfrboost._kernels import compile as how

    def refuse(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(how, "njit", refuse)
    assert how.compiled(how.EXACT)(len) is len


def test_an_import_does_not_wait_for_numba():
    code = "import sys, rfrboost; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tanh_and_exp_are_accurate(sums):
    z = np.linspace(-20, 20, PIECE)
    e, power = np.empty((2, PIECE))
    v = z.copy()
    sums.tanh_double(v, e, power, power.view(np.int64))
    np.testing.assert_allclose(v, np.tanh(z), rtol=0, atol=4e-16)
    single = z.astype(np.float32)
    work, exponent = np.empty((2, PIECE), np.float32)
    expected = np.tanh(single.astype(float))
    sums.tanh_single(single, work, exponent, exponent.view(np.int32))
    # Two roundoffs of single precision.
    np.testing.assert_allclose(single, expected, rtol=0, atol=2 * 2.0**-24)
    v = np.geomspace(1e-9, 700, PIECE)
    expected = np.exp(-v)
    sums.exp_negative(v, power, power.view(np.int64))
    np.testing.assert_allclose(v, expected, rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_has_the_same_bits_alone_and_nan_stays_nan(sums, dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(7, 6)).astype(dtype)
    x[5, 2] = np.nan
    W, leads = tiled(rng.normal(size=(6, 300)).astype(dtype)), tiled(rng.normal(size=(2, 300)))
    add = sums.add_single_neurons if dtype == np.float32 else sums.add_double_neurons
    together, alone = np.zeros((2, 7, 2))
    add(x, W, leads, together)
    for i in range(7):
        add(x[i : i + 1], W, leads, alone[i : i + 1])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(np.isnan(together).all(axis=1), np.arange(7) == 5)


def test_other_activations_are_left_to_numpy(sums):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = RFRBoostRegressor(n_bags=2, activation="sin", random_state=0).fit(X, X[:, 0])
    neurons = [b for b in model.network_.prediction.blocks if isinstance(b, prediction.Neurons)]
    assert not any(block.compilable for block in neurons)
