"""Predictions over HTTP from the ONNX file of a model, without the library that fitted it.

    pip install 'rfrboost[serve]'
    MODEL=cars.onnx uvicorn --app-dir examples/serve --factory serve:from_environment

``GET /columns`` says which columns are numbers and which are text. ``POST /predict`` takes a list
of rows, each an object with a value for every column; null is a missing value, and columns that the
model does not use are ignored. The answer has one list for each output of the model: ``variable``
of a regressor, ``label`` and ``probabilities`` of a classifier.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from fastapi import FastAPI, HTTPException

Row = dict[str, float | str | None]

# Rows of one request: their features are in memory at the same time.
MOST_ROWS = 10_000
# The types of inputs as onnxruntime names them.
NUMBERS = {"tensor(float)": np.float32, "tensor(double)": np.float64}
# What stands for a missing value in a column of text, as long as it is no category itself.
MISSING_TEXT = ""


class ServedModel:
    """An ONNX file that is open for predictions; any number of threads may ask at once."""

    def __init__(self, path: Path) -> None:
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.inputs = {given.name: given for given in self.session.get_inputs()}
        self.outputs = [made.name for made in self.session.get_outputs()]
        if any(given.shape[1] != 1 for given in self.inputs.values()):
            raise ValueError(f"{path}: its columns have no names. Fit the model on a data frame.")

    def columns(self) -> dict[str, str]:
        """The columns that a row must have, and whether they hold numbers or text."""
        return {
            name: "number" if given.type in NUMBERS else "text"
            for name, given in self.inputs.items()
        }

    def predict(self, rows: list[Row]) -> dict[str, list[Any]]:
        """Each output of the model, with one entry for every row."""
        tensors = {name: self.tensor(name, rows) for name in self.inputs}
        found = self.session.run(self.outputs, tensors)
        return {name: values.tolist() for name, values in zip(self.outputs, found, strict=True)}

    def tensor(self, name: str, rows: list[Row]) -> np.ndarray:
        """A column of the rows, (n, 1), as the model takes it."""
        absent = next((i for i, row in enumerate(rows) if name not in row), None)
        if absent is not None:
            raise ValueError(f"Row {absent} has no column {name!r}; null is a missing value.")
        values = [row[name] for row in rows]
        dtype = NUMBERS.get(self.inputs[name].type)
        if dtype is None:
            return np.array([text_of(value) for value in values], dtype=object)[:, None]
        if any(isinstance(value, str) for value in values):
            raise ValueError(f"The column {name!r} holds numbers, and one of its values is text.")
        return np.array([np.nan if v is None else v for v in values], dtype)[:, None]


def text_of(value: float | str | None) -> str:
    """A category as the model knows it: whole numbers without a decimal point."""
    if value is None:
        return MISSING_TEXT
    return value if isinstance(value, str) else f"{value:.16g}"


def create(path: Path) -> FastAPI:
    """The web application for one model."""
    model = ServedModel(path)
    app = FastAPI(title="Predictions of a model")

    @app.get("/columns")
    def columns() -> dict[str, str]:
        return model.columns()

    @app.post("/predict")
    def predict(rows: list[Row]) -> dict[str, list[Any]]:
        if not 0 < len(rows) <= MOST_ROWS:
            raise HTTPException(422, f"Send 1 to {MOST_ROWS:,} rows at a time.")
        try:
            return model.predict(rows)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error

    return app


def from_environment() -> FastAPI:
    """The application for the file that the environment variable MODEL names."""
    return create(Path(os.environ["MODEL"]))
