"""Every kind of column means the same in the command line and in Python, in text and in Parquet."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command_line import rfrboost, worked

from rfrboost import RFRBoostClassifier, RFRBoostRegressor, load
from rfrboost.cli.reading.columns import code_among, level_of

N_ROWS = 40
DAYS = pd.date_range("2024-01-01", periods=4)


def repeated(values, dtype=None):
    """A column that repeats four values."""
    return pd.Series(list(values) * (N_ROWS // 4), dtype=dtype)


#: columns of every kind, with and without missing values
COLUMNS = {
    "bool": repeated([True, False, False, True]),
    "bool, missing": repeated([True, False, None, True], object),
    "nullable bool": repeated([True, False, None, True], "boolean"),
    "int": repeated([1, 5, 2, 9]),
    "nullable int": repeated([1, 5, None, 9], "Int64"),
    "float": repeated([1.0, 2.5, np.nan, 1e-3]),
    "text": repeated(["a", "b", None, "c"]),
    "words for truth": repeated(["True", "False", "unknown", "True"]),
    "numbers and words": repeated(["1", "2.0", "x", "1"]),
    "categories of ints": repeated([1, 5, 2, 9], "category"),
    "categories of ints, missing": repeated([1, 5, None, 9], "Int64").astype("category"),
    "categories of floats": repeated([1.0, 2.5, np.nan, 3.0], "category"),
    "categories of text": repeated(["a", "b", None, "c"], "category"),
    "categories of text that spells numbers": repeated(["01", "1", None, "2.50"], "category"),
    "categories of bools": repeated([True, False, None, True]).astype("category"),
    "categories of dates": repeated(DAYS, "category"),
    "dates": repeated([*DAYS[:3], pd.NaT]),
}
#: columns of dates are text in pandas.read_csv unless it is told
DATES = ("dates", "categories of dates")
FORMATS = ("csv", "parquet")


def table_of(kind):
    """The column beside a column of numbers, and a target that depends on both."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": COLUMNS[kind], "x": rng.standard_normal(N_ROWS).round(3)})
    return frame, frame["x"] + np.tile([0.0, 1.0, 5.0, 3.0], N_ROWS // 4)


def write(frame, path):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)


def read(path, kind):
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    frame = pd.read_csv(path)
    return frame.assign(c=pd.to_datetime(frame["c"])) if kind in DATES else frame


@pytest.mark.parametrize("kind", COLUMNS)
def test_models_of_python_predict_the_same_in_the_command_line(kind, tmp_path):
    frame, y = table_of(kind)
    model = RFRBoostRegressor(n_bags=1, random_state=0).fit(frame, y)
    model.save(tmp_path / "m")
    expected = model.predict(frame)
    assert np.ptp(expected[:4] - model.predict(frame.assign(c=COLUMNS[kind].iloc[0]))[:4]) > 0.1
    for ending in FORMATS:
        path = tmp_path / f"t.{ending}"
        write(frame, path)
        found = worked(rfrboost("predict", tmp_path / "m", path)).numbers
        np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=ending)


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("kind", COLUMNS)
def test_models_of_the_command_line_predict_the_same_in_python(kind, ending, tmp_path):
    frame, y = table_of(kind)
    path = tmp_path / f"t.{ending}"
    write(frame.assign(y=y), path)
    words = ("--target", "y", "--task", "regression", "--bags", "1", "-o", tmp_path / "m")
    worked(rfrboost("fit", path, *words))
    expected = worked(rfrboost("predict", tmp_path / "m", path)).numbers
    table = read(path, kind).drop(columns="y")
    np.testing.assert_allclose(load(tmp_path / "m").predict(table), expected, rtol=1e-9)
    by_python = RFRBoostRegressor(n_bags=1, random_state=0).fit(table, y)
    np.testing.assert_allclose(by_python.predict(table), expected, rtol=1e-6)


def test_dates_as_text_in_python_are_one_sentence(tmp_path):
    frame, y = table_of("dates")
    write(frame.assign(y=y), tmp_path / "t.csv")
    words = ("--target", "y", "--task", "regression", "-o", tmp_path / "m")
    worked(rfrboost("fit", tmp_path / "t.csv", *words))
    with pytest.raises(ValueError, match=r"'c' held dates .* pandas\.to_datetime"):
        load(tmp_path / "m").predict(pd.read_csv(tmp_path / "t.csv").drop(columns="y"))


