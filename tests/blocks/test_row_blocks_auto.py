"""Automatic fits of row blocks: the model of the same rows in memory, however many there are."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pytest
from block_rows import cut, output
from fake_clock import Clock, install
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from scipy import sparse
from small_sizes import with_sizes

from rfrboost import RFRBoostClassifier, RFRBoostRegressor, RowBlocks, load
from rfrboost._blocks.reader import BlockArrays
from rfrboost._blocks.sample import BlockSample
from rfrboost._numerics.sizes import Sizes

#: more than 256 rows are many: encoders see a sample, kernel members have leaves, and the encoded
#: table is in a temporary file
LARGE = Sizes(
    sampled_rows=256,
    chunk_rows=128,
    table_bytes=1,
    most_centres=150,
    leaf_held_out_rows=5,
    shared_draw_rows=200,
)
QUICK = {"n_features": 24, "random_state": 0, "n_bags": 2}


def table(n=900, seed=0):
    """Numbers with missing values, a category, a date; a target that is not linear, and labels."""
    rng = default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, 3)), columns=list("abc"))
    X.loc[::11, "c"] = np.nan
    X["tree"] = rng.choice(["ash", "beech", "cedar"], n)
    X["town"] = rng.choice([f"town {k}" for k in range(40)], n)
    X["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), unit="D")
    y = np.sin(2 * X["a"]) + X["a"] * X["b"] + (X["tree"] == "ash") + 0.1 * rng.standard_normal(n)
    return X, y.to_numpy(), np.where(y > 0.3, "high", "low")


@pytest.mark.parametrize("kind", ["pandas", "polars", "array"])
@pytest.mark.parametrize("model", [RFRBoostRegressor, RFRBoostClassifier])
def test_few_rows_are_fitted_as_a_table(model, kind):
    X, y, labels = table(150)
    target = y if model is RFRBoostRegressor else labels
    X = {"pandas": X, "polars": pl.from_pandas(X), "array": X[["a", "b"]].to_numpy()}[kind]
    settings = {"random_state": 0, "n_bags": 2, "n_features": 20, "features": ("swim",)}
    w = default_rng(1).uniform(0.5, 2, 150)
    expected = model(**settings).fit(X, target, w)
    blocks = RowBlocks.from_arrays(X, target, w, block_rows=37)
    streamed = model(**settings).fit(blocks)
    np.testing.assert_array_equal(output(streamed, X), output(expected, X))
    np.testing.assert_array_equal(streamed.oof_prediction_, expected.oof_prediction_)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", [RFRBoostRegressor, RFRBoostClassifier])
def test_many_rows_give_the_model_of_rows_in_memory(model, weighted, tmp_path):
    X, y, labels = table()
    target = y if model is RFRBoostRegressor else labels
    rng = default_rng(1)
    w = np.where(rng.random(900) < 0.1, 0.0, rng.uniform(0.5, 2, 900)) if weighted else None
    expected = with_sizes(model(**QUICK), LARGE).fit(X, target, w)
    # All rows in one block is what several outputs are given in.
    blocks = RowBlocks.from_arrays(X, target, w, block_rows=70, spill_dir=tmp_path)
    fitted = with_sizes(model(**QUICK), LARGE).fit(blocks)
    np.testing.assert_array_equal(output(fitted, X), output(expected, X))
    for name in ("oof_prediction_", "oof_score_", "feature_importances_", "history_"):
        ours, theirs = getattr(fitted, name), getattr(expected, name)
        if name == "history_":
            ours, theirs = ([layer["loss"] for layer in h] for h in (ours, theirs))
        np.testing.assert_array_equal(ours, theirs)
    assert list(tmp_path.iterdir()) == []
    uncertain = fitted.predict_interval if model is RFRBoostRegressor else fitted.predict_set
    assert len(uncertain(X)) == 900
    assert fitted.feature_names_in_.tolist() == list(X)
    assert fitted.score(X, target) > 0.85
    fitted.save(tmp_path / "m")
    np.testing.assert_array_equal(output(load(tmp_path / "m"), X), output(fitted, X))


def test_rows_that_an_encoder_is_fitted_to_have_not_seen_their_own_target():
    """Noise among many levels: encodings that saw their own target would promise too much."""
    rng = default_rng(0)
    X = pd.DataFrame({"level": rng.integers(0, 60, 800).astype(str), "x": rng.random(800)})
    noise = rng.standard_normal(800)
    model = with_sizes(RFRBoostRegressor(**QUICK, categorical_features=["level"]), LARGE)
    assert model.fit(RowBlocks([(X, noise)])).oof_score_ < 0.05


def test_several_outputs():
    X, y, _ = table()
    Y = np.column_stack([y, X["a"]])
    expected = with_sizes(RFRBoostRegressor(**QUICK), LARGE).fit(X, Y).predict(X)
    fitted = with_sizes(RFRBoostRegressor(**QUICK), LARGE).fit(RowBlocks([(X, Y)]))
    np.testing.assert_array_equal(fitted.predict(X), expected)


def test_so_few_rows_of_any_weight_that_none_are_held_out():
    X, y, _ = table()
    w = (np.arange(900) % 30 == 0).astype(float)
    expected = with_sizes(RFRBoostRegressor(random_state=0), LARGE).fit(X, y, w)
    blocks = RowBlocks.from_arrays(X, y, w, block_rows=100)
    fitted = with_sizes(RFRBoostRegressor(random_state=0), LARGE).fit(blocks)
    assert not hasattr(fitted, "oof_score_")
    np.testing.assert_array_equal(fitted.predict(X), expected.predict(X))


def test_a_column_of_text_that_is_no_number_further_on():
    """Arrays are read by all rows; blocks, which are read by a sample, say so."""
    X, y, _ = table()
    X = X[["a"]].assign(n=np.arange(900).astype(str))
    X.loc[777, "n"] = "many"
    with pytest.warns(UserWarning, match="'many' is not"):
        with_sizes(RFRBoostRegressor(**QUICK), LARGE).fit(X, y)
    with pytest.raises(ValueError, match=r"Rows 700 to 799: Column 'n' held numbers written as"):
        with_sizes(RFRBoostRegressor(**QUICK), LARGE).fit(
            RowBlocks.from_arrays(X, y, block_rows=100)
        )


class Changing:
    """Blocks that have other rows when they are read again."""

    def __init__(self, first, then):
        self.rows = [first, then]

    def __iter__(self):
        X, y, _ = table(self.rows.pop(0))
        yield X, y


@pytest.mark.parametrize("then", [800, 1000])
def test_other_rows_in_the_second_reading(then, tmp_path):
    blocks = RowBlocks(Changing(900, then), spill_dir=tmp_path)
    with pytest.raises(ValueError, match="held 900 rows when they were first read and hold"):
        with_sizes(RFRBoostRegressor(**QUICK), LARGE).fit(blocks)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full(monkeypatch, tmp_path):
    X, y, _ = table()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    model = with_sizes(RFRBoostRegressor(**QUICK), LARGE)
    with pytest.raises(OSError, match=r"cannot be written: No space left .*Set spill_dir"):
        model.fit(RowBlocks([(X, y)], spill_dir=tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert not hasattr(model, "network_")
    # Nothing is written without a budget.
    assert hasattr(model.fit(RowBlocks([(X, y)], disk_budget=0)), "oof_score_")


class Made:
    """Blocks that are made when they are asked for: 20,000 rows of 60 numbers."""

    def __iter__(self):
        for seed in range(20):
            X = default_rng(seed).standard_normal((1000, 60))
            yield X, X[:, 0] + np.sin(X[:, 1])


def test_no_copy_of_the_table_is_in_memory(monkeypatch):
    """The table is in a file, and everything else together is smaller."""
    monkeypatch.setattr("rfrboost._auto.bags.SORTED_ENTRIES", 20_000)
    # It makes an array of 32 MB that is never written to.
    monkeypatch.setattr("rfrboost._numerics.threads.keep_freed_memory", lambda: None)
    sizes = replace(LARGE, boosted_rows=500, batch_rows=1000)
    model = with_sizes(RFRBoostRegressor(features="swim", **QUICK), sizes)
    tracemalloc.start()
    try:
        model.fit(RowBlocks(Made()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.oof_score_ > 0.5
    assert peak < 20_000 * 61 * 8


@pytest.mark.parametrize("w", [np.zeros(900), np.arange(900) % 4], ids=["all", "the sample"])
def test_no_weight_in_the_sample(w):
    X, y, _ = table()
    with pytest.raises(ValueError, match="225 evenly spaced rows of 900, is of weight zero"):
        with_sizes(RFRBoostRegressor(**QUICK), LARGE).fit(RowBlocks([(X, y, w)]))


def test_sparse_matrices_of_many_rows():
    rng = default_rng(0)
    X = rng.standard_normal((600, 5)) * (rng.random((600, 5)) < 0.5)
    models = [with_sizes(RFRBoostRegressor(**QUICK), LARGE) for _ in range(2)]
    models[0].fit(sparse.coo_matrix(X), X[:, 0] ** 2)
    models[1].fit(RowBlocks([(sparse.csr_matrix(X), X[:, 0] ** 2)]))
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))


def test_one_class_in_many_rows():
    X, _, _ = table()
    with pytest.raises(ValueError, match="one class only, 'a'"):
        with_sizes(RFRBoostClassifier(**QUICK), LARGE).fit(RowBlocks([(X, np.full(900, "a"))]))


def test_without_time_to_encode_all_rows_the_sample_is_fitted(monkeypatch):
    X, y, _ = table()
    blocks = RowBlocks([(X[i : i + 100], y[i : i + 100]) for i in range(0, len(y), 100)])
    install(monkeypatch, Clock())
    model = with_sizes(RFRBoostRegressor(**QUICK, max_seconds=35.0), LARGE)
    with pytest.warns(UserWarning, match=f"all {len(y):,} rows"):
        model.fit(blocks)
    assert len(model.oof_prediction_) <= LARGE.sampled_rows
    install(monkeypatch, Clock())
    model.set_params(max_seconds=1e9).fit(blocks)
    assert len(model.oof_prediction_) == len(y)


def test_blocks_are_read_until_their_share_of_the_time_is_over(monkeypatch):
    X = default_rng(0).standard_normal((1000, 2))
    blocks = RowBlocks([(X[i : i + 50], X[i : i + 50, 0]) for i in range(0, 1000, 50)])
    install(monkeypatch, Clock())
    with pytest.warns(UserWarning, match="the first 400 rows"):
        sample = BlockSample(BlockArrays(blocks), LARGE, 7.0)
    assert not sample.complete
    assert sample.n_rows == 400
    install(monkeypatch, Clock())
    assert BlockSample(BlockArrays(blocks), LARGE, 1e9).complete
    install(monkeypatch, Clock())
    model = with_sizes(RFRBoostRegressor(**QUICK, max_seconds=26.0), LARGE)
    with pytest.warns(UserWarning, match="too short"):
        model.fit(blocks)
    assert model.score(X, X[:, 0]) > 0.9


def test_what_is_refused_says_where_it_is():
    X, y, labels = table()
    blocks = RowBlocks([(X[["a", "b"]], y)])
    with pytest.raises(ValueError, match="strategy='greedy'"):
        with_sizes(RFRBoostRegressor(strategy="greedy"), LARGE).fit(blocks)
    with pytest.raises(ValueError, match=r"Block 0: .*NaN"):
        with_sizes(RFRBoostRegressor(preprocess=None), LARGE).fit(RowBlocks([(X[["c"]], y)]))
    with pytest.raises(ValueError, match="class_weight needs all labels in memory"):
        with_sizes(RFRBoostClassifier(class_weight="balanced"), LARGE).fit(
            RowBlocks([(X[["a"]], labels)])
        )


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 60), max_size=12), st.integers(0, 400))
def test_a_sample_is_of_evenly_spaced_rows(sizes, n):
    X = np.arange(float(n))[:, None]
    blocks = RowBlocks(cut(X, X[:, 0], None, sizes))
    sample = BlockSample(BlockArrays(blocks), Sizes(sampled_rows=32))
    assert sample.n_rows == n
    if n:
        kept, y, w = sample.sample()
        assert w is None
        np.testing.assert_array_equal(kept[:, 0], y)
        np.testing.assert_array_equal(y, np.arange(0.0, n, sample.every))
        assert len(y) <= 32
        assert sample.every == 1 or n > 16 * sample.every


def test_sparse_matrices_of_any_format():
    rng = default_rng(0)
    X, settings = rng.standard_normal((120, 5)) * (rng.random((120, 5)) < 0.5), {"n_bags": 2}
    expected = RFRBoostRegressor(random_state=0, **settings).fit(X, X[:, 0] ** 2)
    blocks = [(sparse.coo_matrix(X[i]), X[i][:, 0] ** 2) for i in (slice(0, 50), slice(50, 120))]
    streamed = RFRBoostRegressor(random_state=0, **settings).fit(RowBlocks(blocks))
    np.testing.assert_allclose(streamed.predict(X), expected.predict(X), atol=1e-9)


def test_an_index_that_pandas_wrote_is_no_column(tmp_path):
    X, y, _ = table(120)
    frame = X.assign(y=y)
    frame[frame.a > -9].iloc[::-1].to_parquet(tmp_path / "unnamed.parquet")
    frame.set_index(pd.Index(default_rng(1).permutation(120), name="id")).to_parquet(
        tmp_path / "named.parquet"
    )
    unnamed = RowBlocks.from_parquet(tmp_path / "unnamed.parquet", target="y")
    settings = {"random_state": 0, "n_bags": 2, "n_features": 20, "features": ("swim",)}
    model = RFRBoostRegressor(**settings).fit(unnamed)
    assert list(model.feature_names_in_) == list(X)
    dataset = RowBlocks.from_dataset(ds.dataset(tmp_path / "unnamed.parquet"), target="y")
    again = RFRBoostRegressor(**settings).fit(dataset)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    named = RowBlocks.from_parquet(tmp_path / "named.parquet", target="y")
    with pytest.warns(UserWarning, match="'id' looks like an id"):
        assert "id" in RFRBoostRegressor(**settings).fit(named).feature_names_in_


def test_a_sample_keeps_the_kind_of_table():
    X, y, _ = table(90)
    for some in (X, pl.from_pandas(X), sparse.csr_matrix(np.eye(90))):
        blocks = RowBlocks([(some[:50], y[:50]), (some[50:], y[50:])])
        kept = BlockSample(BlockArrays(blocks)).sample()[0]
        assert type(kept) is type(some)
        assert kept.shape == some.shape


def test_rare_events_in_many_rows():
    """Nearly all rows are equal; the model is no worse than always saying 0."""
    rng = default_rng(17)
    X = (rng.random((1500, 3)) < 0.02).astype(float)
    y = (rng.random(1500) < 0.02 + 0.5 * X[:, 0]).astype(int)
    model = with_sizes(RFRBoostClassifier(**QUICK), LARGE)
    model.fit(RowBlocks.from_arrays(X, y, block_rows=400))
    assert model.score(X, y) > (y == 0).mean()


def test_a_table_of_sixteen_distinct_rows():
    """Equal rows are in all folds: each is held out once, and the model knows the rule."""
    rng = default_rng(3)
    X = rng.integers(2, size=(1500, 4)).astype(float)
    rule = X[:, 0] != X[:, 1]
    y = np.where(rng.random(1500) < 0.8, rule, ~rule)
    model = with_sizes(RFRBoostClassifier(**QUICK), LARGE)
    model.fit(RowBlocks.from_arrays(X, y, block_rows=400))
    assert np.isfinite(model.oof_prediction_).all()
    assert model.score(X, y) >= (rule == y).mean() - 0.01
    assert model.oof_score_ >= (rule == y).mean() - 0.02
