"""Values as people write them in text: recognised for whole columns, and read again as in fit."""

from datetime import datetime

import numpy as np
import pandas as pd
import pytest
from example_tables import fitted
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_tables import through_a_file

from rfrboost._tables.spellings import Spelling, recognised, spelling_of

NUMBERS = {
    "plain": (["123.45", "-2", "+1e3", ".5"], [123.45, -2, 1000, 0.5]),
    "dollars": (["$1,234.50", "-$3", "$ 7"], [1234.5, -3, 7]),
    "percent": (["12 %", "3%", "0.5"], [0.12, 0.03, 0.5]),
    "decimal comma": (["1.234,56", "2,5", "€ 3"], [1234.56, 2.5, 3]),
    "spaces": (["1 234", "1\u00a0234\u202f567", "12"], [1234, 1234567, 12]),
    "brackets": (["(12)", "($1,000.5)", "4"], [-12, -1000.5, 4]),
    "currencies": (["USD 5", "6 CHF", "1'234.50"], [5, 6, 1234.5]),
    "missing": (["1", "", "NA", "?", "-", None], [1, np.nan, np.nan, np.nan, np.nan, np.nan]),
    "thousands": (["1,234", "12,345,678"], [1234, 12345678]),
    "decimal comma below one": (["0,250", "1", "2,5"], [0.25, 1, 2.5]),
    "three decimals": (["0,250", "1,875", "12,125"], [0.25, 1.875, 12.125]),
}


@pytest.mark.parametrize(("texts", "numbers"), NUMBERS.values(), ids=NUMBERS)
def test_numbers(texts, numbers):
    spelling, advice = recognised(texts)
    assert spelling.what == "numbers"
    np.testing.assert_allclose(spelling.numbers(texts), numbers)
    assert advice == ""


@pytest.mark.parametrize(
    "texts",
    [
        ["02139", "12345"],  # postcodes
        ["1.5", "2,5"],  # two decimal signs
        ["1.2.3", "4"],
        ["12-34", "5"],
        ["a1", "2"],
        ["1,23,456"],
        ["ABC 12", "ABC 15"],
        ["inf", "1"],
        ["yes", "true"],  # two spellings
        ["f", "n"],
        ["", "NA"],
        [],
    ],
)
def test_what_is_no_number_stays_text(texts):
    assert spelling_of(texts) is None


@pytest.mark.parametrize(
    ("texts", "when"),
    [
        (["12/31/2024", "01/02/2024"], ["2024-12-31", "2024-01-02"]),
        (["31/12/2024", "01/02/2024"], ["2024-12-31", "2024-02-01"]),
        (["31.12.2024", "1.2.2024"], ["2024-12-31", "2024-02-01"]),
        (["2024-12-31", "2024-12-31 10:30", "2024-12-31T10:30:00+02:00"],
         ["2024-12-31", "2024-12-31T10:30", "2024-12-31T08:30"]),
        (["12/31/2024 1:05 PM"], ["2024-12-31T13:05"]),
        (["31.12.2024 13:05:10"], ["2024-12-31T13:05:10"]),
        (["5 Dec 2024", ""], ["2024-12-05", "NaT"]),
        (["2024/12/05"], ["2024-12-05"]),
        (["2024-1-5", "2024-12-31"], ["2024-01-05", "2024-12-31"]),
        (["2024.01.31"], ["2024-01-31"]),
        (["Jan 31 2024"], ["2024-01-31"]),
        (["Wed, 31 Jan 2024"], ["2024-01-31"]),
        (["Jan 2024", "Dec 2023"], ["2024-01-01", "2023-12-01"]),
        (["2024-01-31 10:00:00 UTC"], ["2024-01-31T10:00:00"]),
    ],
)  # fmt: skip
def test_dates(texts, when):
    spelling = spelling_of(texts)
    assert spelling.what == "dates"
    dates = np.array(when, dtype="datetime64[s]")
    seconds = np.where(np.isnat(dates), np.nan, dates.astype(np.int64))
    assert np.array_equal(spelling.numbers(texts), seconds, equal_nan=True)


