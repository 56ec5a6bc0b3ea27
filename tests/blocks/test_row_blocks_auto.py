"""Automatic fits of row blocks: as of a table while rows are few, then one network that stops."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pytest
from block_rows import cut, output, regression_rows
from fake_clock import Clock, install
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from scipy import sparse
from small_sizes import clone_with_sizes, with_sizes

from rfrboost import RFRBoostClassifier, RFRBoostRegressor, RowBlocks, load
from rfrboost._blocks.held_out import HeldOutRows, HeldOutStopping
from rfrboost._blocks.reader import BlockArrays, ClassBlockArrays
from rfrboost._blocks.sample import BlockSample
from rfrboost._model.losses import SquaredError
from rfrboost._model.network import Network
from rfrboost._numerics.sizes import Sizes

#: more than 300 rows are many, and a sample has at most 256
LARGE = Sizes(gathered_rows=300, sampled_rows=256, chunk_rows=128)
QUICK = {"n_features": 24, "random_state": 0}


def table(n=900, seed=0):
    """Numbers with missing values, a category, a date; a target that is not linear, and labels."""
    rng = default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, 3)), columns=list("abc"))
    X.loc[::11, "c"] = np.nan
    X["tree"] = rng.choice(["ash", "beech", "cedar"], n)
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


@pytest.mark.parametrize("model", [RFRBoostRegressor, RFRBoostClassifier])
def test_many_rows_are_one_network_whatever_the_blocks(model, tmp_path):
    X, y, labels = table()
    target = y if model is RFRBoostRegressor else labels
    sizes = replace(LARGE, exact_head_entries=0)
    outputs = []
    for rows in (50, 900):
        blocks = RowBlocks.from_arrays(X, target, block_rows=rows)
        fitted = with_sizes(model(n_features=128, random_state=0), sizes).fit(blocks)
        outputs.append(output(fitted, X))
    np.testing.assert_array_equal(*outputs)
    assert 0 < len(fitted.network_.layers) < 40
    assert len(fitted.history_) == len(fitted.network_.layers)
    assert not hasattr(fitted, "oof_prediction_")
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c", "tree", "day"]
    assert fitted.score(X, target) > (0.7 if model is RFRBoostRegressor else 0.85)
    fitted.save(tmp_path / "m")
    np.testing.assert_array_equal(output(load(tmp_path / "m"), X), outputs[0])


def test_the_layers_kept_are_the_best_on_rows_that_were_not_fitted():
    """On pure noise no layer helps; what is kept is the start, or little more."""
    X, _, _ = regression_rows(900)
    noise = default_rng(0).standard_normal(900)
    model = RFRBoostRegressor(n_features=64, l2_step=1e-8, random_state=0)
    assert len(with_sizes(model, LARGE).fit(RowBlocks([(X, noise)])).network_.layers) <= 2


def test_a_layer_that_would_end_too_late_is_not_begun(monkeypatch):
    """A layer takes ten seconds, and the fit must end after 25."""
    held = HeldOutRows(100)
    held.y = np.empty((0, 1))
    network = Network(np.zeros(2), None, (), ())
    install(monkeypatch, Clock(tick=10.0))
    stopping = HeldOutStopping(held, SquaredError(), 25.0)
    assert [stopping(network) for _ in range(3)] == [True, True, False]


def test_time_counts_from_the_call_of_fit(monkeypatch):
    X, y, _ = table()
    monkeypatch.setattr("rfrboost._estimators.routes.has_time_for_all", lambda *_: True)
    install(monkeypatch, Clock())
    model = with_sizes(RFRBoostRegressor(**QUICK, max_seconds=5.0), LARGE)
    assert len(model.fit(RowBlocks([(X, y)])).network_.layers) == 0


def test_without_time_for_all_rows_the_ensemble_is_fitted_to_the_sample(monkeypatch):
    X, y, _ = table()
    blocks = RowBlocks([(X[i : i + 100], y[i : i + 100]) for i in range(0, len(y), 100)])
    install(monkeypatch, Clock())
    model = with_sizes(RFRBoostRegressor(**QUICK, max_seconds=50.0), LARGE)
    # The Gram matrix of a batch takes one reading, that of all rows fewer batches than one.
    monkeypatch.setattr("rfrboost._estimators.routes.LAYER_COST", 1e6)
    with pytest.warns(UserWarning, match=f"all {len(y):,} rows"):
        model.fit(blocks)
    assert hasattr(model, "oof_score_")
    assert len(model.oof_prediction_) <= LARGE.sampled_rows
    monkeypatch.setattr("rfrboost._estimators.routes.LAYER_COST", 1e-6)
    install(monkeypatch, Clock())
    assert not hasattr(model.set_params(max_seconds=1e6).fit(blocks), "oof_score_")


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


def test_parameters_that_are_set_are_kept():
    X, y, _ = table()
    blocks = RowBlocks([(X[["a", "b"]], y)])
    model = RFRBoostRegressor(**QUICK, features="sparse", preprocess=None)
    fitted = clone_with_sizes(model, LARGE).fit(blocks)
    weights = fitted.network_.layers[0].features.from_x.weights
    # Sparse neurons of two columns: some see one only.
    assert (weights[:-1] == 0).any()
    for families in (("bumps",), ("sparse", "bumps")):
        with pytest.raises(ValueError, match="bumps"):
            clone_with_sizes(model, LARGE).set_params(features=families).fit(blocks)
    with pytest.raises(ValueError, match="strategy='greedy'"):
        with_sizes(RFRBoostRegressor(strategy="greedy"), LARGE).fit(blocks)
    with pytest.raises(ValueError, match=r"Block 0: .*NaN"):
        with_sizes(RFRBoostRegressor(preprocess=None), LARGE).fit(RowBlocks([(X[["c"]], y)]))


def test_what_needs_an_ensemble_says_so():
    X, y, _ = table()
    model = with_sizes(RFRBoostRegressor(**QUICK), LARGE)
    model.fit(RowBlocks([(X, y)]))
    with pytest.raises(ValueError, match="row blocks of more than 50,000"):
        model.predict_interval(X)


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


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 300), max_size=6), st.integers(0, 2**31))
def test_rows_are_held_out_whatever_the_blocks(sizes, seed):
    rng = default_rng(seed)
    X, y = rng.standard_normal((500, 2)), rng.standard_normal(500)
    w = rng.integers(0, 2, 500).astype(float)
    fitted, held = [], []
    for blocks in (cut(X, y, w, sizes), [(X, y, w)]):
        held.append(HeldOutRows(500))
        fitted.append(np.vstack([x for x, _, _ in BlockArrays(RowBlocks(blocks), None, held[-1])]))
    np.testing.assert_array_equal(*fitted)
    np.testing.assert_array_equal(held[0].X, held[1].X)
    rows = sorted(map(tuple, np.vstack([fitted[0], held[0].X])))
    assert rows == sorted(map(tuple, X[w > 0]))


@pytest.mark.parametrize("seed", range(10))
def test_equal_rows_are_held_out_one_by_one(seed):
    """Of tables of 16 distinct rows, drawn or in turn, a tenth is held out, of every row."""
    rng = default_rng(seed)
    codes = rng.integers(0, 16, 20_000) if seed else np.arange(20_000) % 16
    X = (codes[:, None] >> np.arange(4) & 1).astype(float)
    held = HeldOutRows(len(X))
    blocks = RowBlocks.from_arrays(X, X.sum(axis=1) > 2, block_rows=3000)
    fitted = sum(len(x) for x, _, _ in ClassBlockArrays(blocks, None, held))
    assert fitted + len(held.X) == 20_000
    # Five standard deviations of the number of 20,000 rows, and of a sixteenth of them.
    assert abs(len(held.X) - 2000) < 5 * 42
    of_each = np.bincount((held.X @ [1, 2, 4, 8]).astype(int), minlength=16)
    assert np.abs(of_each - np.bincount(codes) / 10).max() < 5 * 11


def test_rare_events_in_many_rows():
    """Nearly all rows are equal; the model is no worse than always saying 0."""
    rng = default_rng(17)
    X = (rng.random((60_000, 3)) < 0.02).astype(float)
    y = (rng.random(60_000) < 0.02 + 0.5 * X[:, 0]).astype(int)
    model = RFRBoostClassifier(**QUICK).fit(RowBlocks.from_arrays(X, y, block_rows=7000))
    assert model.score(X, y) > (y == 0).mean()
