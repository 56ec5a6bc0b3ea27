"""Tables that are too large for a time limit or for memory: some of the rows, or columns."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from fake_clock import Clock, install
from numpy.random import default_rng
from scipy import sparse
from sklearn.feature_selection import f_regression

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost._tables import affordable, sparse_columns
from rfrboost._tables.affordable import FEWEST_ROWS, affordable_part, sample_of
from rfrboost._tables.fit import fit_encoder
from rfrboost._tables.sparse_columns import column_scores, n_usable, usable_columns


def test_with_time_for_all_rows_they_are_all_there(monkeypatch):
    install(monkeypatch, Clock())
    X = default_rng(0).standard_normal((FEWEST_ROWS + 1, 2))
    found, y, w, seen, fitted = affordable_part(X, X[:, 0], None, "regression", 1e9)
    assert fitted == len(X)
    assert found is X
    assert w is None
    assert seen.all()
    assert len(y) == len(X)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_rows_are_left_out_in_proportion_to_the_time_that_they_would_take(monkeypatch, task):
    rng = default_rng(0)
    n = 8 * FEWEST_ROWS
    frame = pd.DataFrame({"a": rng.standard_normal(n), "b": rng.choice(["x", "y"], n)})
    y = (np.arange(n) < 3) + 0 if task == "classification" else rng.standard_normal(n)
    w = rng.uniform(1, 2, n)
    # The trial takes one second, so that encoding all rows takes this many.
    whole = affordable.LONGER * n / affordable.TRIAL_ROWS
    for part in (0.0, 0.25, 0.5):
        install(monkeypatch, Clock())
        deadline = 1 + part * whole / affordable.ENCODING_SHARE
        with pytest.warns(UserWarning, match=rf"all {n:,} rows"):
            X, some, weights, seen, fitted = affordable_part(frame, y, w, task, deadline)
        assert fitted == pytest.approx(len(X), abs=2)
        assert seen.sum() == len(X) == pytest.approx(n * max(part, 1 / 8), rel=0.01)
        pd.testing.assert_frame_equal(X, frame[seen])
        np.testing.assert_array_equal(some, y[seen])
        np.testing.assert_array_equal(weights, w[seen])
        if task == "classification":
            assert set(some) == {0, 1}


class EncodingClock:
    """A clock by which fitting an encoder to a row takes four times as long as encoding it."""

    def __init__(self):
        self.readings = iter([0.0, 4.0, 4.0 + affordable.LONGER / affordable.ENCODED_LONGER])

    def __call__(self):
        return next(self.readings)


@pytest.mark.filterwarnings("ignore:max_seconds is too short")
def test_arrays_are_encoded_by_encoders_of_fewer_rows(monkeypatch):
    n = 32 * FEWEST_ROWS
    X = default_rng(0).standard_normal((n, 2))
    per_row = affordable.LONGER / affordable.TRIAL_ROWS
    for share in (0.25, 0.5, 0.75):
        monkeypatch.setattr(affordable, "perf_counter", EncodingClock())
        left = share * n * per_row * 4
        deadline = 4 + left / affordable.ENCODING_SHARE
        rows, _, _, _, fitted = affordable_part(X, X[:, 0], None, "regression", deadline)
        assert len(rows) == pytest.approx(min(3 * share * n, n), rel=0.01)
        assert fitted == pytest.approx(share * n / 4, rel=0.01)
        # What was promised is within the time.
        assert (4 * fitted + len(rows)) * per_row <= 1.01 * left


def test_an_encoder_of_fewer_rows_is_as_good(monkeypatch):
    monkeypatch.setattr(affordable, "FEWEST_ROWS", 200)
    monkeypatch.setattr(affordable, "TRIAL_ROWS", 50)
    rng = default_rng(0)
    X = rng.standard_normal((600, 3)) * [1.0, 1e3, 1e-3]
    y = X[:, 0] + X[:, 1] / 1e3
    monkeypatch.setattr(affordable, "affordable_rows", lambda *_: (600, 200))
    install(monkeypatch, Clock())
    model = RFRBoostRegressor(max_seconds=1e4, random_state=0).fit(X, y)
    assert np.isfinite(model.oof_prediction_).all()
    assert model.oof_score_ > 0.99


def test_a_sample_has_the_same_share_of_every_class():
    labels = np.repeat(["a", "b", "c"], [1000, 100, 1])
    chosen = sample_of(default_rng(0).permutation(labels), 0.25)
    counts = np.unique(default_rng(0).permutation(labels)[chosen], return_counts=True)[1]
    assert counts.tolist() == [250, 25, 1]
    assert (np.diff(chosen) > 0).all()


def test_rows_left_out_have_no_out_of_fold_prediction(monkeypatch):
    monkeypatch.setattr(affordable, "FEWEST_ROWS", 200)
    monkeypatch.setattr(affordable, "TRIAL_ROWS", 50)
    rng = default_rng(0)
    X = rng.standard_normal((600, 3))
    y = (X[:, 0] + 0.3 * rng.standard_normal(600) > 0).astype(int)
    install(monkeypatch, Clock())
    with pytest.warns(UserWarning, match="random sample of 200"):
        model = RFRBoostClassifier(max_seconds=1e-3, random_state=0).fit(X, y)
    known = np.isfinite(model.oof_prediction_).all(axis=1)
    assert known.sum() == 200
    assert model.score(X[~known], y[~known]) > 0.8


# Sparse matrices


def matrix(n=400, D=900, seed=0):
    rng = default_rng(seed)
    X = sparse.random(n, D, 0.02, random_state=rng, format="csr")
    return X, 8 * X[:, 7].toarray()[:, 0] - 5 * X[:, D - 1].toarray()[:, 0]


def test_the_columns_that_say_most_are_used(monkeypatch):
    X, y = matrix()
    assert n_usable(X) == 900
    assert usable_columns(X, y, "regression") is None
    monkeypatch.setattr(sparse_columns, "LARGEST_DENSE", 8 * 400 * 900 - 1)
    monkeypatch.setattr(sparse_columns, "MOST_BYTES", 8 * 400 * 10)
    monkeypatch.setattr(sparse_columns, "FEWEST_COLUMNS", 5)
    assert n_usable(X) == 10
    with pytest.warns(UserWarning, match="of its 900 columns the model uses the 10"):
        chosen = usable_columns(X, y, "regression")
    F = f_regression(X.toarray(), y)[0]
    assert set(chosen) == set(np.argsort(-F)[:10])
    assert {7, 899} <= set(chosen)
    assert list(chosen) == sorted(chosen)
    with pytest.warns(UserWarning, match="uses the 10"):
        labels = usable_columns(X, np.where(y > 0, "yes", "no"), "classification")
    assert 7 in labels


def test_columns_that_do_not_vary_or_hold_nan_have_scores():
    X, y = matrix(D=20)
    X = sparse.hstack([X, sparse.csr_matrix((400, 2))]).tolil()
    X[0, 3] = np.nan
    scores = column_scores(X.tocsr().astype(float), np.column_stack([y, -y]), "regression")
    assert np.isfinite(scores).all()
    assert scores[-1] == 0.0
    assert np.argmax(scores) == 7


def test_a_large_sparse_matrix_is_never_an_array(monkeypatch):
    """Neither in a fit nor in a prediction, which are those of the columns used."""
    X, y = matrix(n=300, D=40_000)
    monkeypatch.setattr(sparse_columns, "LARGEST_DENSE", 2**20)
    monkeypatch.setattr(sparse_columns, "MOST_BYTES", 8 * 300 * 64)
    monkeypatch.setattr("rfrboost._tables.table.LARGEST_DENSE", 2**20)
    monkeypatch.setattr("rfrboost._tables.table.from_sparse.__defaults__", (2**20,))
    y = np.asarray(X[:, :50].sum(axis=1)).ravel()
    model = RFRBoostRegressor(random_state=0, n_bags=2)
    tracemalloc.start()
    try:
        with pytest.warns(UserWarning, match="uses the 64"):
            model.fit(X, y)
        model.predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * 300 * 40_000
    used = np.flatnonzero(model.feature_importances_)
    assert len(used) <= 64
    assert model.n_features_in_ == 40_000
    dense = np.zeros((300, 40_000))
    dense[:, used] = X[:, used].toarray()
    np.testing.assert_allclose(model.predict(dense), model.predict(X), atol=1e-9)


def test_encoders_of_columns_read_one_by_one_are_those_of_arrays(monkeypatch):
    X, y = matrix(D=30)
    whole, encoded = fit_encoder(X, y, None, "regression", default_rng(0))
    monkeypatch.setattr("rfrboost._tables.table.from_sparse.__defaults__", (0,))
    lazy, again = fit_encoder(X, y, None, "regression", default_rng(0))
    np.testing.assert_array_equal(encoded, again)
    np.testing.assert_array_equal(lazy(X), whole(X.toarray()))
