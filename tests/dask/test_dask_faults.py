"""Dask: workers that are killed, a scheduler that goes away, and data that cannot be fitted."""

import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

import dask
import dask.array as da
import dask.dataframe as dd
import pandas as pd
from block_rows import SHORT_FITS, SMALL_CHUNKS, regression_rows
from dask_workers import frame_on_dask, named, on_dask, two_workers
from small_sizes import with_sizes

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost._auto.local_kernels import LeafRows
from rfrboost._model.leaves import LocalSums
from rfrboost._model.samplers import SWIM
from rfrboost._numerics.sizes import Sizes
from rfrboost._tables.encoder import Encoder
from rfrboost._tables.fit import fit_encoder
from rfrboost.dask import DaskRFRBoostClassifier, DaskRFRBoostRegressor

SMALL = {"n_features": (20, 15), "random_state": 0}


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


def kill_one(client):
    """SIGKILL the worker that holds most, and return its process."""
    held = {address: len(keys) for address, keys in client.has_what().items()}
    victim = client.run(os.getpid)[max(held, key=held.get)]
    os.kill(victim, signal.SIGKILL)
    return victim


class Interrupting:
    """SWIM features; before those of the second layer are drawn, ``happens`` is called."""

    swim = SWIM(0.5, "tanh")

    def __init__(self, happens=None):
        self.happens = happens
        self.n_draws = 0

    def n_rows(self, n_features):
        return self.swim.n_rows(n_features)

    def sample(self, Z, Y, n_features, rng):
        self.n_draws += 1
        # A layer has two draws, of Φ and of x.
        if self.n_draws == 3 and self.happens is not None:
            self.happens()
        return self.swim.sample(Z, Y, n_features, rng)


@pytest.mark.parametrize("during", ["between two layers", "while the second layer is fitted"])
def test_a_worker_killed_during_fit_changes_nothing(client, during):
    X, y, w = regression_rows()
    local = RFRBoostRegressor(3, **SMALL, features=Interrupting())
    expected = with_sizes(local, SMALL_CHUNKS).fit(X, y, w).predict(X)
    sampler = Interrupting()
    model = with_sizes(DaskRFRBoostRegressor(3, **SMALL, features=sampler), SMALL_CHUNKS)
    killed = []
    fitted_by_then = []

    def kill():
        killed.append(kill_one(client))
        fitted_by_then.append(hasattr(model, "network_"))

    # To find the worker takes a few messages to the scheduler; the layers left take hundreds.
    thread = threading.Thread(target=kill)
    sampler.happens = kill if during == "between two layers" else thread.start
    model.fit(*on_dask(X, y, w, [100, 100]))
    if sampler.happens is not kill:
        thread.join()
    assert fitted_by_then == [False]
    assert killed[0] not in client.run(os.getpid).values()
    np.testing.assert_allclose(model.to_local().predict(X), expected, rtol=0, atol=1e-9)


def parts_of(encoder):
    """What an encoder is made from."""
    return tuple(getattr(encoder, field.name) for field in fields(Encoder) if field.init)


