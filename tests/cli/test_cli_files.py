"""Files as people have them: separators, decimal commas, compression, JSON, Excel and Feather."""

import bz2
import datetime
import gzip
import io
import json
import lzma
import re
import sys
import time
import types
import zipfile

import numpy as np
import pandas as pd
import pyarrow.feather
import pytest
from command_line import failed, mixed_table, rfrboost, text_of, worked

from rfrboost.cli import console
from rfrboost.cli.reading import tables
from rfrboost.cli.reading.delimited import DelimitedText
from rfrboost.cli.request import Source

ROWS = mixed_table()
RECORDS = [dict(zip(ROWS[0], row, strict=True)) for row in ROWS[1:]]
TYPED = [
    {**r, "size": float(r["size"]) if r["size"] else None, "y": float(r["y"])} for r in RECORDS
]


def zipped(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def feather(compression: str) -> bytes:
    stream = io.BytesIO()
    frame = pd.DataFrame(TYPED).assign(day=pd.to_datetime([r["day"] for r in TYPED]))
    pyarrow.feather.write_feather(frame, stream, compression=compression)
    return stream.getvalue()


def comma_text(rows: list[list[str]], separator: str = ";") -> bytes:
    """Rows with decimal commas; dates have none."""
    return text_of([[cell.replace(".", ",") for cell in row] for row in rows], separator)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.rfrboost"
    worked(rfrboost("fit", "-", "--target", "y", "-o", path, stdin=text_of(ROWS)))
    return path


@pytest.fixture(scope="module")
def right(model):
    return worked(rfrboost("predict", model, "-", stdin=text_of(ROWS))).numbers


FORMATS = {
    "pipes.txt": text_of(ROWS, "|"),
    "tabs.txt": text_of(ROWS, "\t"),
    "commas.csv": comma_text(ROWS),
    "commas_and_tabs.txt": comma_text(ROWS, "\t"),
    "quoted_commas.csv": text_of([[f'"{c.replace(".", ",")}"' for c in row] for row in ROWS]),
    "excel.csv": b"sep=;\r\n" + comma_text(ROWS),
    "t.csv.bz2": bz2.compress(text_of(ROWS)),
    "t.csv.xz": lzma.compress(text_of(ROWS)),
    "t.zip": zipped({"folder/t.csv": text_of(ROWS), "__MACOSX/t.csv": b"?"}),
    "t.json": json.dumps(TYPED).encode(),
    "text.json": json.dumps(RECORDS, indent=2).encode(),
    "columns.json": pd.DataFrame(TYPED).to_json().encode(),
    "lists.json": json.dumps({key: [r[key] for r in TYPED] for key in ROWS[0]}).encode(),
    "t.jsonl": "".join(json.dumps(r) + "\n" for r in TYPED).encode(),
    "t.jsonl.gz": gzip.compress("".join(json.dumps(r) + "\n" for r in TYPED).encode()),
    "t.feather": feather("lz4"),
    "t.feather.zip": zipped({"t.feather": feather("uncompressed")}),
}


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_predictions(name, piped, model, right, tmp_path):
    (tmp_path / name).write_bytes(FORMATS[name])
    words = ("predict", model, "-" if piped else tmp_path / name)
    ran = worked(rfrboost(*words, stdin=FORMATS[name] if piped else b""))
    np.testing.assert_array_equal(ran.numbers, right)


@pytest.mark.parametrize("name", ["commas.csv", "t.json", "text.json", "t.feather", "t.csv.bz2"])
def test_every_format_fits_the_same_model(name, right, tmp_path):
    (tmp_path / name).write_bytes(FORMATS[name])
    worked(rfrboost("fit", tmp_path / name, "--target", "y", "-o", tmp_path / "m"))
    printed = worked(rfrboost("predict", tmp_path / "m", "-", stdin=text_of(ROWS))).numbers
    np.testing.assert_allclose(printed, right, rtol=1e-9)


@pytest.mark.parametrize("name", ["commas.csv", "t.json", "t.feather"])
@pytest.mark.parametrize("rows", [1, 7])
def test_blocks_give_what_the_whole_gives(rows, name, model, right, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_ROWS", rows)
    (tmp_path / name).write_bytes(FORMATS[name])
    printed = worked(rfrboost("predict", model, tmp_path / name)).numbers
    np.testing.assert_allclose(printed, right, rtol=1e-12)


def read(text: str, name: str = "t.csv", separator: str | None = None, decimal: str | None = None):
    """The columns of a text, and what was said."""
    stream = io.BufferedReader(io.BytesIO(text.encode()))
    table = DelimitedText(stream, name, Source(name, separator, decimal))
    (block,) = table.blocks(1000, table.names, [])
    return block.to_pydict()


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a;b\n1,5;2\n", {"a": ["1.5"], "b": ["2"]}),
        ("a;b\n1.234,56;x,y\n", {"a": ["1234.56"], "b": ["x,y"]}),
        ("a\tb\n-0,5\t1.000\n", {"a": ["-0.5"], "b": ["1000"]}),
        ("a;b\n,5;1e3\n1,5e-3;\n", {"a": [".5", "1.5e-3"], "b": ["1e3", ""]}),
        ("a;b\n1,5;?\nNA;-\n", {"a": ["1.5", "NA"], "b": ["?", "-"]}),
        # Commas that may separate thousands: decimal, unless a number has a decimal point.
        ("a;b\n2,125;1\n", {"a": ["2.125"], "b": ["1"]}),
        ("a;b\n2,125;1.5\n", {"a": ["2,125"], "b": ["1.5"]}),
        ("a;b\n1,234.5;1\n", {"a": ["1,234.5"], "b": ["1"]}),
        ('a,b\n"2,125",1\n', {"a": ["2,125"], "b": ["1"]}),
        ('a,b\n"2,12",1\n', {"a": ["2.12"], "b": ["1"]}),
        # Beside decimal points, each column is read as it is written.
        ("a;b;c\n1,5;1.5;1.234\n", {"a": ["1.5"], "b": ["1.5"], "c": ["1.234"]}),
        ("a;b\n1.5;2\n", {"a": ["1.5"], "b": ["2"]}),
        ("a;b\n31.12.2024;1,5\n", {"a": ["31.12.2024"], "b": ["1.5"]}),
        ("a;b\n1,2,3;1\n", {"a": ["1,2,3"], "b": ["1"]}),
        # One column, and headers with another separator in them.
        ("a\n1,5\n", {"a": ["1.5"]}),
        ("a\nx y\n", {"a": ["x y"]}),
        ("a, in m;b\n1;2\n", {"a, in m": ["1"], "b": ["2"]}),
        ("a|b,c\n1|2,3\n1|2,4\n", {"a|b": ["1|2", "1|2"], "c": ["3", "4"]}),
        ('"a;b",c\n1,2\n', {"a;b": ["1"], "c": ["2"]}),
        ("sep=|\na|b\n1|2\n", {"a": ["1"], "b": ["2"]}),
        ("\n\na|b\n1|2\n", {"a": ["1"], "b": ["2"]}),
    ],
)
def test_what_is_detected(text, columns):
    assert read(text) == columns


