"""``rfrboost predict``: from a model and a table to predictions, in bounded memory."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from rfrboost import load
from rfrboost.cli.columns import prediction_frame
from rfrboost.cli.console import (
    CommandError,
    WrongUsageError,
    counted,
    duration,
    listed,
    progress,
    say,
)
from rfrboost.cli.output import Columns, table_writer
from rfrboost.cli.signature import NUMBERS, read_signature
from rfrboost.cli.tables import open_table

#: the columns to write for a block of rows
Answer = Callable[[pd.DataFrame], Columns]
#: separates the classes of a prediction set
SET_SEPARATOR = "|"


def predict(model: str, table: str, out: str, proba: bool, interval: float | None) -> None:
    """Predict every row of a table, block by block."""
    fitted = load_predictor(model)
    answer = answers(fitted, proba, interval)
    signature = read_signature(model)
    began = time.monotonic()
    rows = 0
    with open_table(table) as opened:
        columns = signature.columns(opened.columns, opened.name)
        inputs = set(columns)
        unused = [name for name in opened.columns if name not in inputs]
        if unused:
            say(f"Ignored columns: {listed(unused)}")
        kinds = signature.kinds(columns)
        with table_writer(out) as write, progress("Predicting", opened.total, "rows") as advance:
            for block in opened.blocks(columns):
                write(answer(prediction_frame(block, kinds, rows)))
                rows += block.num_rows
                advance(block.num_rows)
            if not rows:
                write(no_rows(answer, columns, kinds))
    say(f"Predicted {counted(rows, 'row')} in {duration(time.monotonic() - began)}.")


def load_predictor(path: str) -> Any:
    """The model in a file; one that does not predict is refused."""
    if not Path(path).exists():
        raise CommandError(f"There is no file {path}.")
    model = load(path)
    if not hasattr(model, "predict"):
        raise CommandError(f"{path} contains {type(model).__name__}, which does not predict.")
    return model


def answers(model: Any, proba: bool, interval: float | None) -> Answer:
    """A function from a block of rows to the columns that are written for it."""
    classifier = is_classifier(model)
    if proba and not classifier:
        raise WrongUsageError("--proba needs a model that predicts classes; this one does not.")
    method = "predict_set" if classifier else "predict_interval"
    if interval is not None and not hasattr(model, method):
        raise CommandError(f"This {type(model).__name__} cannot give prediction intervals.")

    def answer(frame: pd.DataFrame) -> Columns:
        columns = classes(model, frame, proba) if classifier else numbers(model, frame)
        if interval is not None:
            columns |= bounds(model, frame, interval, classifier)
        return columns

    return answer


def classes(model: Any, frame: pd.DataFrame, proba: bool) -> Columns:
    """The most probable class and, with ``proba``, the probability of every class."""
    probabilities = model.predict_proba(frame)
    chosen = model.classes_[probabilities.argmax(axis=1)]
    columns = {"prediction": chosen.astype(str) if chosen.dtype == object else chosen}
    if proba:
        columns |= {f"p_{c}": probabilities[:, k] for k, c in enumerate(model.classes_)}
    return columns


def numbers(model: Any, frame: pd.DataFrame) -> Columns:
    """The predicted number, or one for each target."""
    y = np.asarray(model.predict(frame))
    if y.ndim == 1:
        return {"prediction": y}
    return {f"prediction_{k}": y[:, k] for k in range(y.shape[1])}


def bounds(model: Any, frame: pd.DataFrame, coverage: float, classifier: bool) -> Columns:
    """The ends of the prediction interval, or the set of classes, with this coverage."""
    if not classifier:
        interval = model.predict_interval(frame, coverage=coverage)
        if interval.ndim == 2:
            return {"lower": interval[:, 0], "upper": interval[:, 1]}
        ends = enumerate(("lower", "upper"))
        targets = range(interval.shape[1])
        return {f"{end}_{k}": interval[:, k, i] for i, end in ends for k in targets}
    names = np.asarray([str(c) for c in model.classes_], dtype=object)
    chosen = model.predict_set(frame, coverage=coverage)
    return {"set": np.array([SET_SEPARATOR.join(names[row]) for row in chosen], dtype=str)}


def no_rows(answer: Answer, columns: list[str], kinds: dict[str, str]) -> Columns:
    """The columns of the result for a table without rows, found by predicting a made-up row."""
    made_up = {name: [0.0] if kinds.get(name) == NUMBERS else [None] for name in columns}
    row = pd.DataFrame(made_up, dtype=object)
    return {name: values[:0] for name, values in answer(row).items()}