def test_a_worker_killed_while_encoded_rows_are_streamed_changes_nothing(client):
    X, y, w = regression_rows()
    sizes = Sizes(sampled_rows=200, table_bytes=1)
    settings = {"n_features": (20, 15), "n_bags": 2, "random_state": 0}
    expected = with_sizes(RFRBoostRegressor(**settings), sizes).fit(X, y, w).predict(X)
    killed = []

    class Killing(Encoder):
        """An encoder that is sent to workers; one of these is then killed, once."""

        def __reduce__(self):
            if not killed:
                killed.append(kill_one(client))
            return Encoder, parts_of(self)

    def fit_killing(*given):
        encoder, encoded = fit_encoder(*given)
        return Killing(*parts_of(encoder)), encoded

    model = with_sizes(DaskRFRBoostRegressor(**settings), sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rfrboost._estimators.routes.fit_encoder", fit_killing)
        model.fit(*on_dask(X, y, w, [30] * 9))
    assert killed[0] not in client.run(os.getpid).values()
    np.testing.assert_allclose(model.to_local().predict(X), expected, rtol=0, atol=1e-9)


def test_a_worker_killed_while_leaves_are_fitted_changes_nothing(client):
    X, y, w = regression_rows()
    sizes = Sizes(shared_draw_rows=0, most_centres=40, drawn_centres=30, leaf_held_out_rows=2)
    settings = {"n_bags": 2, "features": ("swim", "bumps"), "random_state": 0}
    local = with_sizes(RFRBoostRegressor(**settings), sizes).fit(X, y, w)
    leaves = [layer.features.from_x for layer in local.network_.layers if is_local(layer)]
    assert len(leaves[0].leaves) > 4, "more leaves than are under way at a time"
    sent = []
    killed = []

    class Killing(LeafRows):
        """The rows of a leaf on their way to a worker; with the third, one of these is killed."""

        def __reduce__(self):
            sent.append(len(self.bags.y))
            if len(sent) == 3:
                killed.append(kill_one(client))
            return LeafRows, (self.bags, self.L, self.rng, self.seconds)

    model = with_sizes(DaskRFRBoostRegressor(**settings), sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rfrboost._auto.local_kernels.LeafRows", Killing)
        model.fit(*on_dask(X, y, w, [30] * 9))
    assert killed[0] not in client.run(os.getpid).values()
    assert len(sent) >= len(leaves[0].leaves), "every leaf was sent to a worker"
    np.testing.assert_allclose(model.to_local().predict(X), local.predict(X), rtol=0, atol=1e-9)


def is_local(layer):
    """Whether a layer of the network is made of leaves."""
    return isinstance(layer.features.from_x, LocalSums)


def test_a_worker_killed_during_predict_changes_nothing(client):
    X, y, _ = regression_rows()
    model = with_sizes(DaskRFRBoostRegressor(1, **SMALL), SHORT_FITS)
    model.fit(*on_dask(X, y, None, [100]))
    slow = on_dask(X, y, None, [30] * 9)[0].map_blocks(slowly, dtype=float)
    future = client.compute(model.predict(slow))
    while not any(client.has_what().values()):
        time.sleep(0.01)
    victim = kill_one(client)
    np.testing.assert_allclose(future.result(), model.to_local().predict(X), atol=1e-9)
    assert victim not in client.run(os.getpid).values()


def run_script(path, text, *words):
    """What a script prints, which may import the modules of the tests."""
    path.write_text(text)
    root = Path(__file__).parent.parent.parent
    folders = [root, root / "tests" / "support", Path(__file__).parent]
    paths = [*map(str, folders), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, path, *words]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return run.stdout


def test_the_client_holds_no_more_than_a_sample_of_the_rows(client):
    """Ten more chunks of rows take less of its memory than two, with what is noted of tasks."""
    chunk_rows = 32_000
    peaks = []
    for n_chunks in (2, 12):
        size = (n_chunks * chunk_rows, 20)
        X = da.random.default_rng(0).normal(size=size, chunks=(chunk_rows, 20))
        model = DaskRFRBoostRegressor(1, n_features=(16, 16), metric="agop", random_state=0)
        with_sizes(model, Sizes(chunk_rows=chunk_rows))
        tracemalloc.start()
        try:
            model.fit(X, X[:, 0] * X[:, 1])
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] - peaks[0] < 2 * chunk_rows * 20 * 8


def slowly(block):
    time.sleep(0.1)
    return block


SCHEDULER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


LEFT_ALONE = """
import os
import subprocess
import sys

import dask
from block_rows import regression_rows
from dask_workers import on_dask
from distributed import Client
from rfrboost.dask import DaskRFRBoostRegressor
from test_dask_faults import SMALL, Interrupting

if __name__ == "__main__":
    X, y, _ = regression_rows()
    try:
        DaskRFRBoostRegressor(1).fit(*on_dask(X, y, None, [100]))
    except RuntimeError as error:
        print(error)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    cluster = subprocess.Popen([sys.executable, sys.argv[1]], text=True, **pipes)
    model = DaskRFRBoostRegressor(2, **SMALL, features=Interrupting(cluster.kill))
    address = cluster.stdout.readline().strip()
    model.client = Client(address, timeout="600s")
    # A client that has lost its scheduler tries for this long to find it again.
    with dask.config.set({"distributed.comm.timeouts.connect": "2s"}):
        try:
            model.fit(*on_dask(X, y, None, [100]))
        except ConnectionError as error:
            print(hasattr(model, "network_"), error, flush=True)
    # A client without a scheduler does not end by itself.
    os._exit(0)
"""


def test_no_client_and_a_scheduler_that_goes_away_are_one_error_each(tmp_path):
    """In its own process, because a client that has lost its scheduler logs errors for a while."""
    (tmp_path / "scheduler.py").write_text(SCHEDULER)
    said = run_script(tmp_path / "alone.py", LEFT_ALONE, tmp_path / "scheduler.py")
    without, lost = said.splitlines()
    assert without.startswith("There is no Dask client.")
    assert lost.startswith("False The Dask scheduler")
    assert "went away" in lost


def broken(X, y):
    """Data that cannot be fitted, and what is said of it."""
    nan = X.copy()
    nan[250, 1] = np.nan
    X_, y_, _ = on_dask(X, y, None, [100, 100])
    frame = frame_on_dask(named(X), [100, 100])
    other = frame.map_partitions(renamed, meta=named(X).iloc[:0], enforce_metadata=False)
    no_weight = da.zeros(len(y), chunks=100)
    return {
        "not finite": (da.from_array(nan, chunks=(100, 4)), y_, None, "Partition 2: .*NaN"),
        "lengths": (X_, y_[:-1], None, "X has 300 rows and y 299"),
        "sizes": (X_[X_[:, 0] > -9], y_[y_ > 5], None, "Partition .: X has 100 rows and y "),
        "cuts": (frame, y_.rechunk(50), None, "are cut differently"),
        "names": (other, y_, None, "Partition 1: the columns of X .*x0"),
        "nothing": (X_[:0], y_[:0], None, "every partition is empty"),
        "no weight": (X_, y_, no_weight, "of weight zero|zero for every row|at least one non-zero"),
        "negative": (X_, y_, no_weight - 1.0, "Partition .: weights must be zero or positive"),
        "huge": (X_ * 1e80, y_, None, "values as large as"),
    }


def renamed(frame, partition_info=None):
    number = 0 if partition_info is None else partition_info["number"]
    return frame.rename(columns={"x0": "x9"}) if number == 1 else frame


@pytest.mark.parametrize("n_layers", [1, "auto"])
@pytest.mark.parametrize("what", broken(*regression_rows()[:2]))
def test_what_cannot_be_fitted_is_said_in_one_sentence(client, what, n_layers):
    X, y, w, message = broken(*regression_rows()[:2])[what]
    if n_layers == "auto" and what in ("not finite", "huge"):
        pytest.skip("automatic fits encode missing values and large numbers")
    model = with_sizes(DaskRFRBoostRegressor(n_layers, **SMALL), SMALL_CHUNKS)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, w)
    assert not hasattr(model, "network_")


