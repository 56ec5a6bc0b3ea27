"""Without the package that an export needs, one sentence says what to install."""

import importlib
import sys

import numpy as np
import pytest
from model_zoo import regression

from rfrboost import RFNNRegressor
from rfrboost.inspection import shap_explainer


@pytest.fixture
def model():
    return RFNNRegressor(5, random_state=0).fit(*regression(50))


@pytest.mark.parametrize("package", ["onnx", "torch"])
def test_a_missing_package_is_named(monkeypatch, model, package):
    for name in [n for n in sys.modules if n.startswith(f"rfrboost._export.{package}")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"pip install 'rfrboost\[{package}\]'"):
        getattr(model, f"to_{package}")()


def test_fine_tuning_names_it_too(monkeypatch):
    monkeypatch.delitem(sys.modules, "rfrboost.torch", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'rfrboost\[torch\]'"):
        importlib.import_module("rfrboost.torch")


def test_encoded_rows_are_what_the_network_sees(model):
    X, _ = regression(30, seed=1)
    assert model._fitted.targets.scale.grow(model.network_.raw(model.encode(X)))[
        :, 0
    ] == pytest.approx(model.predict(X))


def test_explainers_of_shap_say_what_works_without_it(monkeypatch, model):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match=r"pip install shap.*attribute"):
        shap_explainer(model, np.zeros((4, 2)))
