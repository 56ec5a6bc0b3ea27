"""Microseconds a row of predictions: ours, ours in ONNX Runtime, and four libraries of trees.

python -m benchmarks.predict [--tables ID,ID] [--models NAME;NAME] [--data DIR] [--out DIR]

Models are fitted with their default parameters on the first fold of each table of the paper's
protocol, and on up to 50,000 training rows of five whole tables. Each predicts batches of 1, 32 and
1,000 rows, of the whole tables 100,000 too, with one thread and with two; of several calls the best
counts. Of ours, one row as a data frame and intervals (sets, for classes) of 1,000 rows are
measured too. Test rows give the scores. Results are added to predict.csv as soon as they are there,
so that a stopped command continues where it was, and predict.md is made of them. Run it on an idle
machine.

Where numba is installed, the same model is measured compiled, too.
"""

import argparse
import copy
import csv
import importlib.util
import os
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from benchmarks.predict_report import COMPILED, FRAME, INTERVAL, OURS, PREDICT, report
from experiments.data.large_tables import LARGE_TABLES, labels, prepare, random_split, scaled
from experiments.data.protocols import Fold, fill_missing, load_rows, one_hot
from experiments.data.tables import (
    LABEL,
    available_tables,
    find_data_folder,
    known_table,
    load_table,
)
from experiments.runs.files import write_atomically
from experiments.runs.provenance import csv_footer, current
from rfrboost._model import prediction

HERE = Path(__file__).parent
THREADS = (1, 2)
BATCHES = (1, 32, 1000)
LARGEST_BATCH = 100_000
INTERVAL_BATCH = 1000
# The tables that are measured whole, too: California housing, diamonds, adult, electricity.
WHOLE = (44977, 44979, 1590, 151)
COVERTYPE = "covtype"
MOST_TRAINING_ROWS = 50_000
# Calls go on until this many seconds have passed, and there are at least so many of them.
LEAST_SECONDS = 0.1
LEAST_CALLS = 3

Predict = Callable[[Any], np.ndarray]
#: a data class of measurements
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Record:
    """One measurement; ``batch`` is in rows.

    ``call`` is what was called: a prediction, that of a data frame, or an interval. ``error`` is
    the RMSE or the log loss of test rows; ``accuracy`` is 0 for numbers.
    """

    table: str
    rows: int
    columns: int
    model: str
    threads: int
    batch: int
    microseconds_a_row: float
    bytes: int
    load_milliseconds: float
    fit_seconds: float
    commit: str
    task: str = "regression"
    call: str = PREDICT
    error: float = 0.0
    accuracy: float = 0.0


@dataclass(frozen=True)
class Contender:
    """A library: how to fit, to write and read a file, and to predict with some threads."""

    fit: Callable[[bool, np.ndarray, np.ndarray], Any]
    save: Callable[[Any, Path], Any]
    load: Callable[[Any, Path], Any]
    predictor: Callable[[Any, bool, int], Predict]


def classes_or_numbers(model: Any, classes: bool) -> Predict:
    """The method that the measurement calls."""
    method: Predict = model.predict_proba if classes else model.predict
    return method


def pickled(model: Any, path: Path) -> None:
    """Write a pickle, where a library has no file format of its own."""
    path.write_bytes(pickle.dumps(model))


def unpickled(model: Any, path: Path) -> Any:
    """Read what :func:`pickled` wrote; the contenders' loaders take the fitted model too."""
    return pickle.loads(path.read_bytes())


def rfrboost() -> Contender:
    """Ours, in its own files."""
    import rfrboost as library

    models = {True: library.RFRBoostClassifier, False: library.RFRBoostRegressor}
    return Contender(
        lambda classes, X, y: models[classes](random_state=0).fit(X, y),
        lambda model, path: model.save(path),
        lambda model, path: library.load(path),
        lambda model, classes, threads: classes_or_numbers(model, classes),
    )


def rfrboost_compiled() -> Contender:
    """Ours, as with ``RFRBOOST_COMPILED=1``, which is read when the library is imported."""

    def predictor(model: Any, classes: bool, threads: int) -> Predict:
        method = classes_or_numbers(model, classes)

        def predict(X: Any) -> np.ndarray:
            prediction.ASKED = True
            try:
                return method(X)
            finally:
                prediction.ASKED = False

        return predict

    return replace(rfrboost(), predictor=predictor)


