"""What the page on exports says about MLflow."""

import numpy as np
import pandas as pd
import pytest

from rfrboost import RFRBoostRegressor

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("mlflow", reason="MLflow brings a hundred packages, which no extra asks for")


@pytest.mark.filterwarnings("ignore")  # of MLflow, about itself
def test_mlflow_predicts_with_the_onnx_model(tmp_path):
    import mlflow.onnx

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=80), "b": rng.choice(["x", "y"], 80)})
    y = 2 * X["a"] + (X["b"] == "x")
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y)
    path = str(tmp_path / "model")
    mlflow.onnx.save_model(model.to_onnx(), path, onnx_execution_providers=["CPUExecutionProvider"])
    said = mlflow.pyfunc.load_model(path).predict(model.onnx_inputs(X))["variable"]
    np.testing.assert_allclose(np.ravel(said), model.predict(X), atol=1e-5 * y.std())