def in_partition_1(collection, change):
    """The collection with its partition 1 changed, which Dask is not told of."""
    parts = collection.to_delayed()
    parts[1] = dask.delayed(change)(parts[1])
    return dd.from_delayed(parts, meta=collection._meta, verify_meta=False)


@pytest.mark.parametrize("sizes", [SMALL_CHUNKS, Sizes(sampled_rows=200, chunk_rows=64)])
@pytest.mark.parametrize("n_layers", [1, "auto"])
def test_labels_that_are_text_in_one_partition(client, n_layers, sizes):
    X, y, _ = regression_rows()
    table = frame_on_dask(named(X).assign(y=(y > 5).astype(int)), [100, 100])
    labels = in_partition_1(table["y"], lambda part: part.astype(str))
    model = with_sizes(DaskRFRBoostClassifier(n_layers, **SMALL), sizes)
    with pytest.raises(ValueError, match="y holds numbers in some rows and text in others"):
        model.fit(table[list(named(X))], labels)
    assert not hasattr(model, "network_")


@pytest.mark.parametrize("sizes", [SMALL_CHUNKS, Sizes(sampled_rows=200, chunk_rows=64)])
@pytest.mark.parametrize("words", [True, False])
def test_text_in_one_partition_of_a_column_of_numbers(client, words, sizes):
    X, y, _ = regression_rows()
    frame = frame_on_dask(named(X), [100, 100])
    change = (lambda part: part.assign(x1="oak")) if words else (lambda part: part.astype("str"))
    model = with_sizes(DaskRFRBoostRegressor(**SMALL), sizes)
    with pytest.raises(ValueError, match=r"Partition 1: Column 'x.' holds text .*, but numbers"):
        model.fit(in_partition_1(frame, change), on_dask(X, y, None, [100, 100])[1])
    assert not hasattr(model, "network_")


