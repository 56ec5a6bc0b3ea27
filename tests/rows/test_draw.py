"""Draws by content: the same rows whether all are sorted or a few bins of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

import rfrboost._rows.draw as order_module
from rfrboost._numerics.arrays import content_order
from rfrboost._paper.boost import centered_rows
from rfrboost._rows.chunks import InMemory
from rfrboost._rows.draw import ContentOrder, gather


def shrink(monkeypatch):
    """Chunks of 16 rows, 8 bins, and at most 20 rows sorted at a time."""
    monkeypatch.setattr("rfrboost._numerics.sizes.CHUNK_ROWS", 16)
    monkeypatch.setattr(order_module, "CHUNK_ROWS", 16)
    monkeypatch.setattr(order_module, "MOST_BINS", 8)
    monkeypatch.setattr(order_module, "MOST_SORTED", 20)


@pytest.fixture
def small(monkeypatch):
    shrink(monkeypatch)


def drawn_rows(X, Y, w, seed, size=60):
    """What is drawn from chunks, and the order they are drawn in by sorting everything."""
    chunks = InMemory(X, Y, w)
    chunks.set("x", centered_rows, chunks.facts.x_mean, np.zeros(X.shape[1], bool))
    index = ContentOrder(chunks, default_rng(seed)).draw(size, default_rng(seed + 1))
    centered = np.hstack([X - chunks.facts.x_mean, np.ones((len(X), 1))])
    order = content_order(centered, Y, default_rng(seed))
    weights = np.ones(len(X)) if w is None else w
    cumulative = np.cumsum(weights[order])
    places = default_rng(seed + 1).random(size) * cumulative[-1]
    expected = order[np.searchsorted(cumulative, places, side="right")]
    return np.hstack([X, Y])[index], np.hstack([X, Y])[expected]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(17, 200), st.integers(1, 3), st.integers(2, 40), st.integers(0, 2**31))
def test_bins_find_the_rows_that_sorting_finds(n, columns, levels, seed):
    """With ties of any size in x and y, and weights that are whole numbers, zero among them."""
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        rng = default_rng(seed)
        X = rng.integers(0, levels, (n, columns)).astype(float)
        Y = rng.integers(0, 3, (n, 1)).astype(float)
        for w in (None, rng.integers(0, 4, n).astype(float) + np.eye(1, n)[0]):
            np.testing.assert_array_equal(*drawn_rows(X, Y, w, seed))


def test_rows_of_weight_zero_are_never_drawn(small):
    rng = default_rng(0)
    X, Y = rng.standard_normal((100, 2)), rng.standard_normal((100, 1))
    w = rng.uniform(0, 1, 100) * (np.arange(100) % 3 == 0)
    chunks = InMemory(X, Y, w)
    chunks.set("x", centered_rows, chunks.facts.x_mean, np.zeros(2, bool))
    order = ContentOrder(chunks, default_rng(0))
    drawn = np.concatenate([order.draw(200, default_rng(k)) for k in range(20)])
    assert set(drawn.tolist()) == set(np.flatnonzero(w).tolist())


def test_a_draw_sorts_few_rows(small, monkeypatch):
    """Only rows of the bins that are drawn from leave their chunks."""
    sizes = []
    original = order_module.rows_in_bins

    def spy(rows, wanted):
        found = original(rows, wanted)
        sizes.append(len(found.row))
        return found

    monkeypatch.setattr(order_module, "rows_in_bins", spy)
    monkeypatch.setattr(order_module, "MOST_BINS", 64)
    rng = default_rng(0)
    X, Y = rng.standard_normal((6400, 2)), rng.standard_normal((6400, 1))
    chunks = InMemory(X, Y, None)
    chunks.set("x", centered_rows, chunks.facts.x_mean, np.zeros(2, bool))
    ContentOrder(chunks, default_rng(0)).draw(1, default_rng(0))
    assert 0 < sum(sizes) < 6400 / 16


def test_rows_are_gathered_in_the_order_asked_for(small):
    X = np.arange(200.0).reshape(100, 2)
    chunks = InMemory(X, X[:, :1], None)
    numbers = default_rng(0).integers(0, 100, 40)
    np.testing.assert_array_equal(gather(chunks, "x", numbers), X[numbers])
