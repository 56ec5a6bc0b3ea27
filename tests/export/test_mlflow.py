"""What the page on exports says about MLflow, run word by word where MLflow is installed."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rfrboost import RFRBoostClassifier, RFRBoostRegressor

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "exports.md"


def lines_of_the_page() -> tuple[str, str]:
    """The lines that log and load a model, and the last one, which predicts."""
    section = PAGE.read_text(encoding="utf-8").split("\n## MLflow\n")[1].split("\n## ")[0]
    block = re.search(r"```python\n(.*?)\n```", section, re.DOTALL)[1]
    log, _, predict = block.rpartition("\n")
    return log, predict


def test_the_page_has_the_lines():
    log, predict = lines_of_the_page()
    assert "mlflow.onnx.log_model(model.to_onnx()" in log
    assert predict.startswith("served.predict(model.onnx_inputs(X))")


@pytest.mark.filterwarnings("ignore")  # of MLflow, about itself
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_mlflow_logs_and_serves_the_onnx_model(task, tmp_path, monkeypatch):
    pytest.importorskip("mlflow", reason="MLflow brings a hundred packages: no extra has it")
    # A folder is a store that needs no database; MLflow asks whether it is meant.
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=80), "b": rng.choice(["x", "y", None], 80)})
    X.loc[::7, "a"] = np.nan
    y = 2 * X["a"].fillna(1) + (X["b"] == "x")
    if task == "regression":
        model = RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y)
        expected, spread, output = model.predict(X), y.std(), "variable"
    else:
        model = RFRBoostClassifier(n_bags=2, random_state=0).fit(X, y > 0.5)
        expected, spread, output = model.predict_proba(X), 1.0, "probabilities"
    log, predict = lines_of_the_page()
    names = {"model": model, "X": X}
    exec(log, names)
    said = eval(predict.replace('"variable"', f'"{output}"'), names)
    np.testing.assert_allclose(np.reshape(said, expected.shape), expected, atol=1e-5 * spread)
