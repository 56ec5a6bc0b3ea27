"""The ``exports`` command: do saved models and ONNX models predict what the fitted model predicts?

Fit our estimator with default parameters on some rows of every raw table, missing values and
categories included, and predict other rows three times: by the model itself, on one thread; by the
model saved and loaded in a new process, on two threads; by its ONNX graph in onnxruntime, on inputs
in single precision. A table takes seconds. Stored results are not computed again. A table that
fails is listed, and the exit code is 1.
"""

import argparse
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from experiments.commands.arguments import add_data, add_out, add_tables, at_least
from experiments.data.tables import LABEL, Table, find_data_folder, load_table, select_tables
from experiments.reports.markdown import markdown_table
from experiments.requests import require
from experiments.runs.files import write_atomically, write_report, write_table
from experiments.runs.provenance import Provenance, check_one_code, current

NAME = "exports"
SUMMARY = "saved models and ONNX models compared with the fitted models, on raw tables"
# Rows to fit on.
ROWS = 2000
# Rows to predict, at most.
OTHER_ROWS = 1000
SEED = 0
# Threads of the process that fits, and of the process that loads.
FITTED_ON = 1
LOADED_ON = 2
# The largest difference that counts as equal for ONNX: single precision has about seven digits.
CLOSE = 1e-5
HEADER = f"""\
# Models in files and in ONNX

Our estimators with default parameters, fitted on random rows of raw tables, missing values and
categories included, and asked for predictions of other rows. *Loaded*: saved, and loaded by a new
process with {LOADED_ON} threads instead of {FITTED_ON}. *ONNX*: `to_onnx` in onnxruntime on inputs
in single precision, compared with the model on the same rounded inputs; *rounding* is the
difference of that from the model on the table itself, whose digits single precision cannot hold
(`to_onnx(dtype="float64")` keeps them). Differences are the largest over rows: for regression
in standard deviations of the predictions, for classification between probabilities.
"""


