"""What compression costs: errors against microseconds a row, of smaller and smaller models.

python -m benchmarks.compress [--tables ID,ID] [--data DIR] [--out DIR]

Default models are fitted on the first fold of tables of the paper's protocol and compressed by
several tolerances and sizes, once without training rows; CatBoost with its default parameters is
fitted beside them. Errors are those of the fold's test rows: RMSE, or log loss for classes. Time is
processor time in batches of 1,000 rows with one thread; of several calls the shortest counts.
Results are added to compress.csv table by table, so that a stopped command continues where it was,
and compress.md and compress.png are made of them.
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from benchmarks.compress_report import figure, report
from benchmarks.predict import add, catboost, classes_or_numbers, known_records, repeated
from experiments.data.protocols import Fold, load_rows
from experiments.data.tables import find_data_folder, known_table
from experiments.runs.provenance import current
from rfrboost import RFRBoostClassifier, RFRBoostRegressor, file_info
from rfrboost._compress.candidates import candidates_of

HERE = Path(__file__).parent
# abalone, concrete, white wine, fish toxicity; diabetes and cmc, of classes.
TABLES = (44956, 44959, 44971, 44970, 37, 23)
BATCH = 1000
CALLS = 5
DEFAULT = "default"
PEER = "CatBoost"
#: what compress is asked for, by its name in the results
SETTINGS: dict[str, dict[str, Any]] = {
    "tolerance 0.01": {"tolerance": 0.01},
    "tolerance 0.05": {"tolerance": 0.05},
    "tolerance 0.01, no training rows": {"tolerance": 0.01, "training_rows": False},
    "size 1000": {"size": 1000},
    "size 100": {"size": 100},
    "size 30": {"size": 30},
}


@dataclass(frozen=True)
class Record:
    """One model of one table; ``estimated`` is the share by which its error should have grown."""

    table: str
    rows: int
    columns: int
    metric: str
    model: str
    features: int
    estimated: float
    error: float
    microseconds_a_row: float
    bytes: int
    centres: int
    seconds: float
    commit: str


def processor_seconds(work: Callable[[], Any]) -> float:
    """The shortest processor time of several calls, after one that does not count."""
    work()
    seconds = []
    for _ in range(CALLS):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def error_of(predict: Callable[[np.ndarray], np.ndarray], fold: Fold, classes: bool) -> float:
    """RMSE or log loss on the test rows."""
    answer = predict(fold.X_test)
    if classes:
        return float(log_loss(fold.y_test, answer, labels=np.unique(fold.y_train)))
    return float(np.sqrt(np.mean((answer - fold.y_test) ** 2)))


def measured(table: str, fold: Fold, classes: bool) -> Iterator[Record]:
    """Fit, compress and time all models of one table."""
    X = repeated(fold.X_test, BATCH)

    def record(
        model: str, predict: Callable[[np.ndarray], np.ndarray], facts: dict[str, Any]
    ) -> Record:
        return Record(
            table=table,
            rows=len(fold.X_train),
            columns=fold.X_train.shape[1],
            metric="log loss" if classes else "RMSE",
            model=model,
            error=error_of(predict, fold, classes),
            microseconds_a_row=1e6 * processor_seconds(lambda: predict(X)) / BATCH,
            commit=current().commit,
            **facts,
        )

    own = RFRBoostClassifier(random_state=0) if classes else RFRBoostRegressor(random_state=0)
    start = time.process_time()
    own.fit(fold.X_train, fold.y_train)
    seconds = time.process_time() - start
    features = sum(part.size for part, _ in candidates_of(own.network_))
    facts = {"features": features, "estimated": 0.0, "seconds": seconds, **file_facts(own)}
    yield record(DEFAULT, classes_or_numbers(own, classes), facts)
    for name, setting in SETTINGS.items():
        start = time.process_time()
        with warnings.catch_warnings():
            # A tolerance that is not kept is in the results.
            warnings.simplefilter("ignore", UserWarning)
            small = own.compress(fold.X_train, **setting)
        seconds = time.process_time() - start
        found = small.compression_
        facts = {"features": found.features, "estimated": found.cost, "seconds": seconds}
        yield record(name, classes_or_numbers(small, classes), {**facts, **file_facts(small)})
    yield record(PEER, *peer(fold, classes))


def peer(fold: Fold, classes: bool) -> tuple[Callable[[np.ndarray], np.ndarray], dict[str, Any]]:
    """How CatBoost predicts, and facts about its model."""
    contender = catboost()
    start = time.process_time()
    fitted = contender.fit(classes, fold.X_train, fold.y_train)
    seconds = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cbm"
        contender.save(fitted, path)
        size = path.stat().st_size
    facts = {"features": int(fitted.tree_count_), "bytes": size, "centres": 0}
    predict = contender.predictor(fitted, classes, 1)
    return predict, {**facts, "estimated": 0.0, "seconds": seconds}


def file_facts(model: Any) -> dict[str, int]:
    """The size of a model's file, and how many training rows it holds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.rfrboost"
        model.save(path)
        found = file_info(path)
    return {"bytes": found["bytes"], "centres": found["centres"]}


def run(ids: list[int], data: Path, path: Path) -> list[Record]:
    """Measure the tables that are not in the file yet, and add them there."""
    records = known_records(path, Record)
    done = {record.table for record in records}
    path.parent.mkdir(parents=True, exist_ok=True)
    for table in map(known_table, ids):
        if table.name in done:
            continue
        fold = load_rows("paper", table.id, data).fold(0)
        with threadpool_limits(1):
            new = list(measured(table.name, fold, table.task == "classification"))
        add(path, new)
        records += new
        print(table.name, flush=True)
    return records


def main() -> None:
    """Measure, and write compress.csv, compress.md and compress.png."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compress")
    parser.add_argument("--tables", help="OpenML ids, as in experiments/tables.csv (default: six)")
    parser.add_argument("--data", type=Path, help="folder of the tables")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the results")
    asked = parser.parse_args()
    ids = list(TABLES) if asked.tables is None else [int(id) for id in asked.tables.split(",")]
    records = run(ids, find_data_folder(asked.data), asked.out / "compress.csv")
    (asked.out / "compress.md").write_text(report(records), encoding="utf-8")
    figure(records, asked.out / "compress.png")


if __name__ == "__main__":
    main()