def test_what_is_detected_is_said_in_one_line(tmp_path, model):
    for name, line in {
        "commas.csv": "separator ';', decimal comma",
        "pipes.txt": "separator '|'",
        "tabs.txt": "separator tab",
        "quoted_commas.csv": "separator ',', decimal comma",
    }.items():
        (tmp_path / name).write_bytes(FORMATS[name])
        ran = worked(rfrboost("predict", model, tmp_path / name))
        assert ran.said.splitlines()[0] == f"Read {tmp_path / name}: {line}."
        assert ran.said.count("Read ") == 1
    for data in (text_of(ROWS), FORMATS["t.json"], FORMATS["t.feather"]):
        assert "Read " not in worked(rfrboost("predict", model, "-", stdin=data)).said


def test_options_override_what_is_detected():
    assert read("a;b\n1,5;2\n", decimal=".") == {"a": ["1,5"], "b": ["2"]}
    assert read("a;b\n1.234;2\n", decimal=",") == {"a": ["1234"], "b": ["2"]}
    assert read("a;b\n1.234;2\n") == {"a": ["1.234"], "b": ["2"]}
    assert read("a:b;c\n1:2\n", separator=":") == {"a": ["1"], "b;c": ["2"]}
    assert read("a,b\n1,2\n", "t.tsv", separator=",") == {"a": ["1"], "b": ["2"]}


