"""Dask: whatever the partitions and whichever worker has them, the same model as in memory."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

import dask
import dask.array as da
import dask.dataframe as dd
from block_rows import SHORT_FITS, labelled_rows, output, regression_rows
from dask.delayed import delayed
from dask_workers import CHUNKINGS, cut_as, frame_on_dask, named, on_dask, two_workers
from numpy.random import default_rng
from sklearn.base import clone
from small_sizes import clone_with_sizes, with_sizes

from rfrboost import RFRBoostClassifier, RFRBoostRegressor, load
from rfrboost._dask.cluster import Call, Cluster
from rfrboost._dask.partitions import applied
from rfrboost._numerics.sizes import SIZES
from rfrboost._rows.chunks import TreeSum
from rfrboost.dask import DaskRFRBoostClassifier, DaskRFRBoostRegressor

SMALL = {"n_features": (20, 15), "random_state": 0}
MODELS = {
    "gradient": (DaskRFRBoostRegressor(1, **SMALL), 0),
    "greedy": (DaskRFRBoostRegressor(1, strategy="greedy", **SMALL), 0),
    "huber, single precision": (DaskRFRBoostRegressor(1, loss="huber", l2_step=0.1, **SMALL), 0),
    "normalised, learned metric": (
        DaskRFRBoostRegressor(2, normalize=True, metric="agop", **SMALL),
        0,
    ),
    "two classes": (DaskRFRBoostClassifier(1, **SMALL), 2),
    "four classes": (DaskRFRBoostClassifier(1, **SMALL), 4),
}
AUTOMATIC = DaskRFRBoostRegressor(n_bags=2, features=("swim",), n_features=15, random_state=0)
#: models and the partitions that they are fitted to: classes, of which partitions lack some, to all
#: kinds, and numbers, whose means and scales are sums over partitions, to those that are unequal
CUTS = [
    *(("four classes", chunking) for chunking in CHUNKINGS),
    *(("gradient", chunking) for chunking in ("one row each", "empty ones", "frame")),
]


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


def local(model):
    """The local estimator with the same parameters and sizes."""
    kind = RFRBoostRegressor if hasattr(model, "quantile") else RFRBoostClassifier
    return with_sizes(kind(**model.get_params()), model._sizes)


def rows_for(classes, weighted=True):
    X, y, w = labelled_rows(classes) if classes else regression_rows()
    # Sorted, so that most partitions lack most classes.
    order = np.argsort(y, kind="stable")
    return X[order], y[order], w[order] if weighted else None


def check(model, rows, collections, sizes=SHORT_FITS):
    """Predictions of the fit on Dask, by Dask and by the local model, are those in memory."""
    X, y, w = rows
    model = clone_with_sizes(model, sizes)
    expected = output(local(model).fit(X, y, w), X)
    fitted = model.fit(*collections)
    table = X if not hasattr(fitted, "feature_names_in_") else named(X)
    np.testing.assert_allclose(output(fitted.to_local(), table), expected, rtol=0, atol=1e-9)
    lazy = output(fitted, collections[0])
    assert dask.is_dask_collection(lazy)
    np.testing.assert_allclose(np.asarray(lazy.compute()), expected, rtol=0, atol=1e-9)
    return fitted


@pytest.mark.parametrize(("name", "chunking"), CUTS)
def test_partitions_of_any_kind_give_the_local_model(client, name, chunking):
    model, classes = MODELS[name]
    rows = rows_for(classes)
    check(model, rows, cut_as(chunking, *rows))


@pytest.mark.parametrize("name", [name for name in MODELS if name != "four classes"])
def test_every_model_is_the_local_one(client, name):
    model, classes = MODELS[name]
    rows = rows_for(classes, weighted=False)
    check(model, rows, cut_as("uneven", *rows))


def test_chunks_of_the_default_length(client):
    rows = regression_rows(140_001)
    model = DaskRFRBoostRegressor(1, n_features=(8, 8), random_state=0)
    check(model, rows, on_dask(*rows, [99_999]), SIZES)


def test_several_targets(client):
    X, y, _ = regression_rows()
    Y = np.column_stack([y, X[:, 0]])
    collections = (da.from_array(X, chunks=(90, 4)), da.from_array(Y, chunks=(90, 1)))
    check(MODELS["gradient"][0], (X, Y, None), collections)


class Added:
    """A sum that shows in which order it was made."""

    def __init__(self, number):
        self.order = str(number)

    def take(self, part):
        self.order = f"({self.order}+{part.order})"


@pytest.mark.parametrize("n", [1, 8, 9, 65])
def test_sums_are_the_tree_that_they_are_in_memory(client, n):
    cluster, tree = Cluster(client), TreeSum()
    parts = cluster.map(applied, Call(Added, ()), list(range(n)))
    for number in range(n):
        tree.add(Added(number))
    assert cluster.total(parts).order == tree.total().order


def test_layers_are_added_to_a_fitted_model(client):
    X, y, _ = regression_rows()
    collections = on_dask(X, y, None, [100])
    model = clone_with_sizes(MODELS["gradient"][0], SHORT_FITS)
    model.set_params(warm_start=True).fit(*collections)
    model.set_params(n_layers=2).fit(*collections)
    once = local(model).fit(X, y)
    assert len(model.network_.layers) == 2
    np.testing.assert_allclose(model.predict(X), once.predict(X), atol=1e-9)


def test_columns_are_found_by_name_in_any_order(client):
    X, y, _ = regression_rows()
    frame = named(X)
    names = list(frame.columns)
    backwards = frame.assign(note="-")[["note", *names[::-1]]]

    def on_workers(rows):
        return dd.from_pandas(rows, npartitions=3)

    target = on_workers(pd.Series(y))
    for unfitted in (MODELS["gradient"][0], AUTOMATIC):
        model = clone_with_sizes(unfitted, SHORT_FITS).fit(on_workers(frame), target)
        for rows in (frame[names[::-1]], backwards):
            right, found = (model.predict(on_workers(A)).compute() for A in (frame, rows))
            np.testing.assert_array_equal(found, right)
            np.testing.assert_array_equal(model.predict(rows), model.predict(frame))
    # Partitions whose columns are not all in the order of the first.
    parts = [delayed(frame[:100]), delayed(frame[names[::-1]][100:])]
    mixed = dd.from_delayed(parts, meta=frame[:0], verify_meta=False)
    halves = dd.from_delayed([delayed(pd.Series(y)[:100]), delayed(pd.Series(y)[100:])])
    for unfitted in (MODELS["gradient"][0], AUTOMATIC):
        model = clone_with_sizes(unfitted, SHORT_FITS).fit(mixed, halves)
        right = local(model).fit(frame, y)
        np.testing.assert_allclose(model.to_local().predict(frame), right.predict(frame), atol=1e-9)


def test_layers_are_added_on_the_columns_of_the_last_fit(client):
    X, y, _ = regression_rows()
    frame, target = named(X), dd.from_pandas(pd.Series(y), npartitions=2)
    model = clone_with_sizes(MODELS["gradient"][0], SHORT_FITS).set_params(warm_start=True)
    model.fit(dd.from_pandas(frame, npartitions=2), target)
    backwards = frame[list(frame.columns[::-1])]
    model.set_params(n_layers=2).fit(dd.from_pandas(backwards, npartitions=2), target)
    once = local(model).fit(frame, y)
    np.testing.assert_allclose(model.to_local().predict(frame), once.predict(frame), atol=1e-9)
    renamed = dd.from_pandas(frame.rename(columns={"x3": "x4"}), npartitions=2)
    with pytest.raises(ValueError, match=r"last fit.*: 'x3' is missing"):
        model.fit(renamed, target)


def test_partitions_are_left_as_they_are(client):
    """A second fit of the same data, kept by the workers, finds the same numbers."""
    X, y, _ = regression_rows()
    kept = client.persist(on_dask(X, y, None, [100])[:2])
    model = clone_with_sizes(MODELS["normalised, learned metric"][0], SHORT_FITS)
    first = model.fit(*kept).to_local().predict(X)
    np.testing.assert_array_equal(model.fit(*kept).to_local().predict(X), first)
    np.testing.assert_array_equal(kept[0].compute(), X)


def mixed_table(n=300):
    X, y, w = regression_rows(n)
    frame = named(X).assign(kind=np.where(X[:, 1] > 0, "up", "down"))
    frame.loc[::7, "x0"] = np.nan
    return frame, y, w


@pytest.mark.parametrize("classes", [False, True])
def test_automatic_fits_of_many_rows_are_those_in_memory(client, classes):
    frame, y, w = mixed_table()
    # Noise, so that held-out rows stop the fit after few layers.
    y = y + default_rng(1).standard_normal(len(y))
    y = np.where(y > 5, "more", "less") if classes else y
    model = (DaskRFRBoostClassifier if classes else DaskRFRBoostRegressor)(
        n_features=(20, 20), n_bags=2, random_state=0
    )
    with_sizes(model, replace(SHORT_FITS, sampled_rows=200, table_bytes=1))
    table = frame_on_dask(frame.assign(y=y, w=w), [100, 0, 50, 30, 20])
    expected = local(model).fit(frame, y, w)
    model.fit(table[list(frame)], table["y"], table["w"])
    predicted = output(expected, frame)
    np.testing.assert_allclose(output(model.to_local(), frame), predicted, atol=1e-9)
    np.testing.assert_allclose(output(model, table[list(frame)]).compute(), predicted, atol=1e-9)
    np.testing.assert_allclose(model.oof_prediction_, expected.oof_prediction_, atol=1e-9)
    np.testing.assert_allclose(model.feature_importances_, expected.feature_importances_, atol=1e-9)


def test_automatic_fits_of_few_rows_are_those_in_memory(client):
    frame, y, w = mixed_table(120)
    model = DaskRFRBoostRegressor(n_features=(20, 20), n_bags=2, random_state=0)
    table = frame_on_dask(frame.assign(y=y, w=w), [0, 50])
    model.fit(table[list(frame)], table["y"], table["w"])
    expected = local(model).fit(frame, y, w)
    np.testing.assert_array_equal(model.to_local().predict(frame), expected.predict(frame))
    np.testing.assert_array_equal(model.oof_prediction_, expected.oof_prediction_)


def test_what_an_earlier_fit_knew_is_forgotten(client):
    X, y, _ = regression_rows(120)
    model = DaskRFRBoostRegressor(1, random_state=0)
    model.client = client
    frame = frame_on_dask(named(X).assign(y=y), [60])
    model.fit(frame[list(named(X))], frame["y"])
    assert hasattr(model, "feature_names_in_")
    model.set_params(n_layers="auto", n_bags=2).fit(*on_dask(X, y, None, [60])[:2])
    assert not hasattr(model, "feature_names_in_")
    assert model.client is client


def test_what_is_for_rows_in_memory_says_so(client):
    X, y, _ = regression_rows(120)
    model = DaskRFRBoostRegressor(n_bags=2, random_state=0)
    model.fit(*on_dask(X, y, None, [60])[:2])
    X_ = on_dask(X, y, None, [60])[0]
    calls = (
        model.predict_interval,
        model.input_gradient,
        model.encode,
        model.onnx_inputs,
        model.staged_predict,
        lambda X: model.predict(X, return_std=True),
    )
    for call in calls:
        call(X)
        with pytest.raises(TypeError, match="rows in memory"):
            call(X_)


def test_predictions_are_lazy_and_lie_as_their_rows_do(client):
    X, y, _ = rows_for(4)
    model = with_sizes(DaskRFRBoostClassifier(1, **SMALL), SHORT_FITS)
    model.fit(*on_dask(X, y, None, [100]))

    def fails(block):
        raise RuntimeError("computed")

    never = on_dask(X, y, None, [10, 20])[0].map_blocks(fails, dtype=float)
    probabilities = model.predict_proba(never)
    assert probabilities.chunks == ((10, 20, 270), (4,))
    assert model.predict(never).chunks == ((10, 20, 270),)
    with pytest.raises(RuntimeError, match="computed"):
        probabilities.compute()
    frame = named(X).set_index(pd.Index(np.arange(len(X)) * 3))
    with pytest.warns(UserWarning, match="feature names"):
        found = model.predict_proba(frame_on_dask(frame, [0, 7])).compute()
    assert list(found.columns) == list(model.classes_)
    assert (found.index == frame.index).all()


def test_the_model_is_an_ordinary_one(client, tmp_path):
    X, y, _ = regression_rows()
    model = clone(MODELS["gradient"][0])
    model.client = client
    model.fit(*on_dask(X, y, None, [100]))
    ordinary = model.to_local()
    assert type(ordinary) is RFRBoostRegressor
    expected = ordinary.predict(X)
    model.save(tmp_path / "model")
    for other in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), model):
        np.testing.assert_array_equal(other.predict(X), expected)
    pytest.importorskip("onnx", reason="onnx is not installed")
    assert model.to_onnx() == ordinary.to_onnx()
    assert set(model.get_params()) == set(ordinary.get_params())
