"""The benchmark of ten million rows, with few: both models, from files to a table."""

import sys

import pytest

from benchmarks import ten_million
from experiments.runs.files import read_table

pytest.importorskip("lightgbm")


def test_a_small_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(ten_million, "measured_apart", ten_million.measure)
    monkeypatch.setattr(ten_million, "MIXED_BLOCK", 400)
    monkeypatch.setattr(ten_million, "TEST_ROWS", 300)
    out = tmp_path / "table.md"
    words = ["--rows", "1000", "--max-seconds", "30", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["ten_million", *words])
    ten_million.main()
    rows = read_table(out.with_suffix(".csv"))
    assert list(rows["model"]) == ["rfrboost, row blocks", "LightGBM, in memory"]
    # The target's standard deviation is about 1.4.
    assert rows["RMSE"].between(0.5, 1.3).all()
    assert (rows["MB"] > 50).all()
    assert "1,000 rows" in capsys.readouterr().out
