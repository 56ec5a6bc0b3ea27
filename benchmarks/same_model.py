"""One automatic model, whether rows are in memory, in Parquet files or on Dask workers.

python -m benchmarks.same_model [--rows N,N] [--tasks TASK,TASK] [--out FILE]

A generated table with categories, missing values and weights is fitted from each source, for both
tasks, at 20,000, 60,000 and 200,000 rows. The table says how far predictions for other rows are
apart, in standard deviations of those of the model of rows in memory, and whether every fitted
model has an out-of-fold score, intervals or sets, importances and a history. Parameters that are
set (number of bags, families, a penalty) are set at every second size, and must be kept.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.limits import known_rows
from experiments.data.synthetic import mixed_block
from experiments.reports.markdown import markdown_table
from experiments.runs.files import write_report, write_table
from experiments.runs.provenance import current
from rfrboost import RFRBoostClassifier, RFRBoostRegressor, RowBlocks
from rfrboost._compress.candidates import candidates_of

ROWS = (20_000, 60_000, 200_000)
TASKS = ("regression", "classification")
SOURCES = ("arrays", "row blocks", "Dask")
TARGET, WEIGHT = "target", "weight"
# Rows of a Parquet file and of a partition: not a divisor of any size.
PART_ROWS = 17_000
TEST_ROWS = 5_000
N_COLUMNS = 8
#: what a user may set; fitted at every second size
SET = {"n_bags": 3, "features": ("swim", "trees"), "l2_step": 1e-3}
THREADS = 2
HEADER = """\
# One model from three sources

Made by `python -m benchmarks.same_model`: a generated table of eight numbers, some missing, and two
categories, with weights, two threads. *Difference* is the largest difference of a prediction (a
probability, for classes) for 5,000 other rows from that of the model of rows in memory, in standard
deviations of the latter; wanted: 1e-6. *Has* counts those of `oof_score_`, `history_`,
`feature_importances_` and intervals or sets that the fitted model has. Where *set* is yes,
`n_bags=3`, `features=("swim", "trees")` and `l2_step=1e-3` were set, and *kept* says whether the
model has three bags and no radial features.
"""


def generated(n_rows: int, task: str) -> pd.DataFrame:
    """Numbers with missing values, two categories, weights and the target."""
    rng = np.random.default_rng(n_rows)
    frame = mixed_block(0, n_rows, seed=n_rows)
    y = frame[TARGET].to_numpy(float)
    frame = frame.iloc[:, :N_COLUMNS].astype(float)
    frame[rng.random(frame.shape) < 0.03] = np.nan
    levels = rng.integers(0, 30, n_rows)
    frame["city"] = pd.Categorical([f"city {level}" for level in levels])
    frame["kind"] = pd.Categorical(rng.choice(["a", "b", "c"], n_rows))
    y = y + 0.1 * (levels % 7)
    if task == "classification":
        y = np.digitize(y, np.quantile(y, [0.5, 0.8])).astype(float)
    return frame.assign(**{TARGET: y, WEIGHT: rng.uniform(0.5, 2.0, n_rows)})


def inputs(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns that models see."""
    return frame.drop(columns=[TARGET, WEIGHT])


def fitted(source: str, task: str, parameters: dict[str, Any], folder: Path) -> Any:
    """The model of the rows in ``folder``, read from one of the sources."""
    kind = RFRBoostRegressor if task == "regression" else RFRBoostClassifier
    parameters = {"random_state": 0, "n_jobs": THREADS, **parameters}
    if source == "row blocks":
        blocks = RowBlocks.from_parquet(folder, target=TARGET, weight=WEIGHT)
        return kind(**parameters).fit(blocks)
    if source == "Dask":
        return on_dask(task, parameters, folder)
    frame = pd.read_parquet(folder)
    return kind(**parameters).fit(inputs(frame), frame[TARGET], frame[WEIGHT])


