"""Commands do no harm: to the files that they read, to memory, or to a spreadsheet."""

import gzip
import json
import os
import signal
import struct
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import failed, mixed_table, rfrboost, text_of, worked

from rfrboost import RFRBoostRegressor
from rfrboost._files import container
from rfrboost._files.io import to_state
from rfrboost.cli import fit as fitting
from rfrboost.cli.output import protected
from rfrboost.cli.reading import streams

ROWS = mixed_table(24)
TABLE = text_of(ROWS)
#: seconds until something that never ends is given up, on a busy machine
PATIENCE = 600


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.rfrboost"
    worked(rfrboost("fit", "-", "--target", "y", "-o", path, stdin=TABLE))
    return path


@pytest.fixture
def place(tmp_path, model):
    """A folder with a table and a model, each also under other names."""
    (tmp_path / "t.csv").write_bytes(TABLE)
    (tmp_path / "symbolic.csv").symlink_to("t.csv")
    os.link(tmp_path / "t.csv", tmp_path / "hard.csv")
    (tmp_path / "model").write_bytes(model.read_bytes())
    (tmp_path / "model.csv").symlink_to("model")
    return tmp_path


# Outputs that are inputs.


@pytest.mark.parametrize("out", ["t.csv", "symbolic.csv", "hard.csv", "model", "model.csv"])
@pytest.mark.parametrize("command", ["predict", "explain"])
def test_what_a_model_writes_does_not_replace_what_it_reads(command, out, place):
    before = (place / out).read_bytes()
    words = (place / "model", place / "t.csv", "--out", place / out)
    failed(rfrboost(command, *words), "would overwrite", "name another file", code=2)
    assert (place / out).read_bytes() == before


@pytest.mark.parametrize("out", ["t.csv", "symbolic.csv", "hard.csv"])
@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_no_table_is_replaced_by_its_model_or_scores(command, out, place):
    words = (place / "t.csv", "--target", "y", "--out", place / out)
    failed(rfrboost(command, *words), "would overwrite", code=2)
    assert (place / "t.csv").read_bytes() == TABLE


def test_a_default_name_does_not_replace_the_table(place, monkeypatch):
    monkeypatch.chdir(place)
    Path("t.rfrboost").write_bytes(TABLE)
    failed(rfrboost("fit", "t.rfrboost", "--target", "y"), "would overwrite", code=2)
    assert Path("t.rfrboost").read_bytes() == TABLE


def test_a_file_on_standard_input_is_not_replaced(place):
    command = [sys.executable, "-m", "rfrboost.cli", "predict", "model", "-", "--out", "t.csv"]
    with open(place / "t.csv", "rb") as stream:
        ran = subprocess.run(
            command, cwd=place, stdin=stream, capture_output=True, timeout=PATIENCE
        )
    assert ran.returncode == 2
    assert b"would overwrite Standard input" in ran.stderr
    assert (place / "t.csv").read_bytes() == TABLE


def test_other_files_are_replaced_and_devices_may_be_both(place):
    (place / "p.csv").write_text("earlier")
    worked(rfrboost("predict", place / "model", place / "t.csv", "--out", place / "p.csv"))
    assert (place / "p.csv").read_text().startswith("prediction\n")
    worked(rfrboost("predict", place / "model", place / "t.csv", "--out", "/dev/null"))


# Found out before the fit.


@pytest.mark.parametrize(("out", "code"), [("/proc/m.rfrboost", 1), ("/none/m.rfrboost", 2)])
def test_a_folder_that_takes_no_file_is_known_before_the_fit(out, code, monkeypatch):
    """No user can create a file in /proc, not even root."""

    def read(*_):
        raise AssertionError("the table was read")

    monkeypatch.setattr(fitting, "read_training", read)
    ran = rfrboost("fit", "-", "--target", "y", "--out", out, stdin=TABLE)
    failed(ran, out, "folder", code=code)


