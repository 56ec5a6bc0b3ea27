"""The benchmark of streamed fits: its rows are what it says, and its cost model counts right."""

import numpy as np
import pytest
from block_rows import regression_rows
from small_sizes import with_sizes

from benchmarks.scale import COLUMNS, write_rows
from benchmarks.scale_cost import row_cost
from rfrboost import RFRBoostRegressor, RowBlocks
from rfrboost._numerics.sizes import Sizes
from rfrboost._rows.spill import Spill


def test_rows_are_written_once_each(tmp_path):
    write_rows(tmp_path, 620, file_rows=250, block_rows=100)
    assert len(list(tmp_path.iterdir())) == 3
    parts = [
        (X.to_numpy(), y.to_numpy()) for X, y, _ in RowBlocks.from_parquet(tmp_path, target="y")
    ]
    X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    assert X.shape == (620, COLUMNS)
    assert len(np.unique(X[:, 0])) == len(np.unique(y)) == 620


def test_the_cost_model_counts_the_bytes_that_are_moved(monkeypatch):
    """What one more layer reads and writes; the few rows that are drawn come on top."""
    moved = []
    monkeypatch.setattr(Spill, "note", lambda self, size, began: moved.append(size))
    monkeypatch.setattr(Spill, "time_for", lambda self, size: 0.0)
    X, y, _ = regression_rows(40_000, columns=COLUMNS)
    totals = []
    for layers in (2, 3):
        moved.clear()
        model = RFRBoostRegressor(layers, n_features=(8, 8), random_state=0)
        with_sizes(model, Sizes(chunk_rows=1024)).fit(RowBlocks.from_arrays(X, y))
        totals.append(sum(moved))
    cost = row_cost(COLUMNS, 16)
    expected = cost.bytes_read + cost.bytes_written
    assert (totals[1] - totals[0]) / len(y) == pytest.approx(expected, rel=0.02)
