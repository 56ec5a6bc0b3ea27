"""The benchmark of compression: its table and its figure."""

import pytest

from benchmarks.compress import Record, known_records
from benchmarks.compress_report import figure, report


def record(table, model, error, time, centres=0):
    return Record(
        table=table,
        rows=60,
        columns=3,
        metric="RMSE",
        model=model,
        features=7,
        estimated=0.01,
        error=error,
        microseconds_a_row=time,
        bytes=2000,
        centres=centres,
        seconds=1.5,
        commit="abc",
    )


@pytest.fixture
def records():
    errors = {"a": (1.0, 1.01, 1.2), "b": (2.0, 2.06, 1.9), "c": (4.0, 4.0, 4.4)}
    models = [("default", 50.0, 9), ("tolerance 0.01", 5.0, 0), ("CatBoost", 2.0, 0)]
    return [
        record(table, model, error, time, centres)
        for table, own in errors.items()
        for (model, time, centres), error in zip(models, own, strict=True)
    ]


def test_the_report_compares_each_model_with_the_default(records):
    text = report(records)
    assert "| default | 3 | 1.0 | 50.0 | 0.00 | 0.00 | 1.00 | 2 | 3 |" in text
    assert "| tolerance 0.01 | 3 | 10.0 | 5.0 | 1.00 | 3.00 | 1.00 | 2 | 0 |" in text
    assert "| CatBoost | 3 | 25.0 | 2.0 | 10.00 | 20.00 | 1.00 | 2 | 0 |" in text
    assert "| b | tolerance 0.01 | 7 | RMSE 2.0600 | 3.00 | 1.00 | 5.00 | 2 | 0 | 1.5 |" in text


def test_the_figure_is_drawn(records, tmp_path):
    pytest.importorskip("matplotlib")
    figure(records, tmp_path / "f.png")
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    assert known_records(tmp_path / "none.csv", Record) == []
