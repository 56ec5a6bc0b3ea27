"""Chunks: how rows are cut, in what order sums are taken, and when features are computed."""

import numpy as np
import pytest
from numpy.random import default_rng

from rfrboost._numerics.sizes import Sizes
from rfrboost._rows.chunks import FeatureCache, InMemory, Sums, TreeSum, gather, thinned_targets

SMALL = Sizes(chunk_rows=16, batch_rows=5)


def rows(n=50, weighted=True):
    rng = default_rng(0)
    X, Y = rng.standard_normal((n, 3)), rng.standard_normal((n, 2))
    return X, Y, rng.uniform(0.5, 2, n) if weighted else None


@pytest.mark.parametrize("weighted", [False, True])
def test_chunks_and_their_batches_cover_all_rows_in_order(weighted):
    X, Y, w = rows(weighted=weighted)
    chunks = InMemory(X, Y, w, sizes=SMALL)
    assert [(chunk.first, chunk.size) for chunk in chunks.chunks] == [
        (0, 16),
        (16, 16),
        (32, 16),
        (48, 2),
    ]
    batches = [(chunk, batch) for chunk in chunks.chunks for batch in chunk.batches()]
    assert all(batch[0].stop - batch[0].start <= 5 for _, batch in batches)
    np.testing.assert_array_equal(np.vstack([chunk.x[s] for chunk, (s, _) in batches]), X)
    if weighted:
        np.testing.assert_array_equal(np.concatenate([part for _, (_, part) in batches]), w)
    else:
        assert all(part is None for _, (_, part) in batches)


def test_a_part_is_an_equal_run_of_the_rows():
    X, Y, w = rows()
    (chunk,) = InMemory(X, Y, w, parts=4, sizes=SMALL).chunks
    chunk.part = 2
    places = [range(s.start, s.stop) for s, _ in chunk.fitting_batches()]
    assert [i for some in places for i in some] == list(range(24, 36))


def test_facts_do_not_depend_on_the_chunks():
    X, Y, w = rows()
    small = InMemory(X, Y, w, sizes=SMALL).facts
    whole = InMemory(X, Y, w).facts
    assert small.n_rows == whole.n_rows == 50
    np.testing.assert_allclose(small.weight, w.sum())
    np.testing.assert_allclose(small.x_sum, w @ X)
    np.testing.assert_array_equal(small.x_low, X.min(axis=0))
    np.testing.assert_array_equal(small.x_high, whole.x_high)
    np.testing.assert_array_equal(small.y_high, Y.max(axis=0))


@pytest.mark.parametrize("n", [1, 7, 8, 9, 64, 65, 200])
def test_sums_are_taken_in_groups_of_eight(n):
    tree = TreeSum()
    for k in range(n):
        tree.add(Sums(f"{k} "))
    assert tree.total().values[0].split() == [str(k) for k in range(n)]
    # Rounding shows the order: groups of eight, and groups of their sums.
    values = default_rng(0).standard_normal(n)
    tree = TreeSum()
    for value in values:
        tree.add(Sums(value))
    level = list(values)
    while len(level) > 1:
        level = [sum(level[i + 1 : i + 8], level[i]) for i in range(0, len(level), 8)]
    assert tree.total().values[0] == level[0]


def test_rows_are_gathered_and_thinned_by_their_numbers():
    X, Y, w = rows()
    chunks = InMemory(X, Y, w, sizes=SMALL)
    numbers = np.array([49, 3, 3, 20])
    np.testing.assert_array_equal(gather(chunks, "x", numbers), X[numbers])
    y, weights = thinned_targets(chunks)
    np.testing.assert_array_equal(y, Y[::4])
    np.testing.assert_array_equal(weights, w[::4])


class Map:
    """A feature map of three float64 features."""

    width = 3
    dtype = np.dtype(float)


def test_features_are_kept_for_a_layer_as_far_as_there_is_room():
    computed = []

    def features(cache, feature_map, first):
        def compute(out):
            computed.append(first)
            out[...] = first

        return cache.features(feature_map, (first, first + 10), compute)

    cache = FeatureCache(most_bytes=20 * 3 * 8)
    layer, other = Map(), Map()
    for _ in range(2):
        for first in (0, 10, 20):
            assert (features(cache, layer, first) == first).all()
    assert computed == [0, 10, 20, 20]
    kept = features(cache, layer, 0)
    assert features(cache, other, 0) is kept
    assert computed == [0, 10, 20, 20, 0]
