"""The benchmark of time limits: its cases are what they say, and an interrupted run goes on."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import limits
from benchmarks.limit_cases import EXTREMES, LIMITS, TABLES, TEST_ROWS, plain
from benchmarks.limit_run import measured, n_bytes
from experiments.runs.provenance import Provenance


def test_cases_have_names_of_their_own_and_the_limits_that_are_promised():
    for cases in TABLES.values():
        assert len({case.key for case in cases}) == len(cases)
    assert {case.limit for case in LIMITS} == {5, 10, 20, 30, 60}
    assert sum(case.limit for case in LIMITS + EXTREMES) < 40 * 60


def test_a_case_has_new_rows_to_score():
    case = plain(50, 5, "classification", 1.0)
    X, y, X_test, y_test = case.data()
    assert X.shape == (50, 5)
    assert len(y_test) == len(X_test) == TEST_ROWS
    assert set(y) == {0, 1}
    assert n_bytes(X) == 50 * 5 * 8


def test_figures_of_a_small_case():
    found = measured(plain(200, 4, "regression", 2.0))
    assert found["model"] > found["linear"] - 0.2
    assert found["linear"] > 0.3 > found["constant"]
    assert found["process"] > 0
    assert found["wall"] > 0


def test_rows_measured_by_the_same_code_are_not_measured_again(tmp_path, monkeypatch):
    cases = [plain(n, 4, "regression", 1.0) for n in (100, 200, 300)]
    monkeypatch.setitem(TABLES, "limits", cases)
    asked = []

    def one(table, number):
        asked.append(number)
        if number == 2 and len(asked) == 3:
            raise KeyboardInterrupt
        figures = {"wall": 1.0, "process": 1.0, "peak_mb": 8.0, "data_mb": 2.0, "model": 0.5}
        case = cases[number]
        return {
            "name": case.name,
            "rows": case.rows,
            "columns": 4,
            "task": case.task,
            "limit": 1.0,
            "score": "R²",
            "linear": 0.4,
            "constant": 0.0,
            "layers": 3,
            "sample": False,
            **figures,
        }

    monkeypatch.setattr(limits, "measure", one)
    path = tmp_path / "limits.csv"
    code = Provenance(commit="abc", clean=True)
    with pytest.raises(KeyboardInterrupt):
        limits.measure_all("limits", path, "", code)
    rows = limits.measure_all("limits", path, "", code)
    assert asked == [0, 1, 2, 2]
    assert rows["rows"].tolist() == [100, 200, 300]
    text = limits.page("limits", rows)
    assert "0 of 3 fits took more" in text
    assert text.count("| 4.0 |") == 3
    limits.measure_all("limits", path, "", Provenance(commit="def", clean=True))
    assert asked == [0, 1, 2, 2, 0, 1, 2]


def test_late_and_bad_fits_are_counted():
    late = {"wall": 1.2, "limit": 1.0, "model": 0.1, "linear": 0.4, "constant": 0.0}
    row = {
        **late,
        "name": "a",
        "rows": 1,
        "columns": 1,
        "task": "regression",
        "process": 1.0,
        "peak_mb": 1.0,
        "data_mb": 1.0,
        "score": "R²",
        "layers": 0,
        "sample": True,
    }
    text = limits.page("limits", pd.DataFrame([row]))
    assert "**1.2**" in text
    assert "1 of 1 fits took more" in text
    assert "1 scored more than" in text
    assert np.isclose(limits.TOLERANCE, 0.1)
