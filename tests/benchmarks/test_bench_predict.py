"""The benchmark of predictions: what is measured is kept, and is not measured again."""

import numpy as np
import pytest

from benchmarks import predict
from benchmarks.predict_report import report
from experiments.data.protocols import Fold


@pytest.fixture
def fold():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)).astype(np.float32)
    y = X[:, 0] + 0.1 * rng.normal(size=90)
    return Fold(X[:60], y[:60], X[60:], y[60:])


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(predict, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(predict, "LEAST_CALLS", 1)


def test_a_stopped_run_continues_where_it_was(fold, tmp_path, monkeypatch):
    path = tmp_path / "predict.csv"
    wanted = [("a", lambda: fold, False, (1, 5)), ("b", lambda: fold, False, (1, 5))]
    first = predict.run(iter(wanted[:1]), ["HistGradientBoosting"], path)
    assert [(r.threads, r.batch) for r in first] == [(1, 1), (1, 5), (2, 1), (2, 5)]
    assert all(r.microseconds_a_row > 0 and r.bytes > 0 for r in first)
    again = predict.run(iter(wanted), ["HistGradientBoosting"], path)
    assert [r.table for r in again] == ["a"] * 4 + ["b"] * 4
    assert again[:4] == first == predict.known_records(path, predict.Record)[:4]
    monkeypatch.setattr(predict, "measured", None)
    assert predict.run(iter(wanted), ["HistGradientBoosting"], path) == again


def test_the_report_gives_medians_and_ratios():
    def record(table, model, time, threads=1):
        return predict.Record(table, 60, 3, model, threads, 1000, time, 2000, 0.5, 1.0, "abc")

    times = {"a": (8.0, 2.0), "b": (30.0, 3.0), "c": (5.0, 5.0)}
    records = [
        record(table, model, time)
        for table, pair in times.items()
        for model, time in zip(("rfrboost", "CatBoost"), pair, strict=True)
    ]
    text = report([*records, record("d, whole", "rfrboost", 7.0)])
    assert "| rfrboost | 1 | 3 | 8.00 | 4.0 | 2 | 0.5 |" in text
    assert "| CatBoost | 1 | 3 | 3.00 | 1.0 | 2 | 0.5 |" in text
    assert "| b | 60 | 3 | 30.00 | 3.00 |" in text
    assert "| d, whole | 60 | 3 | 7.00 |" in text
