"""``rfrboost predict``: from a model and a table to predictions, in bounded memory."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.base import is_classifier

from rfrboost import load
from rfrboost.cli.console import (
    CommandError,
    WrongUsageError,
    counted,
    duration,
    listed,
    progress,
    say,
)
from rfrboost.cli.notices import Unseen
from rfrboost.cli.output import Columns, refuse_overwriting, table_writer
from rfrboost.cli.reading.columns import prediction_frame
from rfrboost.cli.reading.tables import OpenTable, open_table
from rfrboost.cli.request import Source
from rfrboost.cli.signature import NUMBERS, Held, read_signature

#: the columns to write for a block of rows
Answer = Callable[[pd.DataFrame], Columns]
#: separates the classes of a prediction set
SET_SEPARATOR = "|"


def predict(
    model: str,
    table: Source,
    ids: list[str],
    out: str,
    proba: bool,
    interval: float | None,
    protect: bool,
) -> None:
    """Predict every row of a table, block by block; the columns ``ids`` are kept."""
    refuse_overwriting(out, table.path, model)
    fitted = load_predictor(model)
    answer = answers(fitted, proba, interval)
    signature = read_signature(model)
    began = time.monotonic()
    rows = 0
    unseen = Unseen()
    with open_table(table) as opened:
        columns = signature.columns(opened.columns, opened.name)
        check_ids(ids, opened)
        used = {*columns, *ids}
        unused = [name for name in opened.columns if name not in used]
        if unused:
            say(f"Ignored columns: {listed(unused)}")
        held = signature.by_name(columns)
        with (
            table_writer(out, protect) as write,
            progress("Predicting", opened.total, "rows") as advance,
        ):
            for block in opened.blocks(columns, ids):
                frame = prediction_frame(block.select(range(len(columns))), held, rows)
                with unseen.counting():
                    predicted = answer(frame)
                write(beside(kept(block, len(columns), ids), predicted))
                rows += block.num_rows
                advance(block.num_rows)
            if not rows:
                none = {name: np.empty(0, dtype=object) for name in ids}
                with Unseen().counting():
                    predicted = no_rows(answer, columns, held)
                write(beside(none, predicted))
    unseen.say(rows)
    say(f"Predicted {counted(rows, 'row')} in {duration(time.monotonic() - began)}.")


def check_ids(ids: list[str], table: OpenTable) -> None:
    """Refuse columns to keep that the table does not have."""
    lacking = [name for name in ids if name not in table.columns]
    if lacking:
        raise CommandError(
            f"{table.name} has no column {listed(lacking)} for --id; its columns are "
            f"{listed(table.columns)}."
        )


def kept(block: pa.Table, first: int, ids: list[str]) -> Columns:
    """The columns from place ``first`` on, which are kept, as Python values."""
    columns = block.columns[first:]
    return {
        name: np.array([*cells.to_pylist(), None], dtype=object)[:-1]
        for name, cells in zip(ids, columns, strict=True)
    }


def beside(kept: Columns, predicted: Columns) -> Columns:
    """The columns that are kept and those that are predicted; their names must differ."""
    both = [name for name in kept if name in predicted]
    if both:
        raise CommandError(f"--id {listed(both)}: a column of the result has this name already.")
    return {**kept, **predicted}


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
    """The most probable class and, with ``proba``, the probability of every class.

    Of a model for several labels per row, a column for each of them.
    """
    probabilities = model.predict_proba(frame)
    if np.ndim(model.classes_) == 2:
        columns = {f"prediction_{k}": (p > 0.5).astype(int) for k, p in enumerate(probabilities.T)}
        return columns | ({f"p_{k}": p for k, p in enumerate(probabilities.T)} if proba else {})
    chosen = model.classes_[probabilities.argmax(axis=1)]
    columns = {"prediction": chosen.astype(str) if chosen.dtype == object else chosen}
    if proba:
        columns |= {f"p_{c}": probabilities[:, k] for k, c in enumerate(model.classes_)}
    return columns


def numbers(model: Any, frame: pd.DataFrame) -> Columns:
    """The predicted number, or one for each quantile level or target."""
    y = np.asarray(model.predict(frame))
    if y.ndim == 1:
        return {"prediction": y}
    names = [f"prediction_{k}" for k in range(y.shape[1])]
    parameters = model.get_params()
    if parameters.get("loss") == "quantile" and np.size(parameters["quantile"]) == len(names):
        names = [f"quantile_{float(level)!r}" for level in np.atleast_1d(parameters["quantile"])]
    return dict(zip(names, y.T, strict=True))


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


def no_rows(answer: Answer, columns: list[str], held: dict[str, Held]) -> Columns:
    """The columns of the result for a table without rows, found by predicting a made-up row."""
    made_up = {name: [0.0] if held.get(name) == Held(NUMBERS) else [None] for name in columns}
    row = pd.DataFrame(made_up, dtype=object)
    return {name: values[:0] for name, values in answer(row).items()}
