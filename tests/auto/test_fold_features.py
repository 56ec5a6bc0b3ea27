"""Features batch by batch and Gram matrices fold by fold: ridge regressions, by brute force."""

import tracemalloc

import numpy as np
import pytest
from numpy.random import default_rng
from small_bags import ALONE, SHARED, feature_values, features_for, ridge_by_hand, table

from rfrboost._auto.layer import GroupFeatures, solve_members
from rfrboost._numerics.sizes import Sizes


@pytest.mark.parametrize("sizes", [ALONE, SHARED], ids=["alone", "shared"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [1, 2])
def test_every_member_and_penalty_is_a_ridge_on_the_rows_it_is_fitted_on(sizes, weighted, outputs):
    bags = table(weighted=weighted, outputs=outputs, sizes=sizes)
    penalties = (1e-4, 1e-1)
    features = features_for(bags)
    F = feature_values(features, bags.x)
    for group in bags.groups:
        m = len(group)
        R = default_rng(4).standard_normal((len(bags.y), len(penalties) * m * outputs))
        rows = GroupFeatures(bags, group, map)
        columns = np.arange(R.shape[1]).reshape(len(penalties), m, outputs)
        C, c = solve_members(
            rows.first_pass(features, R, bags.w), rows.parts, columns, penalties, map
        )
        for own, penalty in zip(columns, penalties, strict=True):
            for j, k in zip(own, group, strict=True):
                train, _ = bags.split(k)
                expected = ridge_by_hand(F[train], R[train][:, j], bags.w[train], penalty)
                np.testing.assert_allclose(C[:, j], expected[0], rtol=1e-6, atol=1e-8)
                np.testing.assert_allclose(c[j], expected[1], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(rows.second_pass(features, C), F @ C, atol=1e-10)


@pytest.mark.parametrize("shared_draw_rows", [0, 10**9], ids=["shared", "alone"])
@pytest.mark.parametrize(("batch_rows", "cached_bytes"), [(7, 2**29), (16, 0), (16, 3000)])
def test_batches_and_cache_do_not_matter(shared_draw_rows, batch_rows, cached_bytes):
    def passes(sizes):
        bags = table(sizes=sizes)
        group = bags.groups[0]
        features = features_for(bags)
        R = default_rng(4).standard_normal((len(bags.y), len(group)))
        rows = GroupFeatures(bags, group, map)
        columns = np.arange(len(group)).reshape(1, -1, 1)
        C, c = solve_members(
            rows.first_pass(features, R, bags.w), rows.parts, columns, (1e-3,), map
        )
        again = features_for(bags, p=9)  # another draw in the same memory
        rows.first_pass(again, R, bags.w)
        rows.first_pass(features, R, bags.w)
        return C, c, rows.second_pass(features, C)

    expected = passes(Sizes(shared_draw_rows=shared_draw_rows))
    actual = passes(
        Sizes(shared_draw_rows=shared_draw_rows, batch_rows=batch_rows, cached_bytes=cached_bytes)
    )
    for found, whole in zip(actual, expected, strict=True):
        np.testing.assert_allclose(found, whole, rtol=1e-8, atol=1e-10)


def test_memory_does_not_grow_with_rows_times_features():
    bags = table(n=20_000, sizes=Sizes(batch_rows=256, cached_bytes=0))
    features, group = features_for(bags, p=100), bags.groups[0]
    R = np.ones((len(bags.y), len(group)))
    tracemalloc.start()
    rows = GroupFeatures(bags, group, map)
    columns = np.arange(len(group)).reshape(1, -1, 1)
    C, _ = solve_members(rows.first_pass(features, R, bags.w), rows.parts, columns, (1e-3,), map)
    rows.second_pass(features, C)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * len(bags.y) * features.width * features.dtype.itemsize