def test_truth_values():
    for yes, no in (("Yes", "no"), ("TRUE", "false"), ("y", "N"), ("T", "F")):
        assert spelling_of([yes, no]).numbers([no, yes, None])[:2].tolist() == [0, 1]


def test_an_ambiguous_date_is_named():
    spelling, advice = recognised(["01/02/2024", "03/04/2024"])
    assert spelling.form == "%m/%d/%Y"
    assert "month is taken to be first" in advice


def test_one_odd_value_among_numbers_is_named():
    texts = [str(k / 4) for k in range(20)]
    assert "'about 3' is not" in recognised([*texts, "about 3"])[1]
    assert recognised([*texts, None, "n/a"])[1] == ""
    assert recognised(["red", "green", "7"])[1] == ""


@settings(deadline=None)
@example([1.115])
@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=20))
def test_any_numbers_are_read_however_they_are_written(numbers):
    # What the text says: np.round(1.115, 2) is 1.12, and f"{1.115:.2f}" is 1.11.
    written = [float(f"{x:.2f}") for x in numbers]
    # With fewer than three digits after the sign it cannot be one of thousands.
    for write in (
        lambda x: f"{x:.2f}",
        lambda x: f"${x:,.2f}",
        lambda x: f"{x:.2f}".replace(".", ","),
        lambda x: f"{x:,.2f}".replace(",", " "),
    ):
        texts = [write(x) for x in numbers]
        spelling = spelling_of(texts)
        np.testing.assert_allclose(spelling.numbers(texts), written, rtol=1e-12)


@settings(deadline=None)
@given(
    st.lists(
        st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(
            lambda d: d.replace(microsecond=0)
        ),
        min_size=1,
        max_size=10,
    ),
    st.sampled_from(["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%d.%m.%Y %H:%M:%S"]),
)
def test_any_dates_are_read(dates, form):
    texts = [date.strftime(form).zfill(19) for date in dates]
    seconds = spelling_of(texts).numbers(texts)
    assert seconds.tolist() == np.array(dates, "datetime64[s]").astype(np.int64).tolist()


@settings(deadline=None)
@given(st.lists(st.text(max_size=12), max_size=8))
def test_any_text_is_read_to_finite_numbers_or_not_at_all(texts):
    spelling, advice = recognised(texts)
    assert isinstance(advice, str)
    if spelling is not None:
        assert not np.isinf(spelling.numbers(texts)).any()


def test_an_encoder_reads_text_as_in_fit_and_through_a_file():
    rng = np.random.default_rng(0)
    prices = rng.uniform(500, 5000, 60).round(2)
    days = pd.date_range("2024-03-01", periods=60)
    sold = rng.random(60) < 0.5
    written = pd.DataFrame(
        {
            "price": [f"${price:,.2f}" for price in prices],
            "day": days.strftime("%d.%m.%Y"),
            "sold": np.where(sold, "Yes", "no"),
        }
    )
    plain = pd.DataFrame({"price": prices, "day": days, "sold": sold})
    y = np.log(prices)
    encoder, encoded = fitted(written, y)
    assert np.array_equal(encoded, fitted(plain, y)[1])
    assert np.array_equal(through_a_file(encoder)(written), encoded)
    assert encoder.names_out[0] == "price"
    # Numbers and dates that come as such are as good, and what is not written so is refused.
    assert np.array_equal(encoder(plain), encoded)
    assert np.isfinite(encoder(written.assign(price="n/a"))).all()
    with pytest.raises(
        ValueError, match=r"'price' held numbers written as text in fit.*'cheap' now"
    ):
        encoder(written.assign(price="cheap"))


def test_declared_categories_stay_categories():
    X = pd.DataFrame({"a": pd.Categorical(["1", "2", "3"] * 10)})
    assert fitted(X, np.arange(30.0))[0].names_out == ("a=1", "a=2", "a=3")


def test_a_spelling_refuses_what_it_cannot_read():
    with pytest.raises(ValueError, match="x"):
        Spelling("numbers", ".").numbers(["1", "x"])
