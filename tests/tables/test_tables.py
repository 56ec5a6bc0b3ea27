"""Laws of the encoder: any table becomes finite numbers, the same for every form of the table."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from example_tables import as_objects, as_pandas, as_polars, chosen, columns, fitted, many_levels
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rfrboost._files.container import pack, unpack
from rfrboost._files.schema import ModelFileError
from rfrboost._files.tables import ENCODER
from rfrboost._tables.table import from_sparse


def targets(n):
    return np.linspace(-1, 1, n) ** 3


@given(columns(), st.data())
def test_any_table_becomes_finite_numbers(table, data):
    n = len(next(iter(table.values())))
    encoder, encoded = fitted(as_pandas(table), targets(n))
    assert encoded.shape == (n, encoder.width)
    assert encoder.width == len(encoder.sources) == len(encoder.names_out) > 0
    assert len(set(encoder.names_out)) == encoder.width
    assert np.isfinite(encoded).all()
    assert np.array_equal(encoded, encoder(as_pandas(table)))
    # So do new rows, with missing values in columns that had none in training.
    rows = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=4))
    other = as_objects(chosen(table, rows))
    other[data.draw(st.integers(0, len(rows) - 1))] = None
    assert np.isfinite(encoder(other)).all()


@given(columns())
def test_pandas_polars_and_objects_agree(table):
    n = len(next(iter(table.values())))
    X = as_pandas(table)
    encoder, encoded = fitted(X, targets(n))
    for other in (as_polars(table), as_objects(table), as_objects(table).tolist()):
        assert np.array_equal(encoder(other), encoded)
        assert np.array_equal(fitted(other, targets(n))[1], encoded)


@given(columns(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(table, random):
    n = len(next(iter(table.values())))
    rows = random.sample(range(n), n)
    encoded = fitted(as_pandas(table), targets(n))[1]
    shuffled = fitted(as_pandas(chosen(table, rows)), targets(n)[rows])[1]
    np.testing.assert_allclose(shuffled, encoded[rows], rtol=1e-12, atol=1e-12)


@given(columns(), st.data())
def test_weights_are_repeated_rows_and_weight_zero_is_absence(table, data):
    n = len(next(iter(table.values())))
    # How text is read is decided by all rows, so that rows of text all have some weight.
    least = int(any(isinstance(cell, str) for cells in table.values() for cell in cells))
    w = np.array(data.draw(st.lists(st.integers(least, 3), min_size=n, max_size=n)), dtype=float)
    w[data.draw(st.integers(0, n - 1))] = 2
    rows = np.repeat(np.arange(n), w.astype(int))
    X = as_pandas(table)
    weighted, encoded = fitted(X, targets(n), w)
    repeated, again = fitted(as_pandas(chosen(table, rows)).astype(X.dtypes), targets(n)[rows])
    assert weighted.names_out == repeated.names_out
    np.testing.assert_allclose(encoded[rows], again, rtol=1e-9, atol=1e-9)
    assert np.array_equal(fitted(as_polars(table), targets(n), w)[1], encoded)
    np.testing.assert_allclose(weighted(X), repeated(X), rtol=1e-9, atol=1e-9)


@given(columns())
def test_a_saved_encoder_encodes_to_the_same_bits(table):
    X = as_pandas(table)
    encoder, encoded = fitted(X, targets(len(X)))
    loaded = through_a_file(encoder)
    assert ENCODER.fits(loaded, encoder.width)
    assert not ENCODER.fits(loaded, encoder.width + 1)
    assert np.array_equal(loaded(X), encoded)
    assert loaded.names_out == encoder.names_out


def through_a_file(encoder):
    model = {"estimator": "", "parameters": {}, "fitted": {"e": ENCODER.write(encoder, "e")}}
    return ENCODER.read(unpack(pack(model, "0"))["fitted"]["e"], "e")


def test_saved_target_encodings_too_and_damaged_ones_do_not_fit():
    X, y = many_levels()
    encoder, _ = fitted(X, y)
    assert np.array_equal(through_a_file(encoder)(X), encoder(X))
    for damage in ({"n_columns": 1}, {"names": ["x"]}, {"columns": []}):
        state = {**ENCODER.write(encoder, ""), **damage}
        assert not ENCODER.fits(ENCODER.read(state, ""), encoder.width)
    state = ENCODER.write(encoder, "")
    state["columns"][1]["levels"][1] = state["columns"][1]["levels"][0]
    assert not ENCODER.fits(ENCODER.read(state, ""), encoder.width)
    state["columns"][1]["kind"] = "Unheard"
    with pytest.raises(ModelFileError, match="kind"):
        ENCODER.read(state, "")


def test_sources_and_names_say_where_columns_come_from():
    X = pd.DataFrame(
        {
            "age": [30.0, None, 50.0, 20.0] * 5,
            "one": 1,
            "town": pd.Series(["x", "y", "z", "y"] * 5, dtype="category"),
            "day": pd.date_range("2024-01-01", periods=20),
        }
    )
    encoder, _ = fitted(X, np.arange(20.0))
    assert encoder.names_out[:2] == ("age", "age missing")
    assert encoder.names_out[-3:] == ("town=x", "town=y", "town=z")
    assert encoder.names_out[2:-3] == tuple(
        f"day {p}" for p in ("time", "year sin", "year cos", "week sin", "week cos")
    )
    assert encoder.sources == (0, 0, 3, 3, 3, 3, 3, 2, 2, 2)
    assert fitted(as_objects({"a": [1, 2]}), [0.0, 1.0])[0].names_out == ("x0",)


def test_names_are_checked():
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, 1.0]})
    encoder, encoded = fitted(X, [0.0, 1.0])
    assert np.array_equal(encoder(X.to_numpy()), encoded)
    with pytest.raises(ValueError, match="'b' is missing, 'c', 'd' are new"):
        encoder(X.rename(columns={"b": "c"}).assign(d=1))
    with pytest.raises(ValueError, match="'b' is missing"):
        encoder(X[["a"]])
    assert np.array_equal(encoder(X.assign(c=1)[["b", "c", "a"]]), encoded)
    with pytest.raises(ValueError, match="3 columns, but the model was fitted on 2"):
        encoder(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="several columns named 'a'"):
        encoder(pd.concat([X, X], axis=1))


def test_what_cannot_be_read_is_refused_by_name():
    good = pd.DataFrame({"size": [1.0, 2.0, 4.0], "when": pd.date_range("2024", periods=3)})
    encoder, _ = fitted(good, [0.0, 1.0, 2.0])
    for bad, error, words in (
        ({"size": [1.0, np.inf, 0.0]}, ValueError, "'size' of X holds infinity"),
        ({"size": [1.0, -1e70, 0.0]}, ValueError, "'size' of X holds values as large as 1e\\+70"),
        (
            {"size": ["1", "2", "3"]},
            ValueError,
            "'size' held numbers in fit and holds text or categories now: .*pandas.to_numeric",
        ),
        (
            {"when": [1, 2, 3]},
            ValueError,
            "'when' held dates in fit and holds numbers now: .*pandas.to_datetime",
        ),
        ({"size": [{}, 1, 2]}, TypeError, "'size' holds a dict; .*argument must be a string"),
        ({"size": [1j, 1, 2]}, TypeError, "'size' .* complex"),
    ):
        with pytest.raises(error, match=words):
            encoder(good.assign(**bad))
    for bad, words in (({"size": [1.0, np.inf, 0.0]}, "infinity"), ({"size": [-1e70, 0, 1]}, "1e")):
        with pytest.raises(ValueError, match=words):
            fitted(good.assign(**bad), [0.0, 1.0, 2.0])


def test_arrays_are_refused_as_scikit_learn_does():
    for bad, words in ((np.zeros(3), "Reshape your data"), (np.zeros((2, 2)) * 1j, "Complex data")):
        with pytest.raises(ValueError, match=words):
            fitted(bad, [0.0, 1.0])


def test_a_table_without_anything_that_varies_is_one_column_of_zeros():
    X = pd.DataFrame({"a": [1, 1], "b": ["x", "x"], "c": [None, None]})
    encoder, encoded = fitted(X, [0.0, 1.0])
    assert encoded.tolist() == [[0.0], [0.0]]
    assert encoder(pd.DataFrame({"a": [5], "b": ["y"], "c": ["z"]})).tolist() == [[0.0]]


def test_sparse_matrices_are_numbers():
    X = sparse.random(40, 5, 0.3, random_state=np.random.default_rng(0), format="csr")
    encoder, encoded = fitted(X, targets(40))
    assert np.array_equal(encoded, fitted(X.toarray(), targets(40))[1])
    assert np.array_equal(encoder(X.tocoo()), encoded)


def test_columns_of_large_sparse_matrices_are_read_one_by_one():
    X = sparse.random(40, 5, 0.3, random_state=np.random.default_rng(0), format="csr")
    size = 8 * 40 * 5
    whole, lazy = from_sparse(X, largest_bytes=size), from_sparse(X, largest_bytes=size - 1)
    assert whole.array is not None
    assert lazy.array is None
    assert lazy.shape == (40, 5)
    read = np.empty((40, 3))
    lazy.numbers([4, 0, 1], read)
    assert np.array_equal(read, X.toarray()[:, [4, 0, 1]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, bool])
def test_plain_arrays_take_the_fast_path_to_the_same_bits(dtype):
    X = (np.random.default_rng(0).normal(size=(5000, 4)) * 3).astype(dtype)
    encoder, encoded = fitted(X, X[:, 0])
    frame = pd.DataFrame(X, columns=list("abcd"))
    assert np.array_equal(encoded, fitted(frame, X[:, 0])[1])
    assert np.array_equal(encoder(pl.DataFrame(X)), encoded)


def test_plain_arrays_are_copied_once():
    X = np.random.default_rng(0).normal(size=(100_000, 20))
    encoder, _ = fitted(X[:1000], X[:1000, 0])
    tracemalloc.start()
    try:
        encoder(X)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        fitted(X, X[:, 0])
        to_fit = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert used < 1.5 * X.nbytes
    assert to_fit < 1.7 * X.nbytes
