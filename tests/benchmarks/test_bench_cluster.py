"""The arithmetic of a billion rows: constants are measured, steps add up."""

import sys

import pytest

from benchmarks import cluster
from benchmarks.cluster import Constants, amounts


def test_a_small_run_measures_constants_and_writes_what_they_mean(tmp_path, monkeypatch):
    out = tmp_path / "cluster.md"
    sizes = ["--sample", "60", "--leaf", "300", "--columns", "5", "--rows", "1000000"]
    monkeypatch.setattr(sys, "argv", ["cluster", *sizes, "--out", str(out)])
    cluster.main()
    text = out.read_text(encoding="utf-8")
    assert "1,000,000 rows, 64 workers" in text
    assert "fit 4,096 leaves" in text


def test_seconds_and_bytes_of_every_step():
    known = Constants(
        encode_row=1e-6, fit_leaf=2.0, fit_sample=100.0, predict_row=1e-5, leaf_rows=1000
    )
    steps = amounts(known, 1000 * 2**10, 10, 8).set_index("step")
    seconds = steps["computing, s"]
    # A thousand leaves of a thousand rows, two seconds each, on eight workers.
    assert seconds["fit 1,024 leaves"] == pytest.approx(1024 * 2.0 / 8)
    assert seconds["encode rows"] == pytest.approx(1.024e6 * 1e-6 / 8)
    assert seconds["fit the sample"] == 100.0
    assert seconds["out-of-fold predictions"] == pytest.approx(1.024e6 * 1e-5 / 2)
    # Encoded rows have ten numbers, a one and a target, and go to the client and to a worker.
    assert steps["network, GB"]["encode rows"] == pytest.approx(1.024e6 * 96 / 1e9)
    assert steps["network, GB"]["fit 1,024 leaves"] == pytest.approx(1.024e6 * 96 / 1e9)
    assert (steps["network, s"] == steps["network, GB"] * 1e9 / 1e9).all()
    # Twice the workers, half the time of what they do, and no less of the client's.
    faster = amounts(known, 1000 * 2**10, 10, 16).set_index("step")["computing, s"]
    ratio = (faster / seconds)[["encode rows", "fit the sample", "fit 1,024 leaves"]]
    assert ratio.tolist() == pytest.approx([0.5, 1.0, 0.5])
