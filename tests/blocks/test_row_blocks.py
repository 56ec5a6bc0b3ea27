"""Row blocks: whatever the blocks and wherever the rows are, the same model as in memory."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as arrow_dataset
import pyarrow.parquet as pq
import pytest
from block_rows import SMALL_CHUNKS, cut, labelled_rows, output, regression_rows
from numpy.random import default_rng
from sklearn.base import clone
from small_sizes import clone_with_sizes, with_sizes

from rfrboost import (
    RFNNClassifier,
    RFNNRegressor,
    RFRBoostClassifier,
    RFRBoostRegressor,
    RowBlocks,
    load,
)
from rfrboost._numerics.sizes import SIZES, Sizes

BLOCKS = {
    "one row each": [1] * 300,
    "uneven, some empty": [0, 17, 0, 0, 130, 3, 0],
    "as long as a chunk": [64] * 4,
    "one block": [],
}
SMALL = {"n_features": (20, 15), "random_state": 0}
MODELS = {
    "gradient": (RFRBoostRegressor(3, **SMALL), 0),
    "single precision": (RFRBoostRegressor(2, **SMALL, l2_step=0.1), 0),
    "greedy": (RFRBoostRegressor(3, strategy="greedy", **SMALL), 0),
    "diagonal": (
        RFRBoostRegressor(
            2,
            strategy="greedy",
            step_matrix="diagonal",
            initial="swim",
            hidden_dim=10,
            random_state=0,
        ),
        0,
    ),
    "huber": (RFRBoostRegressor(2, loss="huber", **SMALL), 0),
    "quantiles": (RFRBoostRegressor(2, loss="quantile", quantile=(0.2, 0.7), **SMALL), 0),
    "poisson": (RFRBoostRegressor(2, loss="poisson", **SMALL), 0),
    "normalised": (RFRBoostRegressor(2, normalize=True, **SMALL), 0),
    "learned metric": (RFRBoostRegressor(3, metric="agop", **SMALL), 0),
    "no layers": (RFRBoostRegressor(0), 0),
    "random features": (RFNNRegressor(30, random_state=0), 0),
    "two classes": (RFRBoostClassifier(2, **SMALL), 2),
    "four classes": (RFRBoostClassifier(2, metric="agop", **SMALL), 4),
    "random features, classes": (RFNNClassifier(30, random_state=0), 3),
}


def rows_for(classes, weighted):
    X, y, w = labelled_rows(classes) if classes else regression_rows()
    return X, y, w if weighted else None


def check(model, X, y, w, blocks, sizes=SMALL_CHUNKS):
    """The model of the blocks is that of the arrays, to the bit."""
    expected = clone_with_sizes(model, sizes).fit(X, y, w)
    streamed = clone_with_sizes(model, sizes).fit(blocks)
    names = getattr(streamed, "feature_names_in_", None)
    rows = X if names is None else pd.DataFrame(X, columns=names)
    np.testing.assert_array_equal(output(streamed, rows), output(expected, X))
    records = [[r["loss"] for r in m.history_] for m in (streamed, expected)]
    np.testing.assert_array_equal(*records)
    return streamed


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_the_one_in_memory(name, weighted):
    # The last digits of small heads take many passes.
    sizes = Sizes(chunk_rows=64, exact_head_entries=0)
    if name == "single precision":
        sizes = replace(sizes, single_precision_entries=0)
    model, classes = MODELS[name]
    X, y, w = rows_for(classes, weighted)
    blocks = cut(X, y, w, BLOCKS["uneven, some empty"])
    for budget in (16e9, 0) if weighted else (12_000,):
        fitted = check(model, X, y, w, RowBlocks(blocks, disk_budget=budget), sizes)
    dtypes = {layer.features.dtype for layer in fitted.network_.layers}
    assert (np.dtype(np.float32) in dtypes) == (name == "single precision")


@pytest.mark.parametrize("sizes", [SMALL_CHUNKS, SIZES], ids=["small chunks", "one chunk"])
@pytest.mark.parametrize("blocks", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize("name", ["gradient", "four classes"])
def test_blocks_of_any_size_give_the_same_model(name, blocks, sizes):
    model, classes = MODELS[name]
    X, y, w = rows_for(classes, True)
    check(model, X, y, w, RowBlocks(cut(X, y, w, blocks)), sizes)


def test_chunks_of_the_default_length():
    X, y, w = regression_rows(70_001)
    model = RFRBoostRegressor(1, n_features=(8, 8), metric="agop", random_state=0)
    check(model, X, y, w, RowBlocks.from_arrays(X, y, w, block_rows=9_999), SIZES)


@pytest.mark.parametrize("seconds", [0.0, np.inf])
@pytest.mark.parametrize("name", ["gradient", "four classes", "normalised"])
def test_what_is_stored_and_what_is_made_again_does_not_matter(name, seconds, monkeypatch):
    """A disk that takes no time, so that everything is stored, and one that takes for ever."""
    monkeypatch.setattr("rfrboost._rows.spill.Spill.time_for", lambda self, size: seconds)
    model, classes = MODELS[name]
    X, y, w = rows_for(classes, True)
    check(model, X, y, w, RowBlocks(cut(X, y, w, [100, 100])))


def test_arrays_maps_frames_and_files_are_read_alike(tmp_path):
    X, y, w = regression_rows()
    model = MODELS["gradient"][0]
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names)
    whole = frame.assign(y=y, w=w)
    np.save(tmp_path / "X.npy", X)
    for k, s in enumerate((slice(0, 120), slice(120, 121), slice(121, 300))):
        whole.iloc[s].to_parquet(tmp_path / f"part-{k}.parquet", index=False)
    roles = {"target": "y", "weight": "w"}
    dataset = arrow_dataset.dataset(sorted(tmp_path.glob("*.parquet")))
    parts = [tmp_path / f"part-{k}.parquet" for k in range(3)]
    blocks = [
        RowBlocks.from_arrays(np.load(tmp_path / "X.npy", mmap_mode="r"), y, w, block_rows=70),
        RowBlocks.from_arrays(np.asfortranarray(X), y, w),
        RowBlocks.from_arrays(frame, pd.Series(y), pd.Series(w), block_rows=33),
        RowBlocks([(pl.DataFrame(frame), pl.Series(y), w)]),
        RowBlocks.from_parquet(tmp_path, **roles),
        RowBlocks.from_parquet(map(str, parts), columns=names, **roles),
        RowBlocks.from_dataset(dataset, **roles),
    ]
    fitted = [check(model, X, y, w, some) for some in blocks]
    assert [hasattr(m, "feature_names_in_") for m in fitted] == [False, False] + [True] * 5
    assert fitted[-1].feature_names_in_.tolist() == names
    backwards = fitted[-1].predict(frame[names[::-1]])
    assert np.array_equal(backwards, fitted[-1].predict(frame))


def test_float32_blocks_are_those_of_a_float32_array():
    X, y, w = regression_rows()
    X = X.astype(np.float32)
    check(MODELS["gradient"][0], X, y, w, RowBlocks.from_arrays(X, y, w, block_rows=50))


def test_several_targets(tmp_path):
    X, y, w = regression_rows()
    Y = np.column_stack([y, -(y**2)])
    model = check(MODELS["gradient"][0], X, Y, w, RowBlocks(cut(X, Y, w, [10, 100])))
    assert model.predict(X).shape == (300, 2)
    pd.DataFrame(X, columns=list("abcd")).assign(u=Y[:, 0], v=Y[:, 1]).to_parquet(tmp_path / "t")
    blocks = RowBlocks.from_parquet(tmp_path / "t", target=["u", "v"])
    check(MODELS["gradient"][0], X, Y, None, blocks)
    one = RowBlocks.from_parquet(tmp_path / "t", target=["u"], columns=list("abcd"))
    frame = pd.read_parquet(tmp_path / "t")[list("abcd")]
    assert clone(model).fit(one).predict(frame).shape == (300, 1)


@pytest.mark.parametrize("labels", [[3, 1, 2], [True, False], ["b", "a"], [2.0, 1.0]])
def test_labels_of_any_type_are_found_wherever_they_are(labels):
    """A class that is in the last block only, blocks of one class, and empty blocks."""
    X, _, w = regression_rows()
    y = np.array(labels)[np.sort(np.arange(300) % len(labels))]
    w[y == labels[0]] += 0.1
    model = check(MODELS["two classes"][0], X, y, w, RowBlocks(cut(X, y, w, [0, 250])))
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    assert model.classes_.dtype == np.array(labels).dtype


def test_many_classes_in_blocks_of_one_row():
    X, _, _ = regression_rows(120)
    y = np.arange(120) % 30
    blocks = RowBlocks(cut(X, y, None, [1] * 50))
    check(RFNNClassifier(8, random_state=0), X, y, None, blocks, Sizes(chunk_rows=32))


def test_rows_of_negligible_weight_are_absent():
    X, y, w = labelled_rows(3)
    w[y == "ash"] = 1e-70
    model = check(MODELS["two classes"][0], X, y, w, RowBlocks(cut(X, y, w, [100])))
    assert model.classes_.tolist() == ["beech", "cedar"]


def test_a_warm_start_adds_layers_with_blocks():
    X, y, w = regression_rows()
    blocks = RowBlocks(cut(X, y, w, [77]))
    model = with_sizes(RFRBoostRegressor(1, warm_start=True, **SMALL), SMALL_CHUNKS).fit(blocks)
    model.set_params(n_layers=3).fit(blocks)
    whole = with_sizes(RFRBoostRegressor(3, **SMALL), SMALL_CHUNKS).fit(blocks)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def test_a_fitted_model_is_an_ordinary_one(tmp_path):
    X, y, w = regression_rows()
    model = clone(MODELS["gradient"][0]).fit(RowBlocks(cut(X, y, w, [77])))
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(X), model.predict(X))
    assert model.n_features_in_ == 4
    assert model.transform(X).shape == (300, 4)


def test_row_blocks_are_read_as_tuples():
    X, y, w = regression_rows(5)
    for blocks in (RowBlocks(cut(X, y, w, [2])), RowBlocks.from_arrays(X, y, w, block_rows=2)):
        read = [np.concatenate(part) for part in zip(*blocks, strict=True)]
        for part, expected in zip(read, (X, y, w), strict=True):
            np.testing.assert_array_equal(part, expected)


def test_memory_does_not_grow_with_the_rows():
    class Made:
        """Blocks that are made when they are asked for."""

        def __init__(self, count):
            self.count = count

        def __iter__(self):
            for k in range(self.count):
                X = default_rng(k).standard_normal((1000, 6))
                yield X, np.sin(X[:, 0])

    peaks = []
    for count in (4, 4, 40):
        tracemalloc.start()
        model = RFRBoostRegressor(2, n_features=32, random_state=0)
        with_sizes(model, Sizes(chunk_rows=1024, draw_bins=4096)).fit(RowBlocks(Made(count)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Ten times the rows, which alone would be 2 MB.
    assert peaks[2] < peaks[1] + 3e5


def test_arrow_tables_written_in_one_order_are_read_in_it(tmp_path):
    table = pa.table({"x": np.arange(200_000.0), "y": np.arange(200_000.0) % 7})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=30_000)
    blocks = RowBlocks.from_parquet(tmp_path / "t.parquet", target="y")
    x = np.concatenate([X["x"].to_numpy() for X, _, _ in blocks])
    np.testing.assert_array_equal(x, np.arange(200_000.0))