def on_dask(task: str, parameters: dict[str, Any], folder: Path) -> Any:
    """The model that two Dask workers, which hold the rows, make."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from rfrboost.dask import DaskRFRBoostClassifier, DaskRFRBoostRegressor

    kind = DaskRFRBoostRegressor if task == "regression" else DaskRFRBoostClassifier
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        frame = client.persist(dd.read_parquet(folder))
        model = kind(**parameters).fit(inputs(frame), frame[TARGET], frame[WEIGHT])
        return model.to_local()


def predictions(model: Any, task: str, X: pd.DataFrame) -> NDArray:
    """Predictions, or the probabilities of classes."""
    return model.predict(X) if task == "regression" else model.predict_proba(X)


def facts(model: Any, task: str, X: pd.DataFrame) -> int:
    """How many of four things a fitted model has."""
    has_score = np.isfinite(model.oof_score_)
    has_shares = np.isclose(model.feature_importances_.sum(), 1.0)
    bounds = model.predict_interval(X) if task == "regression" else model.predict_set(X)
    return sum(map(bool, (has_score, has_shares, len(model.history_) > 0, len(bounds) == len(X))))


def kept(model: Any, X: pd.DataFrame) -> str:
    """Whether the model has as many bags as were set, and no radial features, which were not."""
    width = model.transform(X).shape[1]
    outputs = len(model.classes_) if hasattr(model, "classes_") else 1
    radial = any(part.is_row for part, _ in candidates_of(model.network_))
    return "yes" if width == SET["n_bags"] * outputs and not radial else "no"


def measured(n_rows: int, task: str, is_set: bool) -> list[dict[str, object]]:
    """Fit one table from every source and compare."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        frame = generated(n_rows, task)
        for i in range(0, n_rows, PART_ROWS):
            part = frame[i : i + PART_ROWS]
            part.to_parquet(Path(name) / f"part-{i:09}.parquet", index=False)
        # The rows of another seed: generated() draws by the number of rows.
        X = inputs(generated(TEST_ROWS, task))
        first: NDArray | None = None
        for source in SOURCES:
            began = time.perf_counter()
            model = fitted(source, task, SET if is_set else {}, Path(name))
            seconds = time.perf_counter() - began
            found = predictions(model, task, X)
            first = found if first is None else first
            rows.append(
                {
                    "task": task,
                    "rows": n_rows,
                    "set": "yes" if is_set else "no",
                    "source": source,
                    "difference": float(np.abs(found - first).max() / first.std()),
                    "has": facts(model, task, X[:100]),
                    "kept": kept(model, X[:100]) if is_set else "–",
                    "oof_score": float(model.oof_score_),
                    "seconds": seconds,
                }
            )
            print(rows[-1], flush=True)
    return rows


def page(rows: pd.DataFrame) -> str:
    """The page of all figures."""
    shown = rows.drop(columns="code").assign(
        difference=rows["difference"].map("{:.0e}".format),
        has=rows["has"].map("{} of 4".format),
        seconds=rows["seconds"].map("{:.0f}".format),
    )
    return HEADER + "\n" + markdown_table(shown)


def main() -> None:
    """Fit every table that this code has not fitted before, and write all figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.same_model", description=__doc__)
    parser.add_argument("--rows", default=",".join(map(str, ROWS)), help="numbers of rows")
    parser.add_argument("--tasks", default=",".join(TASKS), help="of regression, classification")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/same_model.md"))
    arguments = parser.parse_args()
    made_with = current()
    path = arguments.out.with_suffix(".csv")
    rows = known_rows(path, made_with.code).to_dict("records")
    done = {(row["task"], row["rows"]) for row in rows}
    for k, n_rows in enumerate(map(int, arguments.rows.split(","))):
        for task in arguments.tasks.split(","):
            if (task, n_rows) not in done:
                new = measured(n_rows, task, is_set=k % 2 == 1)
                rows += [{**row, "code": made_with.code} for row in new]
                write_table(path, pd.DataFrame(rows), [made_with])
    print(write_report(arguments.out, page(pd.DataFrame(rows)), [made_with]))


if __name__ == "__main__":
    main()
