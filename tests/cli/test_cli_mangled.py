"""Damaged tables and model files: a right answer or one sentence, and never half a result."""

import csv
import io

import numpy as np
import pytest
from command_line import Ran, mixed_table, rfrboost, text_of, worked

ROWS = mixed_table(24)
GOOD = text_of(ROWS)
N_TABLES, N_MODELS = 200, 120


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.rfrboost"
    worked(rfrboost("fit", "-", "--target", "y", "-o", path, stdin=GOOD))
    return path


def cut(data, rng):
    return data[: rng.integers(len(data))]


def other_bytes(data, rng):
    mutated = bytearray(data)
    for place in rng.integers(len(data), size=rng.integers(1, 6)):
        mutated[place] = rng.integers(256)
    return bytes(mutated)


def stray_quotes(data, rng):
    for place in rng.integers(len(data), size=rng.integers(1, 4)):
        data = data[:place] + b'"' + data[place:]
    return data


def ragged(data, rng):
    lines = data.splitlines(keepends=True)
    k = rng.integers(1, len(lines))
    lines[k] = lines[k].replace(b",", b"", 1) if rng.random() < 0.5 else b"9," + lines[k]
    return b"".join(lines)


def other_encoding(data, rng):
    text = data.decode().replace("north", "nörd")
    return text.encode(rng.choice(["latin-1", "utf-16", "utf-8", "utf-16-le", "cp1252"]))


def header_only(data, rng):
    return data.splitlines(keepends=True)[0][: rng.integers(0, 20)]


def twins(data, rng):
    return data.replace(b"town", rng.choice([b"size", b"y", b"", b"Town"]), 1)


def shuffled_lines(data, rng):
    lines = data.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines)


def odd_cells(data, rng):
    odd = [b"1e999", b"inf", b"-", b"1,2", b"'", b"\xff", b"NaN", b"9" * 400, b"\r", b"=1+1", b"\t"]
    lines = data.splitlines(keepends=True)
    k = rng.integers(1, len(lines))
    cells = lines[k].split(b",")
    cells[rng.integers(len(cells))] = odd[rng.integers(len(odd))]
    lines[k] = b",".join(cells)
    return b"".join(lines)


MANGLES = (
    cut, other_bytes, stray_quotes, ragged, other_encoding, header_only, twins, shuffled_lines,
    odd_cells,
)  # fmt: skip


def records(data):
    """How many rows of the right width a strict reader finds, or None."""
    for encoding in ("utf-8-sig", "utf-16"):
        try:
            text = data.decode(encoding)
        except UnicodeError:
            continue
        return sum(1 for row in csv.reader(io.StringIO(text, newline="")) if row) - 1
    return None


def checked(ran: Ran, data: bytes, place) -> bool:
    """Whether a command worked; whichever it is, it must look like that."""
    left = [file.name for file in place.iterdir()]
    assert "Unexpected" not in ran.said, ran.said
    if ran.code:
        assert ran.code in (1, 2)
        assert left == []
        assert ran.said.splitlines()[-1].endswith("."), ran.said
        return False
    assert len(left) == 1
    assert b"\r" in data or records(data) is not None
    return True


@pytest.mark.parametrize("part", range(4))
def test_mangled_tables(part, model, tmp_path):
    """200 tables; those that are predicted have as many predictions as rows."""
    good = 0
    for k in range(part, N_TABLES, 4):
        rng = np.random.default_rng(k)
        data = MANGLES[k % len(MANGLES)](GOOD, rng)
        out = tmp_path / "p.csv"
        ran = rfrboost("predict", model, "-", "--out", out, stdin=data)
        if checked(ran, data, tmp_path):
            good += 1
            assert len(out.read_text().splitlines()) - 1 == records(data), data
            out.unlink()
    assert 3 < good < 47


def test_fitting_mangled_tables(tmp_path):
    good = 0
    for k in range(27):
        data = MANGLES[k % len(MANGLES)](GOOD, np.random.default_rng(1000 + k))
        ran = rfrboost("fit", "-", "--target", "y", "-o", tmp_path / "m", stdin=data)
        if checked(ran, data, tmp_path):
            good += 1
            (tmp_path / "m").unlink()
    assert 0 < good < 27


@pytest.mark.parametrize("command", ["predict", "info", "explain"])
def test_mutated_and_truncated_model_files(command, model, tmp_path):
    original, table = model.read_bytes(), GOOD
    right = worked(rfrboost("predict", model, "-", stdin=table)).out
    header = 8 + int.from_bytes(original[:8], "little")
    path = tmp_path / "damaged"
    refused = 0
    for k in range(N_MODELS):
        rng = np.random.default_rng(k)
        data = bytearray(original)
        if k % 3 == 0:
            data = data[: rng.integers(len(data))]
        else:
            end = header if k % 3 == 1 else len(data)
            for place in rng.integers(end, size=rng.integers(1, 9)):
                data[place] = rng.integers(256)
        path.write_bytes(data)
        words = (command, path) if command == "info" else (command, path, "-")
        ran = rfrboost(*words, stdin=table)
        assert "Unexpected" not in ran.said, ran.said
        if ran.code:
            refused += 1
            assert ran.code == 1
            assert ran.said.count("\n") == 1
            assert ran.out == b""
        elif command == "predict":
            assert ran.out == right
    # Arrays that info does not load may be damaged without its notice.
    assert refused >= (N_MODELS // 2 if command == "info" else N_MODELS - 2)


def test_names_in_a_model_file_do_nothing_to_a_terminal(tmp_path):
    data = text_of([["\x1b[31mred", "y"]] + [[str(k), str(k * 1.5)] for k in range(12)])
    worked(rfrboost("fit", "-", "--target", "y", "-o", tmp_path / "m", stdin=data))
    for words in (("info", tmp_path / "m"), ("explain", tmp_path / "m", "-")):
        ran = worked(rfrboost(*words, stdin=data))
        assert b"\x1b" not in ran.out
    assert "\x1b" not in rfrboost("predict", tmp_path / "m", "-", stdin=b"a\n1\n").said