def rfrboost_onnx() -> Contender:
    """Ours in ONNX Runtime, fed with the numbers of ``onnx_inputs``."""
    import onnxruntime

    ours = rfrboost()

    def session(path: Path, threads: int) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def predictor(loaded: tuple[Any, Path], classes: bool, threads: int) -> Predict:
        model, path = loaded
        running = session(path, threads)
        output = "probabilities" if classes else "variable"
        return lambda X: running.run([output], model.onnx_inputs(X))[0]

    def load(model: Any, path: Path) -> tuple[Any, Path]:
        session(path, 1)
        return model, path

    return Contender(ours.fit, lambda model, path: model.to_onnx(path), load, predictor)


def catboost() -> Contender:
    """CatBoost, in its own files."""
    import catboost as library

    models = {True: library.CatBoostClassifier, False: library.CatBoostRegressor}

    def fit(classes: bool, X: np.ndarray, y: np.ndarray) -> Any:
        settings = {"verbose": 0, "allow_writing_files": False, "random_seed": 0}
        return models[classes](thread_count=max(THREADS), **settings).fit(X, y)

    def predictor(model: Any, classes: bool, threads: int) -> Predict:
        method = classes_or_numbers(model, classes)
        return lambda X: method(X, thread_count=threads)

    return Contender(
        fit,
        lambda model, path: model.save_model(str(path)),
        lambda model, path: type(model)().load_model(str(path)),
        predictor,
    )


def lightgbm() -> Contender:
    """LightGBM, in its own files."""
    import lightgbm as library

    models = {True: library.LGBMClassifier, False: library.LGBMRegressor}

    def predictor(booster: Any, classes: bool, threads: int) -> Predict:
        return lambda X: booster.predict(X, num_threads=threads)

    return Contender(
        lambda classes, X, y: models[classes](n_jobs=max(THREADS), random_state=0, verbose=-1).fit(
            X, y
        ),
        lambda model, path: model.booster_.save_model(path),
        lambda model, path: library.Booster(model_file=path),
        predictor,
    )


def xgboost() -> Contender:
    """XGBoost, in its own files."""
    import xgboost as library

    models = {True: library.XGBClassifier, False: library.XGBRegressor}

    def load(model: Any, path: Path) -> Any:
        loaded = type(model)()
        loaded.load_model(path)
        return loaded

    def predictor(model: Any, classes: bool, threads: int) -> Predict:
        model.get_booster().set_param({"nthread": threads})
        return classes_or_numbers(model, classes)

    return Contender(
        lambda classes, X, y: models[classes](n_jobs=max(THREADS), random_state=0).fit(X, y),
        lambda model, path: model.save_model(path),
        load,
        predictor,
    )


