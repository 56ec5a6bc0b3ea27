"""What the command line says about columns, and values written as people write them."""

import numpy as np
import pytest
from command_line import rfrboost, text_of, worked

from rfrboost import load


def sales(n=60, seed=0):
    """Prices and dates as text, an id, and a number to predict."""
    rng = np.random.default_rng(seed)
    rows = [["order", "price", "day", "paid", "town", "y"]]
    for k in range(n):
        price = rng.uniform(0, 5000)
        day = np.datetime64("2024-01-01") + int(rng.integers(300))
        written = day.astype(object).strftime("%d.%m.%Y")
        paid = str(rng.choice(["Yes", "no"]))
        town = str(rng.choice(["north", "south"]))
        rows.append([f"o{k}q", f"${price:.2f}", written, paid, town, f"{price / 100 + k:.3f}"])
    return rows


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    path = tmp_path_factory.mktemp("columns") / "m.rfrboost"
    ran = worked(rfrboost("fit", "-", "--target", "y", "-o", path, stdin=text_of(sales())))
    return path, ran


def test_fit_says_how_columns_were_read(fit):
    path, ran = fit
    assert "Columns: 2 numeric, 1 date, 1 categorical, 1 not used." in ran.said
    assert "  price: numbers, 79.96 to 4795.39, numbers written as text" in ran.said
    assert "order: categories, 60 levels, not used, too few rows have the same value" in ran.said
    assert all(f"  {name}: " in ran.said for name in ("price", "day", "order", "town"))
    assert "'order' is not used" in ran.said
    report = {column.name: column for column in load(path).column_report_}
    assert report["price"].high > 1000
    assert report["day"].kind == "dates"


def test_info_shows_the_report(fit):
    shown = worked(rfrboost("info", fit[0])).out.decode()
    assert "dates, 2024-" in shown
    assert "categories, 60 levels, not used" in shown


def test_predict_reads_columns_as_fit_did_and_counts_strange_rows(fit):
    rows = sales()
    plain = worked(rfrboost("predict", fit[0], "-", stdin=text_of(rows)))
    assert "training" not in plain.said
    assert len(set(plain.numbers)) > 50
    for row in rows[1:4]:
        row[1] = "$999999.00"
    rows[5][4] = "moon"
    strange = worked(rfrboost("predict", fit[0], "-", stdin=text_of(rows)))
    assert "4 of 60 rows hold numbers far outside" in strange.said
    assert "price (3)" in strange.said
    assert "town (1)" in strange.said
    assert strange.said.count("far outside") == 1


def test_numbers_written_as_text_are_numbers_in_everything_that_is_said(tmp_path):
    rows = [["price", "y"]] + [[f'"{20.5 * k:,.2f}"', str(0.5 * k)] for k in range(60)]
    ran = worked(rfrboost("fit", "-", "--target", "y", "-o", tmp_path / "m", stdin=text_of(rows)))
    assert "categor" not in ran.said
    assert "Columns: 1 numeric." in ran.said
    assert "price: numbers, 0 to 1209.5, numbers written as text" in ran.said
    said = worked(rfrboost("info", tmp_path / "m")).out.decode()
    assert "1 (1 numeric): price" in said