@pytest.mark.parametrize("name", ["t.json", "t.feather"])
def test_options_for_text_are_refused_elsewhere(name, model, tmp_path):
    (tmp_path / name).write_bytes(FORMATS[name])
    ran = rfrboost("predict", model, tmp_path / name, "--decimal", "comma")
    failed(ran, "delimited text", name, code=2)


def test_options_reach_every_command(model, tmp_path):
    table = text_of(ROWS, ":").replace(b".", b",")
    options = ("--separator", ":", "--decimal", "comma")
    words = ("-", "--target", "y", *options)
    worked(rfrboost("fit", *words, "-o", tmp_path / "m", stdin=table))
    worked(rfrboost("evaluate", *words, "--folds", "2", stdin=table))
    worked(rfrboost("predict", tmp_path / "m", "-", *options, stdin=table))
    worked(rfrboost("explain", tmp_path / "m", "-", *options, stdin=table))


def test_a_decimal_point_among_decimal_commas_is_named(model, monkeypatch):
    monkeypatch.setattr("rfrboost.cli.reading.delimited.LINES_AHEAD", 10)
    rows = [[cell.replace(".", ",") for cell in row] for row in ROWS]
    rows[20][0] = "1.5"
    failed(rfrboost("predict", model, "-", stdin=text_of(rows, ";")), "'size'", "row 20", "'1.5'")


def test_a_decimal_comma_after_the_first_lines_says_what_to_do(model, monkeypatch):
    rows = [[cell.split(".")[0] for cell in row] for row in ROWS]
    rows[20][0] = "1,5"
    monkeypatch.setattr("rfrboost.cli.reading.delimited.LINES_AHEAD", 10)
    ran = rfrboost("predict", model, "-", stdin=text_of(rows, ";"))
    failed(ran, "'size'", "row 20", "'1,5'", "--decimal comma")
    worked(rfrboost("predict", model, "-", "--decimal", "comma", stdin=text_of(rows, ";")))


def test_ids_keep_their_spelling_where_numbers_have_commas(model):
    rows = [["id", *ROWS[0]]] + [[f"{k}.000", *row] for k, row in enumerate(ROWS[1:], 1)]
    data = text_of([[r[0], *(cell.replace(".", ",") for cell in r[1:])] for r in rows], ";")
    ran = worked(rfrboost("predict", model, "-", "--id", "id", stdin=data))
    assert [row.split(",")[0] for row in ran.rows] == [row[0] for row in rows[1:]]


@pytest.mark.parametrize("cell", ["{},5", "${}.50", "{} €", "1,{:03}", "{} %", "{} kg", "EUR {}"])
def test_a_text_target_that_looks_like_numbers_is_refused(cell, tmp_path):
    rows = [["x", "y"]] + [[str(k), f'"{cell.format(k + 100)}"'] for k in range(60)]
    words = ("fit", "-", "--target", "y", "--decimal", "point", "-o", tmp_path / "m")
    ran = rfrboost(*words, stdin=text_of(rows))
    failed(ran, "60 different values that look like numbers", repr(cell.format(100)), "--decimal")
    few = [rows[0]] + [[row[0], rows[1 + k % 30][1]] for k, row in enumerate(rows[1:])]
    assert "classification (30 classes)" in worked(rfrboost(*words, stdin=text_of(few))).said


def test_classes_that_only_contain_digits_are_classes(tmp_path):
    rows = [["x", "y"]] + [[str(k), f"class{k % 31}b"] for k in range(93)]
    ran = rfrboost("fit", "-", "--target", "y", "-o", tmp_path / "m", stdin=text_of(rows))
    assert "classification (31 classes)" in worked(ran).said


