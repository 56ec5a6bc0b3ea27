"""How tables are read: every format gives the same answer, and errors name what is wrong."""

import gzip
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from command_line import failed, mixed_table, rfrboost, text_of, worked

from rfrboost.cli.reading import tables
from rfrboost.cli.reading.columns import DATES, NUMBERS, TEXT, recognised
from rfrboost.cli.request import Task
from rfrboost.cli.training import read_target

ROWS = mixed_table()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.rfrboost"
    worked(rfrboost("fit", "-", "--target", "y", "-o", path, stdin=text_of(ROWS)))
    return path


@pytest.fixture(scope="module")
def right(model):
    """The predictions of the table as it is."""
    return worked(rfrboost("predict", model, "-", stdin=text_of(ROWS))).numbers


def parquet(rows):
    """The rows as a Parquet file with types, as Arrow finds them."""
    table = pyarrow.csv.read_csv(io.BytesIO(text_of(rows)))
    stream = io.BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


FORMATS = {
    "t.csv": text_of(ROWS),
    "t.tsv": text_of(ROWS, "\t"),
    "semicolons.csv": text_of(ROWS, ";"),
    "t.csv.gz": gzip.compress(text_of(ROWS)),
    "t.tsv.gz": gzip.compress(text_of(ROWS, "\t")),
    "mark.csv": b"\xef\xbb\xbf" + text_of(ROWS),
    "wide.csv": text_of(ROWS).decode().encode("utf-16"),
    "windows.csv": text_of(ROWS).replace(b"\n", b"\r\n"),
    "quoted.csv": text_of([[f'"{cell}"' for cell in row] for row in ROWS]),
    "spaces.csv": text_of(ROWS, " , "),
    "blank.csv": text_of(ROWS).replace(b"\n", b"\n\n"),
    "unfinished.csv": text_of(ROWS).rstrip(b"\n"),
    "t.parquet": parquet(ROWS),
    "t.parquet.gz": gzip.compress(parquet(ROWS)),
    "reordered.csv": text_of([row[::-1] for row in ROWS]),
    "unnamed.csv": text_of([["", *ROWS[0]]] + [[str(k), *r] for k, r in enumerate(ROWS[1:])]),
    "question_marks.csv": text_of([["?" if not r[0] else r[0], *r[1:]] for r in ROWS]),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_predictions(name, model, right, tmp_path):
    (tmp_path / name).write_bytes(FORMATS[name])
    np.testing.assert_array_equal(
        worked(rfrboost("predict", model, tmp_path / name)).numbers, right
    )
    if "tsv" not in name:  # a pipe has no name to say that tabs separate
        piped = rfrboost("predict", model, "-", stdin=FORMATS[name])
        np.testing.assert_array_equal(worked(piped).numbers, right)


@pytest.mark.parametrize("name", ["t.tsv", "t.csv.gz", "t.parquet", "wide.csv", "unnamed.csv"])
def test_every_format_fits_the_same_model(name, right, tmp_path):
    (tmp_path / name).write_bytes(FORMATS[name])
    ran = worked(rfrboost("fit", tmp_path / name, "--target", "y", "-o", tmp_path / "m"))
    assert ("unnamed first column" in ran.said) == (name == "unnamed.csv")
    printed = worked(rfrboost("predict", tmp_path / "m", "-", stdin=text_of(ROWS))).numbers
    np.testing.assert_allclose(printed, right, rtol=1e-9)


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.csv.gz", "p.parquet"])
def test_results_are_written_as_their_name_says(name, model, right, tmp_path):
    path = tmp_path / name
    ran = worked(rfrboost("predict", model, "-", "--out", path, stdin=text_of(ROWS)))
    assert ran.out == b""
    # Numbers are parsed by Python: older versions of pandas round them.
    read = pd.read_parquet(path) if name.endswith("parquet") else pd.read_csv(path, dtype=str)
    np.testing.assert_array_equal([float(cell) for cell in read["prediction"]], right)
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("rows", [1, 5, 7, 64])
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_blocks_give_what_the_whole_gives(rows, name, model, right, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_ROWS", rows)
    (tmp_path / name).write_bytes(FORMATS[name])
    printed = worked(rfrboost("predict", model, tmp_path / name)).numbers
    np.testing.assert_allclose(printed, right, rtol=1e-12)


def test_whole_numbers_with_missing_values_in_one_block_only(tmp_path, monkeypatch):
    """Missing values in one block do not change what the column means in others."""
    header, *rows = [["k", "y"]] + [[str(i % 5), str(i % 5 * 1.5)] for i in range(30)]
    rows[17][0] = rows[18][0] = ""
    data = text_of([header, *rows])
    worked(rfrboost("fit", "-", "--target", "y", "-o", tmp_path / "m", stdin=data))
    whole = worked(rfrboost("predict", tmp_path / "m", "-", stdin=data)).numbers
    monkeypatch.setattr(tables, "BLOCK_ROWS", 4)
    blocks = worked(rfrboost("predict", tmp_path / "m", "-", stdin=data)).numbers
    np.testing.assert_allclose(blocks, whole, rtol=1e-12)


@pytest.mark.parametrize("block", [4, 2**15])
def test_a_stray_word_is_named_with_its_row(block, model, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_ROWS", block)
    rows = [row[:] for row in ROWS]
    rows[17][0] = "unknown"
    out = tmp_path / "p.csv"
    ran = rfrboost("predict", model, "-", "--out", out, stdin=text_of(rows))
    failed(ran, "'size'", "row 17", "'unknown'")
    assert list(tmp_path.iterdir()) == []
    rows[17][0], rows[20][2] = "1.0", "yesterday"
    ran = rfrboost("predict", model, "-", "--out", out, stdin=text_of(rows))
    failed(ran, "'day'", "row 20", "'yesterday'")
    assert list(tmp_path.iterdir()) == []


def test_a_stray_word_in_fit_is_reported(tmp_path):
    rows = [row[:] for row in ROWS]
    rows[3][0] = "unknown"
    ran = worked(rfrboost("fit", "-", "--target", "y", "-o", tmp_path / "m", stdin=text_of(rows)))
    assert "Column 'size' is text: most cells are numbers" in ran.said
    assert "row 3 contains 'unknown'" in ran.said


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2.5", "-3e4", ".5", "+7"], NUMBERS),
        (["1", "", "NA", "None", "?", "-", "."], NUMBERS),
        (["1,000", "2,500"], TEXT),
        (["1_000"], TEXT),
        (["0x10"], TEXT),
        (["1 000"], TEXT),
        (["12 kg"], TEXT),
        (["2024-01-31", "2024-02-29"], DATES),
        (["2024-01-31 10:00", "2024-01-31T10:00:00.5Z", "2024-01-31 10:00:00+02:00"], DATES),
        (["2023-02-29"], TEXT),
        (["31/01/2024"], TEXT),
        (["01.02.2024"], TEXT),
        (["2024-1-2"], TEXT),
        (["2024-01-31", "soon"], TEXT),
        (["true", "False", "TRUE", "NA"], NUMBERS),
        (["True", "False", "1"], TEXT),
        (["True", "tRUE"], TEXT),
        (["", "NA"], TEXT),
    ],
)
def test_what_cells_mean(cells, kind):
    assert recognised(pa.chunked_array([pa.array(cells)]))[0] == kind


@pytest.mark.parametrize(
    ("cells", "task"),
    [
        (["a", "b", "a", "b"], Task.CLASSIFICATION),
        (["0", "1", "1", "0"], Task.CLASSIFICATION),
        ([str(k) for k in range(10)], Task.CLASSIFICATION),
        ([str(k) for k in range(11)], Task.REGRESSION),
        (["0.5", "1", "1", "0"], Task.REGRESSION),
        (["0.0", "1.0"], Task.CLASSIFICATION),
        ([0, 1, 2], Task.CLASSIFICATION),
        ([0.0, 1.0, None], Task.CLASSIFICATION),
        ([0.5, 1.0, None], Task.REGRESSION),
        ([0.0, 1.0, 2.0], Task.REGRESSION),
        ([True, False], Task.CLASSIFICATION),
    ],
)
def test_the_task_is_detected(cells, task, capsys):
    target = read_target(pa.chunked_array([pa.array(cells)]), "y", None)
    assert target.task == task
    assert f"Task: {task}" in capsys.readouterr().err
    assert len(target.labels) == sum(cell is not None for cell in cells)


@pytest.mark.parametrize(("cells", "words"), [(["a", "a"], "1 class"), (["a", "b"], "2 classes")])
def test_one_class_is_singular(cells, words, capsys):
    read_target(pa.chunked_array([pa.array(cells)]), "y", None)
    assert capsys.readouterr().err == f"Task: classification ({words})\n"


def test_a_constant_target_has_no_score(tmp_path):
    rows = [["x", "y"]] + [[str(k), "2.5"] for k in range(60)]
    words = ("fit", "-", "--target", "y", "--task", "regression", "--bags", "2")
    ran = worked(rfrboost(*words, "-o", tmp_path / "m", stdin=text_of(rows)))
    assert "Every value of 'y' is the same" in ran.said
    assert "R²" not in ran.said


def test_classes_come_back_as_they_are_written(tmp_path):
    truths = (["True", "False"], ["TRUE", "FALSE"], ["true", "false"])
    for labels in (["1", "2"], ["01", "02"], ["1.0", "2.0"], ["é", "ü"], *truths):
        rows = [["x", "y"]] + [[str(k), labels[k % 2]] for k in range(24)]
        words = ("fit", "-", "--target", "y", "--task", "classification", "-o", tmp_path / "m")
        worked(rfrboost(*words, stdin=text_of(rows)))
        printed = worked(rfrboost("predict", tmp_path / "m", "-", stdin=text_of(rows))).rows
        assert set(printed) == set(labels)


def test_truth_values_mean_the_same_in_text_and_in_parquet(tmp_path):
    flags = np.arange(24) % 3 == 0
    frame = pd.DataFrame({"flag": flags, "y": flags * 2.0 + np.arange(24) / 100})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    worked(rfrboost("fit", tmp_path / "t.parquet", "--target", "y", "-o", tmp_path / "m"))
    first, second = (
        worked(rfrboost("predict", tmp_path / "m", tmp_path / name)).numbers
        for name in ("t.parquet", "t.csv")
    )
    np.testing.assert_array_equal(first, second)
    assert len(set(first)) == 2


def test_rows_without_a_label_are_left_out_and_counted(tmp_path):
    rows = [row[:] for row in ROWS]
    rows[5][3], rows[6][3] = "", "NA"
    ran = worked(rfrboost("fit", "-", "--target", "y", "-o", tmp_path / "m", stdin=text_of(rows)))
    assert "Left out 2 of 36 rows without a value of 'y'." in ran.said
    assert "Fitting 34 rows, 3 columns." in ran.said


WRONG = {
    "empty": (b"", "empty"),
    "blank": (b"\n \n", "empty"),
    "header only": (b"size,town,day,y\n", "no rows"),
    "no target": (b"a,b\n1,2\n", "no column y"),
    "empty target": (b"a,y\n1,\n2,\n", "'y' is empty"),
    "only the target": (b"y\n1\n2\n", "no column to predict"),
    "twins": (b"a,a,y\n1,2,3\n", "several columns named a"),
    "unnamed": (b"a,,y\n1,2,3\n", "Column 2"),
    "too many cells": (b"a,y\n1,2\n1,2,3\n", "Line 3"),
    "too few cells": (b"a,y\n1,2\n1\n", "Line 3"),
    "open quote": (b'a,y\n"1,2\n3,4\n', "quote is never closed"),
    "bad quote": (b'a,y\n"1"x,2\n3,4\n', "Line 2"),
    "latin": ("a,y\nné,2\n".encode("latin-1"), "Line 2"),
    "zero byte": (b"a,y\n1,2\0\n", "zero byte"),
    "cut gzip": (gzip.compress(text_of(ROWS))[:-20], "cut short"),
    "cut parquet": (parquet(ROWS)[:-20], "Parquet"),
    "one class": (b"a,y\n" + b"1,b\n" * 9, "one class"),
    "words": (b"a,y\n" + b"".join(b"1,w%d\n" % k for k in range(40)), "too many"),
    "a word among labels": (b"a,y\n1,oh\n" + b"".join(b"1,%d.5\n" % k for k in range(40)), "'oh'"),
    "infinity": (b"a,y\n" + b"".join(b"%d,%d.5\n" % (k, k) for k in range(20)) + b"inf,1\n", "'a'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_table_that_cannot_be_fitted_is_one_sentence(name, tmp_path):
    data, piece = WRONG[name]
    ran = rfrboost("fit", "-", "--target", "y", "-o", tmp_path / "m", stdin=data)
    failed(ran, piece)
    assert list(tmp_path.iterdir()) == []


def test_a_table_without_rows_predicts_nothing(model):
    ran = worked(rfrboost("predict", model, "-", stdin=b"size,town,day\n"))
    assert ran.out == b"prediction\n"


def test_lacking_columns_are_named_and_others_ignored(model):
    failed(rfrboost("predict", model, "-", stdin=b"size,y\n1,2\n"), "town, day")
    ran = worked(rfrboost("predict", model, "-", stdin=b"id,size,town,day\n7,1,north,2024-01-01\n"))
    assert "Ignored columns: id\n" in ran.said


def test_files_that_are_not_there(model, tmp_path):
    failed(rfrboost("predict", model, tmp_path / "none.csv"), "none.csv")
    failed(rfrboost("predict", tmp_path / "none", "-"), "none")
    failed(rfrboost("info", tmp_path / "none"), "none")
    failed(rfrboost("predict", model, tmp_path), "folder")


def test_types_that_no_model_takes_are_named(tmp_path):
    lists = pa.table({"x": [[1], [2]] * 10, "d": [pd.Timestamp(0)] * 20, "y": np.arange(20.0)})
    pq.write_table(lists, tmp_path / "t.parquet")
    words = ("fit", tmp_path / "t.parquet", "-o", tmp_path / "m", "--target")
    failed(rfrboost(*words, "y"), "'x'", "list")
    failed(rfrboost(*words, "d"), "'d'", "cannot be predicted")
    failed(rfrboost(*words, "d", "--task", "regression"), "'d'", "cannot be predicted")
    worked(rfrboost(*words, "y", "--drop", "x"))


@pytest.mark.parametrize("name", ["p.xlsx", "p.json.gz", "p.parquet.gz"])
def test_results_of_other_kinds_are_refused_at_once(name, model, tmp_path):
    words = ("--out", tmp_path / name)
    failed(rfrboost("predict", model, "-", *words, stdin=text_of(ROWS)), name, code=2)
    ran = rfrboost("evaluate", "-", "--target", "y", *words, stdin=text_of(ROWS))
    failed(ran, name, code=2)
    assert list(tmp_path.iterdir()) == []


def test_three_thousand_columns(tmp_path):
    """Most of them hold one number only, so that reading is what takes time here."""
    rng = np.random.default_rng(0)
    names = [f"c{j}" for j in range(3_000)]
    cells = rng.integers(0, 100, (12, 3)).astype(str).tolist()
    rows = [[*names, "y"]] + [[*row, *["7"] * 2_997, str(k * 1.5)] for k, row in enumerate(cells)]
    worked(rfrboost("fit", "-", "--target", "y", "-o", tmp_path / "m", stdin=text_of(rows)))
    ran = worked(rfrboost("predict", tmp_path / "m", "-", stdin=text_of(rows)))
    assert len(ran.rows) == 12
    rows[0][2] = "c1"
    failed(
        rfrboost("predict", tmp_path / "m", "-", stdin=text_of(rows)), "several columns named c1"
    )
