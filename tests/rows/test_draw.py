"""Draws by content: the same rows whether all are sorted or a few bins of them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from rfrboost._numerics.arrays import content_order
from rfrboost._numerics.sizes import Sizes
from rfrboost._paper.boost import centered_rows
from rfrboost._rows.chunks import InMemory, gather
from rfrboost._rows.draw import ContentOrder, rows_in_bins

#: chunks of 16 rows, 8 bins, and at most 20 rows sorted at a time
SMALL = Sizes(chunk_rows=16, draw_bins=8, sorted_rows=20)


def centered_chunks(X, Y, w, sizes=SMALL, kind=InMemory):
    """Chunks whose x is centred and homogeneous, as rows are drawn from them; and the mean."""
    chunks = kind(X, Y, w, sizes=sizes)
    mean = chunks.facts.x_sum / chunks.facts.weight
    chunks.set("x", centered_rows, mean, np.zeros(X.shape[1], bool))
    return chunks, mean


def drawn_rows(X, Y, w, seed, size=60):
    """The rows that are drawn from chunks, and those that sorting all rows would draw."""
    chunks, mean = centered_chunks(X, Y, w)
    index = ContentOrder(chunks, default_rng(seed)).draw(size, default_rng(seed + 1))
    centered = np.hstack([X - mean, np.ones((len(X), 1))])
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
    rng = default_rng(seed)
    X = rng.integers(0, levels, (n, columns)).astype(float)
    Y = rng.integers(0, 3, (n, 1)).astype(float)
    for w in (None, rng.integers(0, 4, n).astype(float) + np.eye(1, n)[0]):
        np.testing.assert_array_equal(*drawn_rows(X, Y, w, seed))


def test_rows_of_weight_zero_are_never_drawn():
    rng = default_rng(0)
    X, Y = rng.standard_normal((100, 2)), rng.standard_normal((100, 1))
    w = rng.uniform(0, 1, 100) * (np.arange(100) % 3 == 0)
    chunks, _ = centered_chunks(X, Y, w)
    order = ContentOrder(chunks, default_rng(0))
    drawn = np.concatenate([order.draw(200, default_rng(k)) for k in range(20)])
    assert set(drawn.tolist()) == set(np.flatnonzero(w).tolist())


class Counting(InMemory):
    """Chunks that count the rows which leave them to be sorted."""

    n_sorted = 0

    def total(self, function, *args):
        found = super().total(function, *args)
        if function is rows_in_bins:
            self.n_sorted += len(found.row)
        return found


def test_a_draw_sorts_few_rows():
    """Only rows of the bins that are drawn from leave their chunks."""
    rng = default_rng(0)
    X, Y = rng.standard_normal((6400, 2)), rng.standard_normal((6400, 1))
    sizes = Sizes(chunk_rows=16, draw_bins=64, sorted_rows=20)
    chunks, _ = centered_chunks(X, Y, None, sizes, Counting)
    ContentOrder(chunks, default_rng(0)).draw(1, default_rng(0))
    assert 0 < chunks.n_sorted < 6400 / 16


def test_rows_are_gathered_in_the_order_asked_for():
    X = np.arange(200.0).reshape(100, 2)
    chunks = InMemory(X, X[:, :1], None, sizes=SMALL)
    numbers = default_rng(0).integers(0, 100, 40)
    np.testing.assert_array_equal(gather(chunks, "x", numbers), X[numbers])