# Signals.


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_signal_that_is_ignored_stays_ignored(place):
    """As under nohup: the command goes on after its terminal has been closed."""
    command = [sys.executable, "-m", "rfrboost.cli", "predict", "model", "-", "--out", "p.csv"]
    process = subprocess.Popen(
        command,
        cwd=place,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    # More lines than are looked at before the first is read as a row.
    header, *rows = TABLE.splitlines(keepends=True)
    process.stdin.write(b"".join([header, *(rows * 100)]))
    process.stdin.flush()
    wait_for(lambda: list(place.glob(".*.tmp")))
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert (place / "p.csv").exists()


# Formulas.


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+A1", "'+A1"),
        ("-A1", "'-A1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("-1.5", "-1.5"),
        ("+1e5", "+1e5"),
        ("a=b", "a=b"),
        ("", ""),
        (-1.5, -1.5),
        (True, True),
    ],
)
def test_cells_that_are_formulas_get_an_apostrophe(cell, written):
    assert protected(cell) == written


def test_formulas_are_protected_where_it_is_asked_for(tmp_path):
    labels = ["=cmd", "-1", "@x"]
    rows = [["x", "y"], *([str(k % 3), labels[k % 3]] for k in range(30))]
    worked(rfrboost("fit", "-", "--target", "y", "-o", tmp_path / "m", stdin=text_of(rows)))
    words = ("predict", tmp_path / "m", "-")
    stdin = text_of([["x"], ["0"], ["1"], ["2"]])
    assert worked(rfrboost(*words, stdin=stdin)).rows == labels
    ran = worked(rfrboost(*words, "--protect-formulas", stdin=stdin))
    assert ran.rows == ["'=cmd", "-1", "'@x"]


def test_names_of_columns_are_protected_too(place):
    table = TABLE.replace(b"size", b"=size", 1)
    worked(rfrboost("fit", "-", "--target", "y", "-o", place / "f", stdin=table))
    words = ("explain", place / "f", "-", "--protect-formulas", "--out", place / "e.csv")
    worked(rfrboost(*words, stdin=table))
    assert "\n'=size," in (place / "e.csv").read_text()


# Memory.


def test_a_header_that_claims_many_columns_takes_no_memory(tmp_path):
    """246 bytes took all memory that there was."""
    fitted = {"n_features_in": 2**53 - 1, "feature_names_in": None}
    text = {"format": 1, "version": "", "estimator": "", "parameters": {}, "checksum": ""}
    document = container.to_json({**text, "fitted": fitted})
    header = json.dumps({"__metadata__": {"rfrboost": document}}, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    path = tmp_path / "m"
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    tracemalloc.start()
    try:
        ran = rfrboost("info", path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert f"{2**53 - 1:,} numeric" in worked(ran).out.decode()
    assert peak < 2**26


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    ("start", "piece", "words"),
    [
        ("a,y\n", "x" * 2**20, "characters: check that it is a table"),
        ('a,y\n"', '\n","' * 2**18, "characters: check its quotes"),
    ],
    ids=["one line", "one row of many lines"],
)
def test_a_row_without_end_is_refused_before_it_fills_the_memory(
    start, piece, words, encoding, tmp_path, monkeypatch
):
    """30 MB of text in less than 1 MB; the limit is lowered to 1 MB."""
    monkeypatch.setattr(streams, "LONGEST_ROW", 2**20)
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wt", encoding=encoding, newline="") as stream:
        stream.write(start)
        for _ in range(30):
            stream.write(piece)
    assert path.stat().st_size < 2**20
    tracemalloc.start()
    try:
        ran = rfrboost("fit", path, "--target", "y", "-o", tmp_path / "m")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    failed(ran, words)
    assert peak < 50e6


def test_commands_read_files_whose_texts_are_arrays(tmp_path, monkeypatch):
    """Format 2, which is written when texts do not fit into a header."""
    monkeypatch.setattr(container, "LONG_TEXT", 1)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=60), "word": [f"w{k % 20}" for k in range(60)]})
    fitted = RFRBoostRegressor(random_state=0).fit(table, table["x"])
    (tmp_path / "m").write_bytes(container.pack_as(2, to_state(fitted), "0"))
    assert (
        "1 numeric, 1 categorical): x, word"
        in worked(rfrboost("info", tmp_path / "m")).out.decode()
    )
    ran = worked(rfrboost("predict", tmp_path / "m", "-", stdin=table.to_csv(index=False).encode()))
    np.testing.assert_allclose(ran.numbers, fitted.predict(table))
