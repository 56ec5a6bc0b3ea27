"""What a model without training rows costs: errors of test rows, on the first fold of every table.

python -m benchmarks.privacy [--tables ID,ID] [--data DIR] [--out DIR]

Three models of each table of the paper's protocol, with one thread: the default, whose file holds
training rows as centres of radial features; the default compressed with ``training_rows=False``;
and one that was fitted without the family "bumps". Results are added to privacy.csv table by
table, so that a stopped command continues where it was, and privacy.md is made of them.
"""

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from sklearn.metrics import accuracy_score
from threadpoolctl import threadpool_limits

from benchmarks.compress import error_of, file_facts
from benchmarks.predict import add, classes_or_numbers, known_records
from benchmarks.predict_report import table as markdown
from experiments.data.protocols import Fold, load_rows
from experiments.data.tables import available_tables, find_data_folder
from experiments.runs.provenance import current, markdown_footer
from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost._compress.candidates import candidates_of

HERE = Path(__file__).parent
DEFAULT = "default"
COMPRESSED = "compress(tolerance=0.01, training_rows=False)"
UNFITTED = 'features=("swim", "sparse", "trees")'
WITHOUT_BUMPS = ("swim", "sparse", "trees")

INTRODUCTION = """# Models without training rows

The default model's file holds training rows as centres of radial features. Two ways to a model that
holds none: to compress it, which needs no second fit, or to fit without radial features. Errors are
those of the first fold's test rows: RMSE, or log loss for classes. "cost" is the share by which the
error is larger than the default's. "seconds" are processor time: of the fit, or of the compression.
A default model that is made of radial features alone cannot be compressed without them, and its
field is empty.
Made by `python -m benchmarks.privacy`.
"""


@dataclass(frozen=True)
class Record:
    """One model of one table; ``accuracy`` is 0 for numbers."""

    table: str
    task: str
    rows: int
    columns: int
    model: str
    error: float
    accuracy: float
    centres: int
    bytes: int
    seconds: float
    commit: str


def measured(table: str, fold: Fold, classes: bool) -> Iterator[Record]:
    """Fit, compress and score the three models of one table.

    A default model of radial features alone cannot be compressed without them.
    """
    cls = RFRBoostClassifier if classes else RFRBoostRegressor

    def record(name: str, model: Any, seconds: float) -> Record:
        return Record(
            table=table,
            task="classification" if classes else "regression",
            rows=len(fold.X_train),
            columns=fold.X_train.shape[1],
            model=name,
            error=error_of(classes_or_numbers(model, classes), fold, classes),
            accuracy=accuracy_score(fold.y_test, model.predict(fold.X_test)) if classes else 0.0,
            seconds=seconds,
            commit=current().commit,
            **file_facts(model),
        )

    start = time.process_time()
    default = cls(random_state=0).fit(fold.X_train, fold.y_train)
    yield record(DEFAULT, default, time.process_time() - start)
    parts = candidates_of(default.network_)
    if not all(part.is_row for part, _ in parts):
        start = time.process_time()
        with warnings.catch_warnings():
            # A tolerance that is not kept is in the results.
            warnings.simplefilter("ignore", UserWarning)
            small = default.compress(fold.X_train, tolerance=0.01, training_rows=False)
        yield record(COMPRESSED, small, time.process_time() - start)
    start = time.process_time()
    without = cls(features=WITHOUT_BUMPS, random_state=0).fit(fold.X_train, fold.y_train)
    yield record(UNFITTED, without, time.process_time() - start)


def report(records: list[Record]) -> str:
    """All results, as Markdown."""
    parts = [INTRODUCTION, "## Together\n", summary(records), "## By table\n", by_table(records)]
    return "\n".join(parts) + markdown_footer([current()])


def costs(records: list[Record]) -> dict[tuple[str, str], float]:
    """The share by which an error is larger than the default's, by table and model."""
    default = {r.table: r.error for r in records if r.model == DEFAULT}
    return {(r.table, r.model): r.error / default[r.table] - 1 for r in records}


def summary(records: list[Record]) -> str:
    """A row for each task and model; means are over the tables that have every model."""
    larger = costs(records)
    models = (DEFAULT, COMPRESSED, UNFITTED)
    counts = Counter(r.table for r in records if r.model in models)
    rows = []
    for task in ("regression", "classification"):
        for model in models:
            own = [r for r in records if r.task == task and r.model == model]
            if not own:
                continue
            shares = [100 * larger[r.table, model] for r in own]
            shared = [r for r in own if counts[r.table] == len(models)]
            error, accuracy = "", ""
            if shared:
                error = f"{mean(r.error for r in shared):.4f}"
            if shared and task != "regression":
                accuracy = f"{mean(r.accuracy for r in shared):.4f}"
            rows.append(
                [
                    task,
                    f"`{model}`" if model != DEFAULT else model,
                    str(len(own)),
                    error,
                    accuracy,
                    f"{median(shares):.2f}",
                    f"{max(shares):.1f}",
                    str(sum(share > 1 for share in shares)),
                    str(sum(r.centres > 0 for r in own)),
                    f"{median(r.bytes for r in own) / 1e3:.0f}",
                    f"{median(r.seconds for r in own):.1f}",
                ]
            )
    header = ["task", "model", "tables", "mean error", "mean accuracy", "median cost, %"]
    header += ["largest cost, %", "tables that cost more than 1 %"]
    return markdown([*header, "tables with training rows", "median kB", "median seconds"], rows)


def by_table(records: list[Record]) -> str:
    """A row for each table."""
    larger = costs(records)
    found = {(r.table, r.model): r for r in records}
    rows = []
    for first in (r for r in records if r.model == DEFAULT):
        cells = [first.table, f"{first.rows:,}", str(first.columns), f"{first.centres:,}"]
        cells.append(f"{first.error:.4f}")
        for model in (COMPRESSED, UNFITTED):
            own = found.get((first.table, model))
            share = larger.get((first.table, model), 0.0)
            cells += ["", ""] if own is None else [f"{own.error:.4f}", f"{100 * share:.2f}"]
        rows.append(cells)
    header = ["table", "rows", "columns", "training rows in the file", "default"]
    header += ["compressed", "cost, %", "fitted without", "cost, %"]
    return markdown(header, rows)


def main() -> None:
    """Measure, and write privacy.csv and privacy.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.privacy")
    parser.add_argument("--tables", help="OpenML ids, as in experiments/tables.csv (default: all)")
    parser.add_argument("--data", type=Path, help="folder of the tables")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the results")
    asked = parser.parse_args()
    ids = None if asked.tables is None else [int(id) for id in asked.tables.split(",")]
    data = find_data_folder(asked.data)
    path = asked.out / "privacy.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    records = known_records(path, Record)
    done = {record.table for record in records}
    for table in available_tables(data):
        if table.name in done or (ids is not None and table.id not in ids):
            continue
        fold = load_rows("paper", table.id, data).fold(0)
        with threadpool_limits(1):
            new = list(measured(table.name, fold, table.task == "classification"))
        add(path, new)
        records += new
        print(table.name, " ".join(f"{r.error:.4f}" for r in new), flush=True)
    (asked.out / "privacy.md").write_text(report(records), encoding="utf-8")


if __name__ == "__main__":
    main()
