"""The serving example: a real server, asked over HTTP, says what the model says."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rfrboost import RFRBoostClassifier, RFRBoostRegressor

for package in ("onnx", "onnxruntime", "fastapi", "uvicorn"):
    pytest.importorskip(package)

EXAMPLE = Path(__file__).parents[2] / "examples" / "serve"
#: seconds until a server that does not answer has failed
PATIENCE = 300


def cars(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    power = rng.normal(90, 25, n).round(1)
    power[::9] = np.nan
    return pd.DataFrame(
        {
            "age": rng.integers(0, 15, n),
            "fuel": rng.choice(["petrol", "diesel", None], n),
            "power": power,
            "doors": pd.Categorical(rng.choice([3, 5], n)),
        }
    )


def rows_of(table: pd.DataFrame) -> list[dict]:
    """The rows as a client would send them."""
    return json.loads(table.to_json(orient="records"))


def ask(url: str, body: object = None):
    """The decoded answer; an HTTPError if the server refuses."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


@pytest.fixture(scope="module", params=["regression", "classification"])
def served(request, tmp_path_factory):
    """A fitted model, its table and the address of a server for its ONNX file."""
    X = cars()
    y = 20 - X["age"] + 5 * (X["fuel"] == "diesel") + 2 * (X["doors"] == 5)
    if request.param == "regression":
        model = RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y)
    else:
        model = RFRBoostClassifier(n_bags=2, random_state=0).fit(
            X, np.where(y > 14, "dear", "cheap")
        )
    path = tmp_path_factory.mktemp("served") / "cars.onnx"
    model.to_onnx(path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLE), "--factory"]
    command += ["serve:from_environment", "--port", str(port), "--log-level", "error"]
    server = subprocess.Popen(command, env=os.environ | {"MODEL": str(path)})
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(address, server)
        yield model, X, address
    finally:
        server.terminate()
        server.wait()


def wait_for(address: str, server: subprocess.Popen) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        assert server.poll() is None, "the server has ended"
        assert time.monotonic() < end
        try:
            ask(f"{address}/columns")
            return
        except urllib.error.URLError:
            time.sleep(0.05)


def test_it_lists_the_columns(served):
    _, _, address = served
    kinds = {"age": "number", "fuel": "text", "power": "number", "doors": "text"}
    assert ask(f"{address}/columns") == kinds


def test_it_says_what_the_model_says(served):
    model, X, address = served
    said = ask(f"{address}/predict", rows_of(X.assign(colour="red")))
    if isinstance(model, RFRBoostRegressor):
        right = model.predict(X)
        np.testing.assert_allclose(np.ravel(said["variable"]), right, atol=1e-5 * right.std())
    else:
        np.testing.assert_allclose(said["probabilities"], model.predict_proba(X), atol=1e-5)
        assert said["label"] == model.predict(X).tolist()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda rows: rows[0].pop("age"), "Row 0 has no column 'age'"),
        (lambda rows: rows[1].update(age="old"), "'age' holds numbers"),
        (lambda rows: rows.clear(), "1 to 10,000 rows"),
        (lambda rows: rows.extend(rows[:1] * 10_000), "1 to 10,000 rows"),
    ],
)
def test_it_refuses_with_a_sentence(served, change, sentence):
    _, X, address = served
    rows = rows_of(X[:3])
    change(rows)
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(f"{address}/predict", rows)
    with refused.value:
        assert refused.value.code == 422
        assert sentence in json.load(refused.value)["detail"]
