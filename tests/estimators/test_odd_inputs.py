"""Odd inputs: an answer, or a ValueError with a sentence, and never another exception."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from rfrboost import RFNNClassifier, RFRBoostClassifier, RFRBoostRegressor

N = 60
rng = np.random.default_rng(0)
x = rng.normal(size=N)
X = np.column_stack([x, x**2])
y = x + 0.1 * rng.normal(size=N)
WORDS = [f"w{k % 15}" for k in range(N)]
HUGE = [10**400 + k for k in range(N)]
QUIET = [Decimal("NaN"), *(Decimal(k) for k in range(N - 1))]
SIGNALING = [Decimal("sNaN"), *QUIET[1:]]
FAR_WEST = timezone(timedelta(hours=-12))


def table(cells):
    return pd.DataFrame({"x": x, "odd": pd.Series(cells, dtype=object)})


def models(task):
    kind = RFRBoostRegressor if task == "regression" else RFRBoostClassifier
    return kind(n_bags=2, random_state=0), kind(1, n_features=4, random_state=0)


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize(
    "odd",
    [
        table(HUGE).to_numpy(),
        [[1, number] for number in HUGE],
        {"a": x, "b": x},
        {0: [1.0, 2.0], 1: [3.0, 4.0]},
        {1.0, 2.0},
        "abc",
        None,
    ],
    ids=["huge column", "huge list", "dict", "small dict", "set", "text", "None"],
)
def test_tables_that_are_refused_in_fit_and_predict(odd, task):
    labels = y if task == "regression" else y > 0
    for model in models(task):
        with pytest.raises(ValueError, match=r"no float can hold|no rows and columns"):
            model.fit(odd, labels)
        model.fit(X, labels)
        with pytest.raises(ValueError, match=r"no float can hold|no rows and columns"):
            model.predict(odd)


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize(
    "odd",
    [
        np.full((N, 1), 9_000_000_000, "datetime64[Y]"),
        np.full((N, 1), 10**15, "timedelta64[D]"),
        table([np.datetime64(10**12, "Y")] * N),
        table([datetime.max.replace(tzinfo=FAR_WEST)] * N),
    ],
    ids=["dates", "durations", "objects", "datetime"],
)
def test_dates_that_are_too_far_away_are_refused(odd, task):
    model, _ = models(task)
    with pytest.raises(ValueError, match="too far away to be counted in microseconds"):
        model.fit(odd, y if task == "regression" else y > 0)


def test_dates_that_can_be_counted_are_not_refused():
    years = np.linspace(-290_000, 290_000, N).astype(int).astype("datetime64[Y]")
    cells = [datetime(1 + 166 * k, 1, 1, tzinfo=UTC) for k in range(N)]
    for odd in (years[:, None], table(cells), table(list(years))):
        assert np.isfinite(
            RFRBoostRegressor(n_bags=2, random_state=0).fit(odd, y).predict(odd)
        ).all()


@pytest.mark.parametrize(
    "labels",
    [
        HUGE,
        np.array(HUGE, dtype=object),
        np.array(SIGNALING, dtype=object),
        np.array([datetime(2001, 1, 1)] * N, dtype=object),
    ],
    ids=["huge", "huge objects", "signaling NaN", "dates"],
)
@pytest.mark.parametrize("rows", [X, table(WORDS)], ids=["array", "table"])
def test_targets_that_are_refused(labels, rows):
    for model in models("regression"):
        if rows is X or model.n_layers == "auto":
            with pytest.raises(ValueError, match=r"no float can hold|y holds dates"):
                model.fit(rows, labels)


@pytest.mark.skipif(
    np.finfo(np.longdouble).maxexp <= 1024, reason="long doubles are as short as others here"
)
def test_long_doubles_beyond_all_floats_are_refused():
    far = np.abs(y).astype(np.longdouble) * np.longdouble("1e400")
    for model in models("regression"):
        with pytest.raises(ValueError, match="Input y contains infinity"):
            model.fit(X, far)
        with pytest.raises(ValueError, match="Input sample_weight contains infinity"):
            model.fit(X, y, sample_weight=far)


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("odd", [{"a": 1}, {1.0, 2.0}, "abc"], ids=["dict", "set", "text"])
def test_targets_and_weights_without_rows_are_refused(odd, task):
    for model in models(task):
        with pytest.raises(ValueError, match=r"^y is a .* which has no rows"):
            model.fit(X, odd)
        with pytest.raises(ValueError, match=r"^sample_weight is a .* which has no rows"):
            model.fit(X, y > 0, sample_weight=odd)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_dates_as_targets_are_refused_whatever_their_type(task):
    """As numbers they would be days or microseconds, depending on their unit."""
    dates = np.datetime64("2001-01-01") + np.arange(N) % 3
    for labels in (dates, pd.Series(dates), dates.astype("datetime64[ns]")):
        for model in models(task):
            with pytest.raises(ValueError, match="y holds dates"):
                model.fit(X, labels)


def test_intervals_are_categories_and_periods_are_dates():
    x = pd.Series(np.linspace(-1, 1, N))
    bins = pd.cut(x, 4)
    months = pd.Series(pd.period_range("2001-01", periods=N, freq="M"))
    tables = [
        pd.DataFrame({"c": bins, "x": x}),
        pd.DataFrame({"c": bins.astype(object), "x": x}),
        pd.DataFrame({"c": bins.astype(str), "x": x}),
    ]
    found = [RFRBoostRegressor(n_bags=2, random_state=0).fit(t, x**2).predict(t) for t in tables]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    starts = [months, months.astype(object), months.dt.to_timestamp()]
    starts = [pd.DataFrame({"month": start, "x": x}) for start in starts]
    found = [RFRBoostRegressor(n_bags=2, random_state=0).fit(t, x**2).predict(t) for t in starts]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    missing = pd.DataFrame({"month": months.where(x > 0), "x": x})
    assert np.isfinite(
        RFRBoostRegressor(n_bags=2, random_state=0).fit(missing, x).predict(missing)
    ).all()


def test_missing_values_in_a_single_network_get_advice_that_fits():
    x = np.linspace(-1, 1, N)[:, None]
    model = RFRBoostRegressor(1, random_state=0).fit(x, x[:, 0])
    x[3] = np.nan
    for call in (lambda: model.fit(x, x[::-1, 0] ** 2), lambda: model.predict(x)):
        with pytest.raises(ValueError, match=r"^Input X contains NaN\. .*leave n_layers") as caught:
            call()
        assert "HistGradientBoosting" not in str(caught.value)
        assert "\n" not in str(caught.value)


def test_logarithms_of_probabilities():
    x = np.linspace(-1, 1, N)[:, None]
    for model in (RFRBoostClassifier(1, random_state=0), RFNNClassifier(9, random_state=0)):
        model.fit(x, np.arange(N) % 3)
        logarithms = model.predict_log_proba(x)
        np.testing.assert_allclose(np.exp(logarithms), model.predict_proba(x), rtol=1e-12)


def test_weights_that_no_float_can_hold():
    for model in models("regression"):
        with pytest.raises(ValueError, match="sample_weight holds a number that no float"):
            model.fit(X, y, sample_weight=HUGE)


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("rows", [X, table(WORDS)], ids=["array", "table"])
def test_weights_whose_sum_overflows(rows, task):
    labels = y if task == "regression" else y > 0
    model, _ = models(task)
    expected = model.fit(rows, labels, sample_weight=np.ones(N)).predict(rows)
    found = model.fit(rows, labels, sample_weight=np.full(N, 1.7e308)).predict(rows)
    np.testing.assert_allclose(found.astype(float), expected.astype(float), atol=1e-6)


@pytest.mark.parametrize("loss", ["squared_error", "huber", "quantile"])
@pytest.mark.parametrize("n_layers", [2, "auto"])
def test_equal_weights_of_any_size_are_as_good_as_none(loss, n_layers):
    """Medians lie between two of an even number of rows; rounded sums must not choose one."""
    rows, targets = np.column_stack([X, rng.normal(size=N)]), y + x**2
    model = RFRBoostRegressor(n_layers, n_features=10, loss=loss, random_state=0)
    if n_layers == "auto":
        model.set_params(n_bags=2)
    expected = model.fit(rows, targets).predict(rows)
    for weight in (0.1, 3.0, 1e160, 1.7e308, 5e-324):
        found = model.fit(rows, targets, np.full(N, weight)).predict(rows)
        # Layers amplify rounding.
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3 * np.std(expected))


def test_large_weights_do_not_count_rows():
    """Whole numbers do, but every large float is one."""
    rows = table(WORDS)
    weights = rng.gamma(1.0, 1.0, N)
    model = RFRBoostRegressor(n_bags=2, random_state=0)
    expected = model.fit(rows, y, weights).predict(rows)
    found = model.fit(rows, y, weights * 2.0**200).predict(rows)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("loss", ["squared_error", "huber", "quantile"])
def test_targets_near_the_largest_float_are_fitted_as_others(loss):
    model = RFRBoostRegressor(n_bags=2, n_features=10, loss=loss, random_state=0)
    targets = y / np.abs(y).max()
    expected = model.fit(X, targets).predict(X)
    for power in (2.0**1015, 2.0**1023):
        np.testing.assert_array_equal(model.fit(X, targets * power).predict(X) / power, expected)


@pytest.mark.filterwarnings("ignore:Column 'odd' is read as categories")
@pytest.mark.parametrize("other", [[], ["text"]], ids=["numbers", "text"])
def test_a_signaling_nan_is_a_missing_value(other):
    """Beside text, a column holds levels."""
    quiet = table([*QUIET[: N - len(other)], *other])
    signaling = table([*SIGNALING[: N - len(other)], *other])
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(quiet, y)
    found = RFRBoostRegressor(n_bags=2, random_state=0).fit(signaling, y)
    np.testing.assert_array_equal(found.predict(signaling), model.predict(quiet))


@pytest.mark.parametrize("kind", [pa.table, pa.record_batch])
def test_arrow_tables_are_tables(kind):
    columns = {"x": x, "word": WORDS}
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(kind(columns), y)
    frame = pd.DataFrame(columns)
    expected = RFRBoostRegressor(n_bags=2, random_state=0).fit(frame, y).predict(frame)
    np.testing.assert_array_equal(model.predict(kind(columns)), expected)
    np.testing.assert_array_equal(model.predict(frame), expected)
    assert model.feature_names_in_.tolist() == ["x", "word"]


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="older versions of polars have no Int128")
def test_wide_integers_of_polars_are_numbers():
    numbers = [None, *range(N - 1)]
    wide = pl.DataFrame({"x": x, "n": pl.Series(numbers, dtype=pl.Int128)})
    plain = pl.DataFrame({"x": x, "n": pl.Series(numbers, dtype=pl.Int64)})
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(wide, y)
    expected = RFRBoostRegressor(n_bags=2, random_state=0).fit(plain, y).predict(plain)
    np.testing.assert_array_equal(model.predict(wide), expected)


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="older versions of polars have no Int128")
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_wide_integers_of_polars_are_targets_and_weights(task):
    numbers = (x > 0).astype(int) + 1
    wide = pl.Series(numbers.tolist(), dtype=pl.Int128)
    for model in models(task):
        expected = model.fit(X, numbers, sample_weight=numbers).predict(X)
        np.testing.assert_array_equal(model.fit(X, wide, sample_weight=wide).predict(X), expected)
        if task == "regression":
            missing = pl.Series([None, *numbers.tolist()[1:]], dtype=pl.Int128)
            with pytest.raises(ValueError, match="contains NaN"):
                model.fit(X, missing)


def test_a_sparse_matrix_that_is_a_dict_is_a_matrix():
    """SciPy's format DOK."""
    dense = (X > 0).astype(float)
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(sparse.dok_matrix(dense), y)
    expected = RFRBoostRegressor(n_bags=2, random_state=0).fit(dense, y).predict(dense)
    np.testing.assert_array_equal(model.predict(sparse.dok_matrix(dense)), expected)


@pytest.mark.parametrize("loss", ["huber", "quantile"])
@pytest.mark.parametrize("size", [1e-310, 5e-324])
@pytest.mark.parametrize("n_layers", [1, "auto"])
def test_subnormal_targets_of_robust_losses(loss, size, n_layers):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = size * np.round(10 * X[:, 0])
    model = RFRBoostRegressor(n_layers, n_features=10, loss=loss, random_state=0).fit(X, y)
    predicted = model.predict(X)
    assert np.isfinite(predicted).all()
    assert np.abs(predicted).max() <= 2 * np.abs(y).max()
