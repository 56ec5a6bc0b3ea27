"""What becomes of each kind of column: numbers with outliers, dates, levels, missing values."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from example_tables import NUMBERS, fitted
from hypothesis import given
from hypothesis import strategies as st

from rfrboost._numerics.threads import threads
from rfrboost._tables.encoder import Scaling, squash
from rfrboost._tables.fit import stack
from rfrboost._tables.statistics import (
    MANY_ENTRIES,
    fit_scale,
    indicator_scale,
    quantile,
)
from rfrboost._tables.table import read_column, text


def numbers(x, w=None):
    """A column of numbers, encoded as a frame would be."""
    return fitted(np.asarray(x, dtype=float)[:, None], np.arange(len(x)), w)[1][:, 0]


# Numbers


@pytest.mark.parametrize("factor", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_every_column_is_scaled_whatever_the_units_of_the_others(factor, shift):
    x = np.random.default_rng(0).normal(size=(2000, 3))
    other_units = x.copy()
    other_units[:, 1] = factor * (x[:, 1] + shift)
    np.testing.assert_allclose(fitted(other_units, x[:, 0])[1], fitted(x, x[:, 0])[1], atol=1e-9)


def test_threads_encode_as_one_does():
    x = np.random.default_rng(0).normal(size=(MANY_ENTRIES // 32, 32))
    x[:9, 3] = x[:9, 20] = np.nan
    with threads(1):
        alone = fitted(x, x[:, 0])[1]
    with threads(3):
        together = fitted(x, x[:, 0])[1]
    assert alone.shape[1] == 33  # one indicator for both columns with missing values
    np.testing.assert_array_equal(together, alone)


def test_scaling_standardised_columns_again_changes_them_little():
    x = np.random.default_rng(0).normal(size=(2000, 3))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    for standardised in (x, x.clip(-2.5, 2.5)):
        assert np.abs(fitted(standardised, x[:, 0])[1] - x).mean() < 0.02


def test_an_outlier_among_standardised_columns_is_compressed():
    x = np.random.default_rng(0).normal(size=(2000, 3))
    x[5, 1] = 400.0
    assert np.abs(fitted(x, x[:, 0])[1]).max() < 60


def test_an_outlier_does_not_move_the_other_values():
    """With StandardScaler the other 999 would all be at −0.03."""
    x = 40 + 9 * np.random.default_rng(0).normal(size=1000)
    outlying = x.copy()
    outlying[7] = 1e12
    others = np.arange(1000) != 7
    assert np.abs(numbers(outlying) - numbers(x))[others].max() < 0.05
    assert numbers(x)[others].max() < numbers(outlying)[7] < 60


def test_a_column_that_is_nearly_always_zero_is_scaled_by_the_rest():
    x = np.zeros(1000)
    x[:30] = np.random.default_rng(0).normal(size=30) + 5
    x[30] = 1e9
    encoded = numbers(x)
    assert np.ptp(encoded[:30]) > 1
    assert np.ptp(encoded) < 100


@given(st.lists(NUMBERS, min_size=2, max_size=30), st.integers(-300, 300))
def test_numbers_keep_their_order_and_units_do_not_matter(x, exponent):
    x = np.array(x)
    encoded = numbers(x)
    assert (np.diff(encoded[np.argsort(x)]) >= 0).all()
    scaled = np.ldexp(x, exponent)
    same_digits = (np.ldexp(scaled, -exponent) == x).all() and np.abs(scaled).max() < 1e60
    if same_digits:
        np.testing.assert_allclose(numbers(scaled), encoded, rtol=1e-9, atol=1e-9)


@given(st.floats(0, 1e300), st.floats(0, 1e300))
def test_squash_is_odd_about_the_middle_increasing_and_finite(a, b):
    low, high = sorted([a, b])
    assert squash(np.array(low)) <= squash(np.array(high)) < np.inf
    np.testing.assert_allclose(squash(np.array(1 - a)), 1 - squash(np.array(a)), rtol=1e-12)
    inside = min(a, 1.5)
    assert squash(np.array(inside)) == inside


def test_squash_is_smooth():
    t = np.array([1.5, -0.5])
    h = 1e-6
    slopes = (squash(t + h) - squash(t)) / h, (squash(t) - squash(t - h)) / h
    np.testing.assert_allclose(slopes[0], slopes[1], atol=1e-5)


@given(st.lists(st.tuples(NUMBERS, st.integers(1, 4)), min_size=1), st.sampled_from([0.05, 0.5]))
def test_quantiles_of_weighted_values_are_those_of_repeated_ones(pairs, level):
    x, w = np.array(sorted(pairs)).T
    repeated = np.repeat(x, w.astype(int))
    expected = np.quantile(repeated, level, method="averaged_inverted_cdf")
    found = quantile(x, np.cumsum(w), level)
    # Two large numbers may cancel, and leave the rounding of either.
    rounding = 1e-12 * np.abs(x).max()
    assert sum(found) / 2 == pytest.approx(expected, rel=1e-12, abs=rounding)
    assert quantile(repeated, np.arange(len(repeated)) + 1.0, level) == found


@pytest.mark.parametrize("ones", [1, 5, 30, 70, 99])
def test_indicators_are_scaled_as_numbers_are(ones):
    x = (np.arange(100) < ones).astype(float)
    a, b = x[:, None].copy(), x[:, None].copy()
    stack([fit_scale(x, None)])(a)
    stack([indicator_scale(ones / 100)])(b)
    np.testing.assert_allclose(a, b, atol=1e-12)


def test_missing_values_become_the_median_and_get_an_indicator():
    X = np.array([[1.0, 1], [2, 2], [3, 3], [np.nan, 9]] * 3)
    encoder, encoded = fitted(X, np.arange(12.0))
    assert encoder.names_out == ("x0", "x1", "x0 missing")
    assert encoded[3, 0] == encoded[1, 0]
    assert len(set(encoded[:3, 2])) == 1
    assert encoded[3, 2] > encoded[0, 2]
    # In a column without missing values in training they become the median of 1, 2, 3, 9.
    assert np.array_equal(encoder([[1, None]]), encoder([[1.0, 2.5]]))


def test_constant_columns_are_dropped_but_not_their_missing_values():
    encoder, _ = fitted(np.array([[5.0, 5, 1], [5, np.nan, 2]] * 3), np.arange(6.0))
    assert encoder.names_out == ("x2", "x1 missing")


def test_columns_that_are_missing_together_share_an_indicator():
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[:9, [0, 2]] = np.nan
    X[5:9, 3] = np.nan
    encoder, encoded = fitted(X, np.arange(30.0))
    assert encoder.names_out == ("x0", "x1", "x2", "x3", "x0 missing", "x3 missing")
    assert (encoded[:9, 4] > 0).all()
    assert (encoded[9:, 4] < 0).all()


@pytest.mark.parametrize(("rare", "added"), [(2, ()), (3, ("x0 missing",))])
def test_missing_values_too_rare_to_learn_from_have_no_indicator(rare, added):
    x = np.arange(40.0)[:, None]
    x[:rare] = np.nan
    assert fitted(x, np.arange(40.0))[0].names_out == ("x0", *added)
    nearly_all = np.where(np.arange(40) < rare, np.arange(40.0), np.nan)[:, None]
    assert fitted(nearly_all, np.arange(40.0))[0].names_out == ("x0", *added)
    # Whole weights are rows.
    w = np.ones(38)
    w[0] = rare
    few = np.where(np.arange(38) < 1, np.nan, np.arange(38.0))[:, None]
    assert fitted(few, np.arange(38.0), w)[0].names_out == ("x0", *added)


def test_scaling_fills_before_it_scales():
    scaling = Scaling(*(np.array([v]) for v in (5.0, 1.0, 4.0, 0.5, 2.0)))
    x = np.array([[np.nan], [5.0], [1.0]])
    scaling(x)
    assert x.ravel().tolist() == [1.0, 1.0, -1.0]


# Kinds


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (pd.Series([1, None], dtype="Int64"), "numbers"),
        (pd.Series([1.5, None], dtype="Float32"), "numbers"),
        (pd.Series([True, None], dtype="boolean"), "numbers"),
        (pd.Series([True, False]), "numbers"),
        (pd.Series([Decimal("1.5"), None], dtype=object), "numbers"),
        (pd.Series(pd.to_timedelta([1, None], unit="D")), "numbers"),
        (pd.Series([1, 2], dtype="category"), "levels"),
        (pd.Series(["1", "2"]), "levels"),
        (pd.Series(["1", None], dtype="string"), "levels"),
        (pd.Series(["1", 2, 2.5], dtype=object), "levels"),
        (pd.Series([date(2024, 1, 1), None], dtype=object), "dates"),
        (pd.Series(pd.to_datetime(["2024-01-01"])).dt.tz_localize("Asia/Tokyo"), "dates"),
        (pd.Series([date(2024, 1, 1), 3], dtype=object), "levels"),
        (pd.Series([None, float("nan"), pd.NA, pd.NaT], dtype=object), "nothing"),
        (pd.Series([date(2024, 1, 1), None], dtype="date32[pyarrow]"), "dates"),
        (pd.Series([1, None], dtype="int64[pyarrow]"), "numbers"),
        (pd.Series(["a", None], dtype="string[pyarrow]"), "levels"),
        (pl.Series([1, None]), "numbers"),
        (pl.Series([True, None]), "numbers"),
        (pl.Series([timedelta(1), None]), "numbers"),
        (pl.Series(["a", None], dtype=pl.Categorical), "levels"),
        (pl.Series(["a", None], dtype=pl.Enum(["a"])), "levels"),
        (pl.Series([date(2024, 1, 1), None]), "dates"),
        (pl.Series([datetime(2024, 1, 1, tzinfo=UTC)]), "dates"),
        (np.array(["1", "2"]), "levels"),
    ],
)
def test_the_type_of_a_column_says_what_it_holds(cells, kind):
    assert read_column(cells, "Column 'c'").kind == kind


def test_durations_are_seconds():
    assert read_column(pl.Series([timedelta(1), None]), "").numbers()[0] == 86400


def test_cells_of_no_kind_are_refused():
    for cells in (pd.Series([b"a"]), pd.Series([[1]]), np.array([b"a"]), np.array([1j])):
        with pytest.raises(TypeError, match=r"Column 'c' .* argument must be a string, a number"):
            read_column(cells, "Column 'c'")


def test_equal_cells_have_equal_texts():
    for cells in ((1, 1.0, True, np.int8(1), np.True_, Decimal(1)), (0.5, np.float64(0.5))):
        assert len(set(map(text, cells))) == 1
    assert text(2**60 + 1) == str(2**60 + 1)
    assert text(float("inf")) == "inf"


# Dates


def test_dates_are_the_same_instants_in_every_zone_and_unit():
    winter = datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=5)))
    noon = pd.Series([winter, None])
    expected = datetime(2024, 1, 1, 7, tzinfo=UTC).timestamp()
    for cells in (
        noon,
        noon.astype(object),
        noon.dt.tz_convert("Asia/Tokyo"),
        noon.dt.tz_convert(None).astype("datetime64[ns]"),
        pl.Series([winter.astimezone(UTC), None]),
        pl.Series([winter.astimezone(UTC), None]).dt.cast_time_unit("ms"),
    ):
        seconds = read_column(cells, "").seconds()
        assert seconds[0] == expected
        assert np.isnan(seconds[1])


def test_the_day_counts_only_if_the_hour_varies():
    days = pd.date_range("2023-01-01", periods=200)
    of_days = fitted(pd.DataFrame({"t": days}), np.arange(200))[0]
    assert not [name for name in of_days.names_out if "day" in name]
    hours = pd.date_range("2023-01-01", periods=200, freq="h")
    of_hours, encoded = fitted(pd.DataFrame({"t": hours}), np.arange(200))
    place = of_hours.names_out.index("t day sin")
    np.testing.assert_allclose(encoded[24:, place], encoded[:-24, place], atol=1e-9)
    # Months that training did not see are still dates of a cycle.
    later = of_days(pd.DataFrame({"t": days + pd.Timedelta(days=7 * 1000)}))
    place = of_days.names_out.index("t week cos")
    np.testing.assert_allclose(later[:, place], of_days(pd.DataFrame({"t": days}))[:, place])
