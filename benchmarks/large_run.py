"""One fit of a large table in a process of its own: seconds, memory and accuracy as JSON.

python -m benchmarks.large_run KIND FOLDER

FOLDER has the training rows as Parquet files in ``train`` and ``test.npz``, as
:mod:`benchmarks.large` writes them; the probabilities of the test rows are written there too.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.memory import megabytes
from rfrboost import RFRBoostClassifier, RowBlocks

TARGET = "y"
# Rows of a Parquet file, of a block and of a partition.
PART_ROWS = 65_536
# Threads of every fit; Dask has as many workers of one thread each.
THREADS = 2


class Fitted(NamedTuple):
    """Probabilities of the test rows, seconds of the fit and of predicting, peak memory in MB."""

    probabilities: NDArray
    classes: NDArray
    fit_seconds: float
    predict_seconds: float
    megabytes: float


def training_arrays(folder: Path) -> tuple[NDArray, NDArray]:
    """All training rows in memory."""
    frame = pd.read_parquet(folder / "train")
    return frame.drop(columns=TARGET).to_numpy(), frame[TARGET].to_numpy()


def fitted_arrays(folder: Path, model: Any) -> Fitted:
    """A fit of rows in memory, ours or another library's."""
    X, y = training_arrays(folder)
    X_test = np.load(folder / "test.npz")["X"]
    began = perf_counter()
    model.fit(X, y)
    fitted = perf_counter()
    probabilities = model.predict_proba(X_test)
    ended = perf_counter()
    peak = megabytes("VmHWM")
    return Fitted(probabilities, model.classes_, fitted - began, ended - fitted, peak)


def fitted_blocks(folder: Path) -> Fitted:
    """Our fit of row blocks, read from Parquet files; test rows are predicted block by block."""
    blocks = RowBlocks.from_parquet(folder / "train", target=TARGET)
    model = RFRBoostClassifier(random_state=0, n_jobs=THREADS)
    began = perf_counter()
    model.fit(blocks)
    fitted = perf_counter()
    peak = megabytes("VmHWM")
    frame = pd.DataFrame(np.load(folder / "test.npz")["X"]).add_prefix("x")
    begun = perf_counter()
    parts = [model.predict_proba(frame[i : i + PART_ROWS]) for i in range(0, len(frame), PART_ROWS)]
    seconds = perf_counter() - begun
    return Fitted(np.vstack(parts), model.classes_, fitted - began, seconds, peak)


def fitted_dask(folder: Path) -> Fitted:
    """Our fit by Dask workers that hold the rows; the memory is that of the calling process."""
    import dask.array as da
    import dask.dataframe as dd
    from distributed import Client, LocalCluster, wait

    from rfrboost.dask import DaskRFRBoostClassifier

    with (
        LocalCluster(n_workers=THREADS, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        frame = client.persist(dd.read_parquet(folder / "train"))
        wait(frame)
        model = DaskRFRBoostClassifier(random_state=0, n_jobs=THREADS)
        began = perf_counter()
        model.fit(frame.drop(columns=TARGET), frame[TARGET])
        fitted = perf_counter()
        peak = megabytes("VmHWM")
        X = np.load(folder / "test.npz")["X"]
        rows = client.persist(da.from_array(X, chunks=(PART_ROWS // 4, -1)))
        wait(rows)
        begun = perf_counter()
        names = [f"x{j}" for j in range(X.shape[1])]
        predicted = model.predict_proba(dd.from_dask_array(rows, columns=names)).compute()
        seconds = perf_counter() - begun
        classes = model.to_local().classes_
        return Fitted(np.asarray(predicted), classes, fitted - began, seconds, peak)


def xgboost(**parameters: Any) -> Any:
    """XGBoost with these parameters."""
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=THREADS, **parameters)


def lightgbm() -> Any:
    """LightGBM with default parameters."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=THREADS, verbose=-1)


def ours(max_seconds: float | None = None) -> RFRBoostClassifier:
    """Our default model."""
    return RFRBoostClassifier(random_state=0, n_jobs=THREADS, max_seconds=max_seconds)


#: what is fitted and measured, by its name in the table
KINDS: dict[str, Callable[[Path], Fitted]] = {
    "arrays": lambda folder: fitted_arrays(folder, ours()),
    "Parquet row blocks": fitted_blocks,
    "Dask, two workers": fitted_dask,
    "arrays, 120 s": lambda folder: fitted_arrays(folder, ours(120)),
    "XGBoost, 500 trees": lambda folder: fitted_arrays(folder, xgboost(n_estimators=500)),
    "XGBoost, default": lambda folder: fitted_arrays(folder, xgboost()),
    "LightGBM, default": lambda folder: fitted_arrays(folder, lightgbm()),
}


def main() -> None:
    """Fit one kind, keep its probabilities, and print its figures."""
    kind, folder = sys.argv[1], Path(sys.argv[2])
    found = KINDS[kind](folder)
    y = np.load(folder / "test.npz")[TARGET]
    np.save(folder / f"{kind}.npy", found.probabilities)
    right = found.classes[found.probabilities.argmax(axis=1)] == y
    own = np.searchsorted(found.classes, y)
    likelihood = np.take_along_axis(found.probabilities, own[:, None], axis=1)
    figures = {
        "kind": kind,
        "accuracy": float(right.mean()),
        "log_loss": float(-np.log(np.maximum(likelihood, 1e-15)).mean()),
        "fit_seconds": found.fit_seconds,
        "predict_seconds": found.predict_seconds,
        "megabytes": found.megabytes,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