def hist() -> Contender:
    """scikit-learn's histogram boosting, in a pickle."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    models = {True: HistGradientBoostingClassifier, False: HistGradientBoostingRegressor}
    return Contender(
        lambda classes, X, y: models[classes](random_state=0).fit(X, y),
        pickled,
        unpickled,
        lambda model, classes, threads: classes_or_numbers(model, classes),
    )


#: the ending of each contender's files tells their libraries the format
CONTENDERS: dict[str, tuple[Callable[[], Contender], str]] = {
    OURS: (rfrboost, ".rfrboost"),
    f"{OURS}, ONNX Runtime": (rfrboost_onnx, ".onnx"),
    COMPILED: (rfrboost_compiled, ".rfrboost"),
    "CatBoost": (catboost, ".cbm"),
    "LightGBM": (lightgbm, ".txt"),
    "XGBoost": (xgboost, ".ubj"),
    "HistGradientBoosting": (hist, ".pickle"),
}


def best_seconds(work: Callable[[], Any]) -> float:
    """The shortest of several calls, after one that does not count."""
    work()
    seconds: list[float] = []
    began = time.perf_counter()
    while len(seconds) < LEAST_CALLS or time.perf_counter() - began < LEAST_SECONDS:
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def repeated(X: np.ndarray, rows: int) -> np.ndarray:
    """The rows again and again, up to this many."""
    return np.ascontiguousarray(X[np.arange(rows) % len(X)])


def score(predict: Predict, fold: Fold, classes: bool) -> tuple[float, float]:
    """The RMSE of test rows and 0, or their log loss and accuracy."""
    answer = predict(np.ascontiguousarray(fold.X_test))
    if not classes:
        return float(np.sqrt(np.mean((answer.ravel() - fold.y_test) ** 2))), 0.0
    # LightGBM and some others give the probability of the second class alone.
    p = np.column_stack([1 - answer, answer]) if answer.ndim == 1 else answer
    labels = np.unique(fold.y_train)
    accuracy = np.mean(labels[np.argmax(p, axis=1)] == fold.y_test)
    return float(log_loss(fold.y_test, p.astype(float), labels=labels)), float(accuracy)


def with_names(model: Any, names: list[str]) -> Any:
    """Our model as if it had been fitted on a data frame with these columns."""
    named = copy.copy(model)
    inputs = replace(model._fitted.inputs, names=np.array(names, dtype=object))
    named._fitted = replace(model._fitted, inputs=inputs)
    return named


def further_calls(model: Any, fold: Fold, classes: bool) -> Iterator[tuple[str, Predict, Any]]:
    """Calls that only ours has: names, functions and what they are given."""
    frame = pd.DataFrame(repeated(fold.X_test, 1)).add_prefix("x")
    yield FRAME, classes_or_numbers(with_names(model, list(frame)), classes), frame
    interval = model.predict_set if classes else model.predict_interval
    yield INTERVAL, interval, repeated(fold.X_test, INTERVAL_BATCH)


def measured(
    table: str,
    fold: Fold,
    classes: bool,
    model: str,
    batches: tuple[int, ...],
    fits: dict[Any, tuple[Any, float]],
) -> Iterator[Record]:
    """Fit one contender on one table, and time its file and its predictions.

    ``fits`` are the table's fitted models with their seconds: contenders of one library share one.
    """
    make, ending = CONTENDERS[model]
    contender = make()
    library = OURS if model.startswith(OURS) else model
    if library not in fits:
        with threadpool_limits(max(THREADS)):
            began = time.perf_counter()
            fitted = contender.fit(classes, fold.X_train, fold.y_train)
            fits[library] = fitted, time.perf_counter() - began
    fitted, fit_seconds = fits[library]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model{ending}"
        contender.save(fitted, path)
        size = path.stat().st_size
        load_seconds = best_seconds(lambda: contender.load(fitted, path))
        loaded = contender.load(fitted, path)
        error, accuracy = score(contender.predictor(loaded, classes, 1), fold, classes)
        for threads in THREADS:
            with threadpool_limits(threads):
                predict = contender.predictor(loaded, classes, threads)
                calls = [(PREDICT, predict, repeated(fold.X_test, batch)) for batch in batches]
                if model == OURS:
                    calls += further_calls(loaded, fold, classes)
                for name, function, X in calls:
                    seconds = best_seconds(lambda X=X, function=function: function(X))  # type: ignore[misc]
                    yield Record(
                        table=table,
                        rows=len(fold.X_train),
                        columns=fold.X_train.shape[1],
                        model=model,
                        threads=threads,
                        batch=len(X),
                        microseconds_a_row=1e6 * seconds / len(X),
                        bytes=size,
                        load_milliseconds=1e3 * load_seconds,
                        fit_seconds=fit_seconds,
                        commit=current().commit,
                        task="classification" if classes else "regression",
                        call=name,
                        error=error,
                        accuracy=accuracy,
                    )


def whole_table(id: int, data: Path) -> Fold:
    """All rows of a table, a fifth of them for testing, prepared as the large tables are."""
    table = known_table(id)
    frame = load_table(table, data)
    train, test = random_split(0.2)(len(frame))
    X = scaled(one_hot(fill_missing(frame.drop(columns=LABEL))), train)
    y = labels(frame[LABEL], table.task, train)
    return Fold(X[train], y[train], X[test], y[test])


def at_most(fold: Fold, rows: int) -> Fold:
    """The fold with its first training rows, which are in random order."""
    return Fold(fold.X_train[:rows], fold.y_train[:rows], fold.X_test, fold.y_test)


def jobs(
    ids: list[int] | None, data: Path
) -> Iterator[tuple[str, Callable[[], Fold], bool, tuple[int, ...]]]:
    """For every table its name, how to read it, whether it has classes, and its batches."""
    largest = (*BATCHES, LARGEST_BATCH)
    chosen = [t for t in available_tables(data) if ids is None or t.id in ids]
    for table in chosen:
        classes = table.task == "classification"
        read = lambda id=table.id: load_rows("paper", id, data).fold(0)  # noqa: E731
        yield table.name, read, classes, BATCHES
    for table in (t for t in chosen if t.id in WHOLE):
        classes = table.task == "classification"
        read = lambda id=table.id: at_most(whole_table(id, data), MOST_TRAINING_ROWS)  # noqa: E731
        yield f"{table.name}, whole", read, classes, largest
    covertype = LARGE_TABLES[COVERTYPE]
    if ids is None and covertype.path(data).is_file():
        read = lambda: at_most(prepare(covertype, data), MOST_TRAINING_ROWS)  # noqa: E731
        yield f"{covertype.name}, whole", read, True, largest


def known_records(path: Path, kind: type[Kind]) -> list[Kind]:
    """The records of a former run, of a data class of numbers and text, if there are any."""
    if not path.exists():
        return []
    types = {own.name: own.type for own in fields(kind)}  # type: ignore[arg-type]
    with path.open(newline="", encoding="utf-8") as stream:
        return [
            kind(**{name: types[name](text) for name, text in row.items()})  # type: ignore[operator]
            for row in csv.DictReader(line for line in stream if not line.startswith("#"))
        ]


def run(
    wanted: Iterator[tuple[str, Callable[[], Fold], bool, tuple[int, ...]]],
    models: list[str],
    path: Path,
) -> list[Record]:
    """Measure what is not in the file yet, and add it there table by table."""
    records = known_records(path, Record)
    done = {(record.table, record.model) for record in records}
    path.parent.mkdir(parents=True, exist_ok=True)
    for table, read, classes, batches in wanted:
        missing = [model for model in models if (table, model) not in done]
        fold = read() if missing else None
        fits: dict[Any, tuple[Any, float]] = {}
        for model in missing:
            assert fold is not None
            new = list(measured(table, fold, classes, model, batches, fits))
            add(path, new)
            records += new
            last = [record for record in new if record.call == PREDICT][-1]
            took = f"{last.microseconds_a_row:.2f} µs a row, fit {last.fit_seconds:.1f} s"
            print(table, model, took, flush=True)
    return records


def add(path: Path, records: Sequence[Any]) -> None:
    """Add records of one data class to the file, which has the names of their fields on top.

    Its last line says what the newest records were made with; every record has its own commit.
    """
    known = []
    if path.exists():
        known = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    rows = pd.DataFrame([asdict(record) for record in records])
    text = "".join(f"{line}\n" for line in known) + rows.to_csv(index=False, header=not known)
    write_atomically(path, text + csv_footer([current()]))


def main() -> None:
    """Measure, and write predict.csv and predict.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.predict")
    parser.add_argument("--tables", help="OpenML ids, as in experiments/tables.csv (default: all)")
    parser.add_argument("--models", help=f"which of {'; '.join(CONTENDERS)} (default: all)")
    parser.add_argument("--data", type=Path, help="folder of the tables")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the results")
    asked = parser.parse_args()
    ids = None if asked.tables is None else [int(id) for id in asked.tables.split(",")]
    models = list(CONTENDERS) if asked.models is None else asked.models.split(";")
    if importlib.util.find_spec("numba") is None:
        models = [model for model in models if model != COMPILED]
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    records = run(jobs(ids, find_data_folder(asked.data)), models, asked.out / "predict.csv")
    (asked.out / "predict.md").write_text(report(records), encoding="utf-8")


if __name__ == "__main__":
    main()
