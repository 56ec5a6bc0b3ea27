"""The benchmark of three sources fits one model from all of them."""

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng

from benchmarks.large import SAME, page
from benchmarks.large_run import KINDS, TARGET


@pytest.fixture
def folder(tmp_path):
    """A small table, as the benchmark writes it."""
    rng = default_rng(0)
    X = rng.standard_normal((200, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    frame = pd.DataFrame(X[:150]).add_prefix("x").assign(**{TARGET: y[:150]})
    (tmp_path / "train").mkdir()
    for i in (0, 100):
        frame[i : i + 100].to_parquet(tmp_path / "train" / f"part-{i}.parquet", index=False)
    np.savez(tmp_path / "test.npz", X=X[150:], y=y[150:])
    return tmp_path


def test_three_sources_give_one_model(folder):
    pytest.importorskip("distributed")
    found = [KINDS[kind](folder) for kind in SAME]
    for other in found[1:]:
        np.testing.assert_allclose(other.probabilities, found[0].probabilities, atol=1e-9)
        np.testing.assert_array_equal(other.classes, found[0].classes)


def test_the_page_says_how_far_sources_differ():
    row = {"kind": "arrays", "accuracy": 0.5, "log_loss": 0.7, "fit_seconds": 1.0}
    row |= {"predict_seconds": 0.1, "megabytes": 200.0, "difference": 0.0}
    other = row | {"kind": "XGBoost", "difference": np.nan}
    text = page(pd.DataFrame([row, other]), 300, 100)
    assert "300 training rows" in text
    assert "| arrays | 0.5000 | 0.7000 | 1 | 0.1 | 200 | 0e+00 |" in text
