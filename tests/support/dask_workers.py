"""Dask for tests: two worker processes, and rows cut in every way that Dask cuts them."""

from contextlib import contextmanager, suppress
from itertools import pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

#: lengths of partitions of 300 rows; the remaining rows are the last partition
LENGTHS = {
    "even": [75, 75, 75],
    "uneven": [17, 130, 3, 1, 99],
    "one row each": [1] * 12,
    "empty ones": [0, 120, 0, 0, 80, 100],
    "one": [],
}
CHUNKINGS = [*LENGTHS, "unknown", "frame"]
#: workers may take this long to start or to answer, on a busy machine; a worker that asks a killed
#: one for its results waits as long as a connection may take, and then asks elsewhere
PATIENT = {
    "distributed.comm.timeouts.connect": "120s",
    "distributed.comm.timeouts.tcp": "120s",
    "distributed.scheduler.worker-ttl": "600s",
    # A killed worker that is not back by then is given up, and its tasks wait for ever.
    "distributed.deploy.lost-worker-timeout": "600s",
}


@contextmanager
def two_workers():
    """A client of two worker processes of one thread each."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.config.set(PATIENT):
        cluster = LocalCluster(**options, silence_logs=50)
        try:
            with Client(cluster) as client:
                yield client
        finally:
            # On a busy machine a worker may need longer to end than Dask is willing to wait.
            with suppress(TimeoutError):
                cluster.close()


def edges_of(lengths, n):
    """Where partitions of these lengths begin and end among n rows."""
    return np.cumsum([0, *lengths, n]).clip(max=n).tolist()


def on_dask(X, y, w, lengths):
    """Dask arrays with partitions of these lengths, and X cut across its columns too."""
    rows = tuple(b - a for a, b in pairwise(edges_of(lengths, len(y))))
    arrays = ((X, (rows, (2, X.shape[1] - 2))), (y, (rows,)), (w, (rows,)))
    return tuple(None if a is None else da.from_array(a, chunks=c) for a, c in arrays)


def frame_on_dask(frame, lengths):
    """A Dask data frame with partitions of these lengths."""
    parts = [frame.iloc[a:b] for a, b in pairwise(edges_of(lengths, len(frame)))]
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=frame.iloc[:0])


def named(X):
    """A data frame with columns x0, x1, …"""
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


def cut_as(chunking, X, y, w):
    """The same rows on Dask, cut in a way that has a name."""
    if chunking == "unknown":
        parts = on_dask(X, y, w, LENGTHS["uneven"])
        everything = da.from_array(np.ones(len(y), bool), chunks=parts[1].chunks)
        return tuple(None if a is None else a[everything] for a in parts)
    if chunking == "frame":
        weights = np.ones(len(y)) if w is None else w
        table = frame_on_dask(named(X).assign(y=y, w=weights), LENGTHS["empty ones"])
        return table[list(named(X))], table["y"], None if w is None else table["w"]
    return on_dask(X, y, w, LENGTHS[chunking])