@pytest.mark.parametrize("labels", [["low", "high"], [3, 7], [False, True], [0.0, 1.0]])
def test_predictions_have_the_type_that_they_claim(client, labels):
    X, y, _ = regression_rows()
    # Sorted, so that partitions have one class; one has no rows, and one other types.
    order = np.argsort(y)
    labels = np.array(labels)[(y[order] > np.median(y)).astype(int)]
    frame = named(X[order].round(2).astype(np.float32).astype(float)).assign(y=labels)
    table = frame_on_dask(frame, [100, 0, 50])
    columns = list(named(X))
    model = with_sizes(DaskRFRBoostClassifier(1, **SMALL), SHORT_FITS)
    other = in_partition_1(table[columns], lambda part: part.astype(np.float32))
    model.fit(other, table["y"])
    local = with_sizes(RFRBoostClassifier(1, **SMALL), SHORT_FITS).fit(frame[columns], labels)
    expected = local.predict(frame[columns])
    np.testing.assert_array_equal(model.to_local().predict(frame[columns]), expected)
    lazy = model.predict(table[columns])
    assert lazy.dtype == lazy.compute().dtype == pd.Series(labels).dtype
    for number in range(4):
        assert lazy.partitions[number].compute().dtype == lazy.dtype
    assert set(model.predict_proba(table[columns]).dtypes) == {np.dtype(float)}
    array = model.predict(table[columns].to_dask_array(lengths=True))
    assert array.dtype == array.compute().dtype


def test_wrong_arguments_are_refused(client):
    X, y, _ = regression_rows()
    X_, y_, _ = on_dask(X, y, None, [100])
    with pytest.raises(TypeError, match=r"y is ndarray.* RFRBoostRegressor fits"):
        DaskRFRBoostRegressor(1).fit(X_, y)
    with pytest.raises(TypeError, match="X is Delayed"):
        DaskRFRBoostRegressor(1).fit(dask.delayed(X), y_)
    with pytest.raises(ValueError, match="sample_splitting"):
        DaskRFRBoostRegressor(1, sample_splitting=True).fit(X_, y_)
    with pytest.raises(ValueError, match="one class only"):
        DaskRFRBoostClassifier(1).fit(X_, da.ones(300, dtype=int, chunks=100))
    with pytest.raises(ValueError, match="Several labels per row are fitted to rows in memory"):
        DaskRFRBoostClassifier(1).fit(X_, da.ones((300, 2), dtype=int, chunks=(100, 2)))
    model = DaskRFRBoostRegressor(1, **SMALL).fit(frame_on_dask(named(X), [100]), y_)
    with pytest.raises(ValueError, match="yet now missing:\n- x3"):
        model.predict(frame_on_dask(named(X)[["x1", "x0", "x2"]], []))
    with pytest.raises(ValueError, match="4 columns"):
        model.predict(X_[:, :3])
