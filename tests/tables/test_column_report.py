"""What a fit says about columns, free text, ids, columns that the user calls categorical."""

import warnings

import numpy as np
import pandas as pd
import pytest
from example_tables import fitted
from test_tables import through_a_file

from rfrboost import RFRBoostClassifier, RFRBoostRegressor, load
from rfrboost._tables.fit import fit_encoder
from rfrboost._tables.report import UnseenValuesWarning
from rfrboost._tables.words import MOST_DIRECTIONS, MOST_WORDS

FAST = {"n_bags": 2, "features": ("swim",), "n_features": 16, "random_state": 0}
GOOD = ("lovely", "quiet", "sunny")
BAD = ("noisy", "dark", "damp")


def reviews(n=300, seed=0):
    """Free text whose words say most about y."""
    rng = np.random.default_rng(seed)
    good = rng.random(n) < 0.5
    filler = [f"w{k}" for k in range(200)]
    texts = [" ".join([*rng.choice(filler, 4), *rng.choice(GOOD if g else BAD, 2)]) for g in good]
    return pd.DataFrame({"x": rng.normal(size=n), "review": texts}), good


def report_of(X, y=None):
    encoder, _ = fitted(X, np.arange(len(X), dtype=float) if y is None else y)
    return {column.name: column for column in encoder.report}


def test_every_column_is_described():
    n = 60
    X = pd.DataFrame(
        {
            "size": [*np.arange(n - 2.0), np.nan, np.nan],
            "one": 1.0,
            "none": None,
            "town": ["a", "b", None] * 20,
            "day": pd.date_range("2024-01-01", periods=n),
            "price": [f"${k}.50" for k in range(n)],
        }
    )
    found = report_of(X)
    assert list(found) == list(X.columns)
    assert (found["size"].kind, found["size"].missing) == ("numbers", 2)
    assert (found["size"].low, found["size"].high, found["size"].used) == (0.0, n - 3.0, True)
    assert (found["one"].used, found["one"].why) == (False, "all its values are equal")
    assert (found["none"].kind, found["none"].missing, found["none"].used) == ("nothing", n, False)
    assert (found["town"].kind, found["town"].levels, found["town"].missing) == (
        "categories",
        2,
        20,
    )
    assert (found["day"].low, found["day"].high) == ("2024-01-01T00:00:00", "2024-02-29T00:00:00")
    assert (found["price"].kind, found["price"].why) == ("numbers", "numbers written as text")
    assert pd.DataFrame(found.values()).shape == (6, 8)


def test_a_model_has_the_report_and_its_file_too(tmp_path):
    X, good = reviews(80)
    model = RFRBoostRegressor(**FAST).fit(X, good.astype(float))
    report = model.column_report_
    assert [column.kind for column in report] == ["numbers", "text"]
    model.save(tmp_path / "m.rfrboost")
    assert load(tmp_path / "m.rfrboost").column_report_ == report
    single = RFRBoostRegressor(1, n_features=8).fit(np.eye(4), np.arange(4.0))
    assert not hasattr(single, "column_report_")


def test_ids_are_named():
    n = 50
    y = np.arange(n, dtype=float)
    with pytest.warns(UserWarning, match="'code' is not used.* fewer than 3 rows"):
        found = report_of(pd.DataFrame({"code": [f"u{k}z" for k in range(n)], "x": y**2}))
    assert not found["code"].used
    with pytest.warns(UserWarning, match="'customer_id' looks like an id"):
        report_of(pd.DataFrame({"customer_id": np.arange(n) * 7, "x": y**2}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report_of(pd.DataFrame({"valid": np.arange(n), "width": y**2, "t": np.arange(n)}))


def test_words_predict():
    X, good = reviews()
    model = RFRBoostClassifier(**FAST).fit(X[:200], good[:200])
    assert model.score(X[200:], good[200:]) > 0.9
    with pytest.raises(ValueError, match="'review' holds free text"):
        model.to_onnx()


def test_text_is_bounded_stored_and_independent_of_the_order_of_rows():
    X, good = reviews()
    encoder, encoded = fitted(X, good.astype(float))
    text = encoder.columns[-1]
    assert len(text.words) <= MOST_WORDS
    assert len(text.suffixes) == MOST_DIRECTIONS
    assert np.isfinite(encoded).all()
    assert np.array_equal(through_a_file(encoder)(X), encoded)
    backwards = fitted(X[::-1], good[::-1].astype(float))[1]
    np.testing.assert_allclose(backwards[::-1], encoded, rtol=1e-6, atol=1e-6)
    twice = fitted(X, good.astype(float), np.full(len(X), 2.0))[0]
    repeated = fitted(pd.concat([X, X]), np.tile(good, 2).astype(float))[0]
    np.testing.assert_allclose(twice(X), repeated(X), rtol=1e-6, atol=1e-6)
    unknown = encoder(X[:2].assign(review=["entirely other words", None]))
    assert np.array_equal(unknown[0, 1:], unknown[1, 1:])


def levels_of(categorical, X):
    rng = np.random.default_rng(0)
    y = np.arange(len(X))
    encoder, _ = fit_encoder(X, y, None, "regression", rng, categorical=categorical)
    return {column.name for column in encoder.report if column.kind == "categories"}


def test_categorical_features_by_name_index_and_mask():
    X = pd.DataFrame({"a": [1, 2, 3] * 10, "b": [4, 5] * 15, "c": ["x", "y", "z"] * 10})
    assert levels_of("from_dtype", X) == {"c"}
    for chosen in (["a"], [0], [-3], np.array([True, False, False]), ("a",)):
        assert levels_of(chosen, X) == {"a", "c"}
    assert levels_of([0, 1], X.to_numpy()) == {"x0", "x1", "x2"}
    assert levels_of([], X) == {"c"}
    for wrong in (["q"], [3], np.array([True, False]), [[0]], [1.5]):
        with pytest.raises(ValueError, match="no column of X"):
            levels_of(wrong, X)


def test_categorical_features_of_estimators(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 8, 200)
    y = rng.normal(size=8)[codes]
    X = pd.DataFrame({"code": codes})
    model = RFRBoostRegressor(**FAST, categorical_features=["code"]).fit(X, y)
    assert model.column_report_[0].kind == "categories"
    model.save(tmp_path / "m.rfrboost")
    assert np.array_equal(load(tmp_path / "m.rfrboost").predict(X), model.predict(X))
    for settings in ({"n_layers": 2}, {"preprocess": None}):
        with pytest.raises(ValueError, match=r"categorical_features.*no effect"):
            RFRBoostRegressor(categorical_features=np.array([0]), **settings).fit(X, y)


def test_rows_unlike_training_are_counted_once():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(20, 60, 100), "town": rng.choice(["a", "b", "c"], 100)})
    X.loc[0, "town"] = "rare"
    model = RFRBoostRegressor(**FAST).fit(X, X["age"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X)
        # A little beyond the range, and missing values, are nothing to warn of.
        model.predict(pd.DataFrame({"age": [62.0, np.nan], "town": ["a", None]}))
    far = pd.DataFrame({"age": [1000.0, 30.0, 30.0, -50.0], "town": ["a", "moon", "rare", "moon"]})
    with pytest.warns(
        UnseenValuesWarning, match=r"3 of 4 rows .*'age' \(2\), 'town' \(2\)"
    ) as seen:
        model.predict(far)
    assert len(seen) == 1
    assert seen[0].message.columns == {"age": 2, "town": 2}