@dataclass(frozen=True)
class Exported:
    """What was measured on one table.

    Differences are the largest over rows: for regression in standard deviations of the predictions,
    for classification between probabilities. ``rounding`` is the effect of inputs in single
    precision on the model itself; ``onnx`` is the difference beyond that, None if ONNX is refused.
    """

    rows: int
    other_rows: int
    columns: int
    classes: int
    model_bytes: int
    loaded_equal: bool
    loaded: float
    rounding: float | None = None
    onnx: float | None = None
    onnx_bytes: int | None = None
    refused: str | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_tables(parser)
    add_out(parser, "experiments-output/exports")
    add_data(parser)
    parser.add_argument(
        "--rows",
        type=at_least(50, "--rows"),
        metavar="N",
        default=ROWS,
        help="random rows to fit on, at most two thirds of a table (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Compare on every table, then write the report; 1 if a table failed."""
    for library in ("onnx", "onnxruntime", "safetensors"):
        require(library, "experiments", NAME)
    data = find_data_folder(arguments.data)
    tables = select_tables(data, arguments.tables)
    folder = arguments.out / f"rows-{arguments.rows}"
    stored = {table.id: read_stored(folder, table) for table in tables}
    known = [provenance for _, provenance in filter(None, stored.values())]
    together = known if all(stored.values()) else [*known, current(FITTED_ON)]
    check_one_code(together, arguments.mix_commits)
    found: dict[int, Exported] = {}
    origin: dict[int, Provenance] = {}
    failures: dict[str, str] = {}
    for table in tables:
        try:
            measured = stored[table.id] or compare_and_store(table, data, arguments.rows, folder)
            found[table.id], origin[table.id] = measured
        except Exception as error:  # a failure on one table must not stop the others
            failures[table.name] = f"{type(error).__name__}: {error}"
    write_table(folder / "exports.csv", csv_rows(tables, found, origin), origin.values())
    text = write_report(folder / "exports.md", report(tables, found, failures), origin.values())
    print(text)
    return 1 if failures else 0


def read_stored(folder: Path, table: Table) -> tuple[Exported, Provenance] | None:
    """The stored result of a table, None if it has none."""
    path = folder / f"{table.id}.json"
    if not path.is_file():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    provenance = Provenance(**record.pop("provenance", {}))
    return Exported(**record), provenance


def compare_and_store(
    table: Table, data: Path, rows: int, folder: Path
) -> tuple[Exported, Provenance]:
    """Compare the predictions on a table, and write the result file."""
    print(f"Exporting {table.id} ({table.name}).", file=sys.stderr, flush=True)
    found = compared(load_table(table, data), table.task, rows)
    provenance = current(FITTED_ON)
    record = asdict(found) | {"provenance": asdict(provenance)}
    write_atomically(folder / f"{table.id}.json", json.dumps(record, indent=1) + "\n")
    return found, provenance


def csv_rows(
    tables: list[Table], found: dict[int, Exported], origin: dict[int, Provenance]
) -> pd.DataFrame:
    """One row per table, with everything that was measured."""
    return pd.DataFrame(
        [
            {"dataset": table.id, "name": table.name, **asdict(found[table.id])}
            | {"commit": origin[table.id].code}
            for table in tables
            if table.id in found
        ]
    )


def compared(frame: pd.DataFrame, task: str, rows: int) -> Exported:
    """Fit on some rows of a table, and compare the predictions of others."""
    with threadpool_limits(limits=FITTED_ON):
        training, others = parts(frame, rows)
        model = fitted(training, task)
        X = others.drop(columns=LABEL)
        here = predictions(model, X)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.rfrboost"
            model.save(path)
            elsewhere = in_new_process(path, X)
            size = path.stat().st_size
        return Exported(
            rows=len(training),
            other_rows=len(others),
            columns=X.shape[1],
            classes=0 if task == "regression" else len(model.classes_),
            model_bytes=size,
            loaded_equal=here.tobytes() == elsewhere.tobytes(),
            loaded=difference(elsewhere, here, here),
            **in_onnx(model, X, here),
        )


def parts(frame: pd.DataFrame, rows: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Random rows to fit on, at most two thirds of the table, and up to 1,000 other rows."""
    shuffled = frame.sample(frac=1, random_state=SEED)
    first = min(rows, 2 * len(frame) // 3)
    return shuffled[:first], shuffled[first : first + OTHER_ROWS]


def fitted(training: pd.DataFrame, task: str) -> Any:
    """Our estimator with default parameters, fitted."""
    from rfrboost import RFRBoostClassifier, RFRBoostRegressor

    X = training.drop(columns=LABEL)
    y = training[LABEL]
    if task == "regression":
        return RFRBoostRegressor(random_state=SEED).fit(X, y.to_numpy(float))
    return RFRBoostClassifier(random_state=SEED).fit(X, y.astype(str).to_numpy())


def predictions(model: Any, X: pd.DataFrame) -> NDArray:
    """Predictions (n) for regression, probabilities (n, classes) for classification."""
    from sklearn.base import is_classifier

    return model.predict_proba(X) if is_classifier(model) else model.predict(X)


def difference(one: NDArray, other: NDArray, here: NDArray) -> float:
    """The largest difference; for regression in standard deviations of ``here``."""
    spread = float(here.std()) if here.ndim == 1 else 1.0
    return float(np.abs(one.reshape(here.shape) - other).max() / (spread or 1.0))


def in_new_process(path: Path, X: pd.DataFrame) -> NDArray:
    """Predictions of a model file, loaded in a new process."""
    # Spawned, because a forked process would have the model and the threads of this process.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(loaded_predictions, path, X).result()


def loaded_predictions(path: Path, X: pd.DataFrame) -> NDArray:
    """Load a model and predict on ``LOADED_ON`` threads."""
    import rfrboost

    with threadpool_limits(limits=LOADED_ON):
        return predictions(rfrboost.load(path), X)


def in_onnx(model: Any, X: pd.DataFrame, here: NDArray) -> dict[str, Any]:
    """The fields of :class:`Exported` about ONNX."""
    try:
        graph = model.to_onnx().SerializeToString()
    except ValueError as refusal:
        return {"refused": str(refusal)}
    feed = model.onnx_inputs(X)
    numbers = {name: column.ravel() for name, column in feed.items() if column.dtype != object}
    rounded = predictions(model, X.assign(**numbers))
    return {
        "rounding": difference(rounded, here, here),
        "onnx": difference(answered(graph, feed), rounded, here),
        "onnx_bytes": len(graph),
    }


def answered(graph: bytes, feed: dict[str, NDArray]) -> NDArray:
    """The last output of a graph: predictions, or the probabilities, which follow the labels."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = FITTED_ON
    session = onnxruntime.InferenceSession(graph, options, ["CPUExecutionProvider"])
    return session.run(None, feed)[-1]


def report(tables: list[Table], found: dict[int, Exported], failures: dict[str, str]) -> str:
    """The report as Markdown, without its provenance."""
    known = {table: found[table.id] for table in tables if table.id in found}
    parts = [HEADER, f"{len(known)} of {len(tables)} tables were exported.\n"]
    parts += [f"{name} failed: {said}\n" for name, said in failures.items()]
    if known:
        rows = [table_row(table, of) for table, of in known.items()]
        parts += [summary(known), "## Table by table\n", markdown_table(pd.DataFrame(rows))]
    return "\n".join(parts)


def summary(known: dict[Table, Exported]) -> str:
    """The main figures, one line each."""
    exported = {table: of.onnx for table, of in known.items() if of.onnx is not None}
    equal = sum(of.loaded_equal for of in known.values())
    lines = [
        f"Loaded: equal to the bit on {equal} of {len(known)}; largest difference "
        f"{worst(known, lambda of: of.loaded)}."
    ]
    if exported:
        close = sum(value <= CLOSE for value in exported.values())
        typical = np.median(list(exported.values()))
        lines.append(
            f"ONNX: within {CLOSE:.0e} on {close} of {len(exported)}; largest difference "
            f"{worst(known, lambda of: of.onnx)}, median {typical:.1e}."
        )
    beyond = [table.name for table, value in exported.items() if value > CLOSE]
    lines += [f"Beyond {CLOSE:.0e}: {', '.join(beyond)}."] if beyond else []
    lines += [f"Refused: {t.name}: {of.refused}" for t, of in known.items() if of.refused]
    sizes = np.array([of.model_bytes for of in known.values()]) / 1e6
    lines.append(
        f"Model files: {np.median(sizes):.2f} MB in the median, {sizes.max():.2f} at most."
    )
    return "".join(f"- {line}\n" for line in lines)


def worst(known: dict[Table, Exported], figure: Callable[[Exported], float | None]) -> str:
    """The largest value of a figure, and its table."""
    value, name = max((figure(of) or 0.0, table.name) for table, of in known.items())
    return f"{value:.1e} ({name})" if value else "0"


def table_row(table: Table, of: Exported) -> dict[str, object]:
    """The printed row of one table."""
    return {
        "table": f"{table.id} {table.name}",
        "rows": of.rows,
        "other rows": of.other_rows,
        "columns": of.columns,
        "classes": of.classes or "–",
        "loaded": "equal" if of.loaded_equal else f"{of.loaded:.1e}",
        "ONNX": "refused" if of.onnx is None else f"{of.onnx:.1e}",
        "rounding": "–" if of.rounding is None else f"{of.rounding:.1e}",
        "model, kB": round(of.model_bytes / 1e3),
        "ONNX, kB": "–" if of.onnx_bytes is None else round(of.onnx_bytes / 1e3),
    }
