"""``rfrboost compress``: a smaller model file, what is said of it, and what is refused."""

import numpy as np
import pytest
from command_line import failed, rfrboost, text_of, worked

import rfrboost as library
from rfrboost._compress import imitation


@pytest.fixture(autouse=True)
def fewer_rows(monkeypatch):
    monkeypatch.setattr(imitation, "IMITATED_ROWS", 1024)
    monkeypatch.setattr(imitation, "MOST_CANDIDATES", 256)


def made_up_table(rows=120):
    """Rows of text: two numbers, a colour, and what follows from them."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(size=(2, rows))
    colours = rng.choice(["red", "blue"], rows)
    y = np.sin(5 * a) + b + (colours == "red") + 0.1 * rng.standard_normal(rows)
    cells = [[str(v) for v in row] for row in zip(a, b, colours, y, strict=True)]
    return [["a", "b", "colour", "y"], *cells]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table, and a model of it."""
    folder = tmp_path_factory.mktemp("compress")
    (folder / "t.csv").write_bytes(text_of(made_up_table()))
    worked(rfrboost("fit", folder / "t.csv", "--target", "y", "-o", folder / "t.rfrboost"))
    return folder


def test_a_smaller_file_that_predicts_and_says_what_it_costs(place):
    model, table, small = (place / name for name in ("t.rfrboost", "t.csv", "s.rfrboost"))
    ran = worked(rfrboost("compress", model, table, "--size", "20", "-o", small))
    assert "Kept 20 of" in ran.said
    assert small.stat().st_size < model.stat().st_size
    found = library.load(small).compression_
    assert found.features == 20
    facts = worked(rfrboost("info", small)).out.decode()
    assert f"20 of {found.features_before:,} features, RMSE from" in facts
    assert "(estimated)" in facts
    assert "compressed" not in worked(rfrboost("info", model)).out.decode()
    assert len(worked(rfrboost("predict", small, table)).rows) == len(made_up_table()) - 1


def test_a_file_without_training_rows(place):
    model, table, small = (place / name for name in ("t.rfrboost", "t.csv", "private.rfrboost"))
    words = ("compress", model, table, "--size", "20", "--no-training-rows", "-o", small)
    worked(rfrboost(*words))
    assert library.file_info(small)["centres"] == 0


def test_what_is_refused(place, tmp_path):
    model, table = place / "t.rfrboost", place / "t.csv"
    command = ("compress", model, table, "-o", tmp_path / "s.rfrboost")
    both = rfrboost(*command, "--size", "3", "--tolerance", "0.1")
    assert both.code == 2
    assert "not both" in both.said
    assert rfrboost(*command, "--tolerance", "0").code == 2
    failed(rfrboost("compress", model, table, "-o", model), "t.rfrboost", code=2)
    failed(rfrboost("compress", place / "none.rfrboost", table, "-o", tmp_path / "s"), "no file")
    few = place / "few.csv"
    few.write_bytes(text_of(made_up_table()[:11]))
    failed(rfrboost("compress", model, few, "-o", tmp_path / "s.rfrboost"), "at least 50")
    assert not (tmp_path / "s.rfrboost").exists()