WORKBOOK = zipped({"[Content_Types].xml": b"<Types/>", "xl/workbook.xml": b"<workbook/>"})
REFUSED = {
    "old.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "Excel workbook of the old kind"),
    "t.ods": (zipped({"mimetype": b"application", "content.xml": b"<x/>"}), "OpenDocument"),
    "t.csv.zst": (b"\x28\xb5\x2f\xfd\x04\x00", "Zstandard"),
    "t.7z": (b"7z\xbc\xaf\x27\x1c\x00\x04", "7-Zip"),
    "t.db": (b"SQLite format 3\x00", "SQLite"),
    "two.zip": (zipped({"a.csv": b"x\n1\n", "b.csv": b"x\n1\n"}), "a.csv, b.csv"),
    "none.zip": (zipped({}), "zero byte"),
    "cut.zip": (zipped({"a.csv": text_of(ROWS)})[:-30], "cut short or damaged"),
    "cut.csv.bz2": (bz2.compress(text_of(ROWS))[:-30], "cut short or damaged"),
    "bad.csv.bz2": (bz2.compress(text_of(ROWS))[:20] + bytes(300), "cut short or damaged"),
    "cut.csv.xz": (lzma.compress(text_of(ROWS))[:-30], "cut short or damaged"),
    "cut.feather": (feather("lz4")[:-30], "not a readable Feather file"),
    "number.json": (b"7", "JSON, but not a table"),
    "mixed.json": (b'[{"a": 1}, 2]', "JSON, but not a table"),
    "uneven.json": (b'{"a": [1, 2], "b": [1]}', "different lengths"),
    "nested.json": (b'[{"a": [1]}, {"a": [2]}]', "lists or objects"),
    "empty.json": (b"[]", "is empty"),
    "bad.jsonl": (b'{"a": 1}\n{"a": \n', "Line 2"),
    "latin.json": ('[{"a": "né"}]'.encode("latin-1"), "not UTF-8"),
    "latin.csv": ("a,y\nné,2\n".encode("latin-1"), "save it with the encoding UTF-8"),
    "quote.csv": (b'a,y\n"1"x,2\n', "a closing quote is followed by other text"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_is_named(name, tmp_path):
    data, piece = REFUSED[name]
    (tmp_path / name).write_bytes(data)
    ran = rfrboost("fit", tmp_path / name, "--target", "y", "-o", tmp_path / "m")
    failed(ran, piece, name)
    assert "iconv" not in ran.said
    assert "expected" not in ran.said


@pytest.mark.parametrize("piped", [False, True])
def test_a_workbook_without_its_reader_says_what_to_install(piped, model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "t.xlsx").write_bytes(WORKBOOK)
    words = ("predict", model, "-" if piped else tmp_path / "t.xlsx")
    ran = rfrboost(*words, stdin=WORKBOOK if piped else b"")
    failed(ran, "Excel workbook", "pip install openpyxl", "CSV")


def test_a_workbook_is_its_first_sheet(model, right, tmp_path, monkeypatch):
    """The reader is replaced by one that gives the rows as openpyxl does."""
    day = datetime.datetime.fromisoformat
    rows = [
        (r["size"], r["town"], day(r["day"]), r["y"], None) for r in TYPED
    ]  # a sheet may have empty columns and rows at its end
    sheet = types.SimpleNamespace(
        title="flats",
        iter_rows=lambda values_only: iter([(*ROWS[0], None), *rows, (None,) * 5]),
    )
    book = types.SimpleNamespace(worksheets=[sheet, sheet], close=lambda: None)
    reader = types.ModuleType("openpyxl")
    reader.__spec__ = types.SimpleNamespace()
    reader.load_workbook = lambda file, read_only, data_only: book
    monkeypatch.setitem(sys.modules, "openpyxl", reader)
    (tmp_path / "t.xlsx").write_bytes(WORKBOOK)
    ran = worked(rfrboost("predict", model, tmp_path / "t.xlsx"))
    np.testing.assert_array_equal(ran.numbers, right)
    assert "the sheet 'flats', the first of 2 sheets" in ran.said


def test_off_a_terminal_a_line_tells_that_a_fit_goes_on(monkeypatch, capsys):
    monkeypatch.setattr(console, "PROGRESS_SECONDS", 0.05)
    said = ""
    with console.progress("Fitting", 15, "fits") as advance:
        advance(3)
        while "3 of 15" not in said:  # for as long as a busy machine needs
            time.sleep(0.01)
            said += capsys.readouterr().err
    assert re.search(r"^Fitting: 3 of 15 fits, \d+\.\d", said, re.MULTILINE)
    capsys.readouterr()
    time.sleep(0.15)
    assert capsys.readouterr().err == ""
