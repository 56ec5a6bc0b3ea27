"""Row blocks and Gram matrices by fold: ridge regressions, by brute force."""

import tracemalloc

import numpy as np
import pytest
from numpy.random import default_rng
from small_bags import feature_values, features_for, table

import rfrboost._auto.bags as bags_module
import rfrboost._auto.layer as blocks_module
from rfrboost._auto.layer import BucketGrams, FeatureBlocks
from rfrboost._numerics.threads import one_by_one

SHARED = [False, True]


def ridge_by_hand(F, R, w, penalty):
    """C and c of Σ w‖R − FC − c‖² + Σw·penalty‖C‖², as least squares of stacked rows."""
    p, root = F.shape[1], np.sqrt(w)[:, None]
    rows = np.vstack(
        [
            np.hstack([root * F, root]),
            np.hstack([np.sqrt(w.sum() * penalty) * np.eye(p), np.zeros((p, 1))]),
        ]
    )
    right = np.vstack([root * R, np.zeros((p, R.shape[1]))])
    solution = np.linalg.lstsq(rows, right, rcond=None)[0]
    return solution[:-1], solution[-1]


@pytest.mark.parametrize("shared", SHARED)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [1, 2])
def test_every_member_and_penalty_is_a_ridge_on_the_rows_it_is_fitted_on(
    monkeypatch, shared, weighted, outputs
):
    monkeypatch.setattr(bags_module, "SHARED_ROWS", 0 if shared else 10**9)
    bags, penalties = table(weighted=weighted, outputs=outputs), (1e-4, 1e-1)
    features = features_for(bags)
    F = feature_values(features, bags.x)
    for group in bags.groups:
        m = len(group)
        R = default_rng(4).standard_normal((len(bags.y), len(penalties) * m * outputs))
        blocks = FeatureBlocks(bags, group, one_by_one)
        C, c = BucketGrams(blocks.first_pass(features, R, bags.w), one_by_one).solve(m, penalties)
        columns = np.arange(R.shape[1]).reshape(len(penalties), m, outputs)
        for own, penalty in zip(columns, penalties, strict=True):
            for j, k in zip(own, group, strict=True):
                train = bags.training(k)
                expected = ridge_by_hand(F[train], R[train][:, j], bags.w[train], penalty)
                np.testing.assert_allclose(C[:, j], expected[0], rtol=1e-6, atol=1e-8)
                np.testing.assert_allclose(c[j], expected[1], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(blocks.second_pass(features, C), F @ C, atol=1e-10)


@pytest.mark.parametrize("shared", SHARED)
@pytest.mark.parametrize(("rows", "kept"), [(7, 2**29), (16, 0), (16, 3000)])
def test_blocks_do_not_matter(monkeypatch, shared, rows, kept):
    monkeypatch.setattr(bags_module, "SHARED_ROWS", 0 if shared else 10**9)
    bags = table()
    group = bags.groups[0]
    features, R = features_for(bags), default_rng(4).standard_normal((len(bags.y), len(group)))

    def passes():
        blocks = FeatureBlocks(bags, group, one_by_one)
        C, c = BucketGrams(blocks.first_pass(features, R, bags.w), one_by_one).solve(
            len(group), (1e-3,)
        )
        again = features_for(bags, p=9)  # another draw in the same room
        blocks.first_pass(again, R, bags.w)
        blocks.first_pass(features, R, bags.w)
        return C, c, blocks.second_pass(features, C)

    expected = passes()
    for module in (bags_module, blocks_module):
        monkeypatch.setattr(module, "BLOCK_ROWS", rows)
    monkeypatch.setattr(blocks_module, "KEPT_BYTES", kept)
    for actual, whole in zip(passes(), expected, strict=True):
        np.testing.assert_allclose(actual, whole, rtol=1e-8, atol=1e-10)


def test_memory_does_not_grow_with_rows_times_features(monkeypatch):
    for module in (bags_module, blocks_module):
        monkeypatch.setattr(module, "BLOCK_ROWS", 256)
    monkeypatch.setattr(blocks_module, "KEPT_BYTES", 0)
    bags = table(n=20_000)
    features, group = features_for(bags, p=100), bags.groups[0]
    R = np.ones((len(bags.y), len(group)))
    tracemalloc.start()
    blocks = FeatureBlocks(bags, group, one_by_one)
    C, _ = BucketGrams(blocks.first_pass(features, R, bags.w), one_by_one).solve(
        len(group), (1e-3,)
    )
    blocks.second_pass(features, C)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * len(bags.y) * features.width * features.dtype.itemsize
