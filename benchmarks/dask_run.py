"""One fit of rows in memory, by one process or by two Dask workers, with its seconds and memory.

python -m benchmarks.dask_run local|dask ROWS LAYERS FEATURES FILE

Both kinds fit the same rows, which are in memory before the clock starts. The predictions of the
first rows are written to FILE.
"""

import json
import sys
from pathlib import Path
from time import perf_counter

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

from benchmarks.memory import megabytes
from benchmarks.scale import BLOCK, COLUMNS, block_of
from rfrboost import RFRBoostRegressor
from rfrboost.dask import DaskRFRBoostRegressor

# Rows to predict.
PREDICTED = 10_000


def numbered_rows(first: int, size: int) -> np.ndarray:
    """A block of rows as an array, the target in the last column."""
    table = block_of(first, size)
    return np.column_stack([table.column(j).to_numpy() for j in range(table.num_columns)])


def firsts_and_sizes(n_rows: int) -> list[tuple[int, int]]:
    """The first row and the number of rows of each block."""
    return [(first, min(BLOCK, n_rows - first)) for first in range(0, n_rows, BLOCK)]


def local_fit(n_rows: int, model: RFRBoostRegressor) -> tuple[float, RFRBoostRegressor]:
    """Seconds of a fit in this process, and the model."""
    data = np.concatenate([numbered_rows(*block) for block in firsts_and_sizes(n_rows)])
    X = np.ascontiguousarray(data[:, :-1])
    y = data[:, -1].copy()
    del data
    began = perf_counter()
    model.fit(X, y)
    return perf_counter() - began, model


def dask_fit(n_rows: int, model: DaskRFRBoostRegressor) -> tuple[float, RFRBoostRegressor]:
    """Seconds of a fit by two worker processes with one thread each, which hold the rows."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        blocks = client.map(numbered_rows, *zip(*firsts_and_sizes(n_rows), strict=True))
        shapes = [(size, COLUMNS + 1) for _, size in firsts_and_sizes(n_rows)]
        parts = zip(blocks, shapes, strict=True)
        data = da.concatenate([da.from_delayed(b, shape, float) for b, shape in parts])
        X, y = client.persist([data[:, :-1], data[:, -1]])
        wait([X, y])
        del blocks, data
        began = perf_counter()
        model.fit(X, y)
        return perf_counter() - began, model.to_local()


def main() -> None:
    """Fit once and print as JSON: seconds, seconds in layers, and this process's peak memory."""
    where = sys.argv[1]
    n_rows, layers, features = map(int, sys.argv[2:5])
    file = sys.argv[5]
    bare = megabytes("VmRSS")
    if where == "local":
        model = RFRBoostRegressor(layers, n_features=(features, features), random_state=0)
        seconds, fitted = local_fit(n_rows, model)
    else:
        model = DaskRFRBoostRegressor(layers, n_features=(features, features), random_state=0)
        seconds, fitted = dask_fit(n_rows, model)
    X = numbered_rows(0, min(n_rows, PREDICTED))[:, :-1]
    with Path(file).open("wb") as out:
        np.save(out, fitted.predict(X))
    in_layers = sum(record["seconds"] for record in fitted.history_)
    figures = {"seconds": seconds, "in_layers": in_layers}
    print(json.dumps({**figures, "megabytes": megabytes("VmHWM") - bare}))


if __name__ == "__main__":
    main()