def test_models_with_truth_values_in_lower_case_as_levels(tmp_path):
    """As the command line of 0.1.0 fitted them."""
    frame, y = table_of("bool")
    words = frame.assign(c=frame["c"].map({True: "true", False: "false"}))
    model = RFRBoostRegressor(random_state=0).fit(words, y)
    model.save(tmp_path / "m")
    write(frame, tmp_path / "t.csv")
    found = worked(rfrboost("predict", tmp_path / "m", tmp_path / "t.csv")).numbers
    np.testing.assert_allclose(found, model.predict(words), rtol=1e-9)


@pytest.mark.parametrize("ending", FORMATS)
def test_labels_that_are_truth_values(ending, tmp_path):
    frame, _ = table_of("float")
    labels = np.arange(N_ROWS) % 2 == 0
    path, out = tmp_path / f"t.{ending}", tmp_path / f"p.{ending}"
    write(frame.assign(x=labels + frame["x"] / 9, y=labels), path)
    worked(rfrboost("fit", path, "--target", "y", "-o", tmp_path / "m"))
    worked(rfrboost("predict", tmp_path / "m", path, "--out", out))
    predicted = read(out, "bool")["prediction"]
    assert predicted.dtype == bool
    model = load(tmp_path / "m")
    assert model.score(read(path, "bool")[["c", "x"]], labels) == (predicted == labels).mean() > 0.9
    if ending == "csv":
        assert set(out.read_text().split()) == {"prediction", "True", "False"}
    by_python = RFRBoostClassifier(random_state=0).fit(read(path, "bool")[["c", "x"]], labels)
    by_python.save(tmp_path / "python")
    ran = worked(rfrboost("predict", tmp_path / "python", path))
    assert pd.read_csv(io.BytesIO(ran.out))["prediction"].tolist() == predicted.tolist()


def test_codes_with_leading_zeros_are_the_levels_of_the_fit(tmp_path):
    """Rare codes too, of which a model keeps checksums only; "07" is 7 where 7 is a level."""
    codes = [f"{k // 3 if k < 30 else k:03d}" for k in range(N_ROWS)]
    frame = pd.DataFrame({"c": codes, "y": np.arange(N_ROWS) ** 2})
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = tmp_path / "m.rfrboost"
    words = ("--target", "y", "--categorical", "c", "--out", model)
    worked(rfrboost("fit", tmp_path / "t.csv", *words))
    assert "unseen" not in worked(rfrboost("predict", model, tmp_path / "t.csv")).said
    assert level_of("07", {"1"}) == "07"
    assert level_of("07", {"7"}) == 7
    assert level_of("07", {"7", "07"}) == "07"
    assert level_of("000", {"0"}) == 0
    # More digits than Python converts to a whole number.
    assert level_of("0" * 5000 + "7", {"1"}) == "0" * 5000 + "7"
    assert level_of("0" * 5000 + "7", {"7"}) == 7


def test_codes_with_leading_zeros_are_text_as_in_a_data_frame(tmp_path):
    codes = repeated(["00123", "10115", "00042", ""])
    rng = np.random.default_rng(0)
    x = rng.standard_normal(N_ROWS).round(3)
    frame = pd.DataFrame({"zip": codes, "x": x})
    y = x + np.tile([0.0, 9.0, 5.0, 3.0], N_ROWS // 4)
    frame.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    words = ("-t", "y", "-o", tmp_path / "m")
    ran = worked(rfrboost("fit", tmp_path / "t.csv", *words))
    assert "Column 'zip' is text" in ran.said
    assert "'00123'" in ran.said
    model = load(tmp_path / "m")
    assert [column.kind for column in model.column_report_] == ["categories", "numbers"]
    printed = worked(rfrboost("predict", tmp_path / "m", tmp_path / "t.csv")).numbers
    np.testing.assert_allclose(printed, model.predict(frame.replace("", None)), rtol=1e-9)


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        (["00123", "10115"], "00123"),
        (["10115", "", " 00042 ", "NA"], "00042"),
        (["0", "10", "20"], None),
        (["0.5", "00.5"], None),
        (["007", "12"], None),
        (["00", "0x"], None),
        (["123", "456"], None),
        (["", ""], None),
    ],
)
def test_codes_are_digits_of_one_width_with_a_leading_zero(cells, code):
    assert code_among(pa.chunked_array([pa.array(cells, pa.string())])) == code
