"""Bags: who holds out which rows."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from rfrboost._auto.bags import ONE_MEMBER_FOLDS, bag, bag_apart
from rfrboost._model.network import centered
from rfrboost._numerics.sizes import Sizes

ROWS = st.integers(5, 80)
BAGS = st.integers(1, 9)
QUICK = settings(max_examples=60, deadline=None, derandomize=True)


def rows(n, seed=0, outputs=1):
    rng = default_rng(seed)
    x = centered(rng.standard_normal((n, 3)), np.zeros(3))
    return x, rng.standard_normal((n, outputs)), rng.uniform(0.5, 2.0, n)


def one_hot(n, classes, seed=0):
    """Labels of unequal classes, some of them tiny."""
    rng = default_rng(seed)
    return np.eye(classes)[np.minimum(rng.geometric(0.5, n) - 1, classes - 1)]


def fold_numbers(bags):
    """The fold of every row, in the order of the bags."""
    return np.concatenate([np.full(f.stop - f.start, k) for k, f in enumerate(bags.folds)])


@QUICK
@given(n=ROWS, n_bags=BAGS, seed=st.integers(0, 99))
@example(n=5, n_bags=9, seed=0)
def test_every_row_is_in_exactly_one_fold_and_folds_are_of_one_size(n, n_bags, seed):
    x, y, w = rows(n, seed)
    bags = bag(x, y, w, n_bags, False, default_rng(0))
    assert len(fold_numbers(bags)) == n
    assert [f.start for f in bags.folds] == [0, *(f.stop for f in bags.folds[:-1])]
    sizes = np.bincount(fold_numbers(bags))
    assert len(sizes) == min(n_bags if n_bags > 1 else ONE_MEMBER_FOLDS, n)
    assert sizes.max() - sizes.min() <= 1
    assert len(bags.members) == min(n_bags, n)


@QUICK
@given(n=ROWS, n_bags=BAGS, classes=st.integers(2, 5), seed=st.integers(0, 99))
def test_every_class_is_shared_out_evenly(n, n_bags, classes, seed):
    x, _, _ = rows(n, seed)
    y = one_hot(n, classes, seed)
    bags = bag(x, y, None, n_bags, True, default_rng(0))
    for labels in bags.y.T:
        counts = np.bincount(fold_numbers(bags), weights=labels)
        assert counts.max() - counts.min() <= 1
    sizes = np.bincount(fold_numbers(bags))
    assert sizes.max() - sizes.min() <= 1


def test_two_classes_in_one_column_are_shared_out_too():
    x, _, _ = rows(53)
    y = (default_rng(0).random((53, 1)) < 0.2).astype(float)
    bags = bag(x, y, None, 5, True, default_rng(0))
    counts = np.bincount(fold_numbers(bags), weights=bags.y[:, 0])
    assert counts.max() - counts.min() <= 1


@QUICK
@given(n=st.integers(30, 80), seed=st.integers(0, 99))
def test_the_rarest_label_is_shared_out_evenly_in_any_order_of_labels(n, seed):
    x, _, _ = rows(n, seed)
    y = (default_rng(seed).random((n, 4)) < [0.1, 0.3, 0.5, 0.8]).astype(float)
    here = bag(x.copy(), y, None, 5, True, default_rng(0), one_label=False)
    counts = y.sum(axis=0)
    rarest = np.flatnonzero(counts == counts.min())
    if len(rarest) == 1:
        held = np.bincount(fold_numbers(here), weights=here.y[:, rarest[0]])
        assert held.max() - held.min() <= 1
    order = default_rng(seed).permutation(4)
    there = bag(x.copy(), y[:, order], None, 5, True, default_rng(0), one_label=False)
    np.testing.assert_array_equal(there.x, here.x)
    np.testing.assert_array_equal(there.y, here.y[:, order])


@pytest.mark.parametrize("strata", [False, True])
def test_the_order_of_rows_does_not_matter(strata):
    x, y, w = rows(61)
    y = one_hot(61, 3) if strata else y
    order = default_rng(1).permutation(61)
    here = bag(x.copy(), y, w, 5, strata, default_rng(0))
    there = bag(x[order], y[order], w[order], 5, strata, default_rng(0))
    np.testing.assert_array_equal(here.x, there.x)
    np.testing.assert_array_equal(here.y, there.y)
    # The mean that weights are divided by is summed in the order they come in.
    np.testing.assert_allclose(here.w, there.w, rtol=1e-14)
    assert here.folds == there.folds
    np.testing.assert_array_equal(here.origin[order], there.origin)


def test_the_seed_matters():
    x, y, _ = rows(61)
    here, there = (bag(x.copy(), y, None, 5, False, default_rng(seed)) for seed in (0, 1))
    assert not np.array_equal(here.x, there.x)


def test_origin_leads_back_to_the_rows_as_they_came():
    x, y, w = rows(40)
    bags = bag(x.copy(), y, w, 4, False, default_rng(0))
    np.testing.assert_array_equal(bags.x[bags.origin], x)
    np.testing.assert_array_equal(bags.y[bags.origin], y)
    np.testing.assert_allclose(bags.w[bags.origin], w / w.mean(), rtol=1e-14)
    assert bags.w.mean() == pytest.approx(1.0)


@pytest.mark.parametrize("n_bags", [1, 2, 5])
def test_training_and_held_out_rows_by_the_fold_of_every_row(n_bags):
    x, y, _ = rows(37)
    bags = bag(x, y, None, n_bags, False, default_rng(0))
    fold, number = fold_numbers(bags), np.arange(37)
    for k in bags.members:
        np.testing.assert_array_equal(bags.split(k)[0], number[fold != k])
    held = np.concatenate([number[fold == k] for k in bags.members])
    np.testing.assert_array_equal(bags.held_out, held)
    raw = default_rng(0).standard_normal((37, len(bags.members), 2))
    expected = np.array([raw[i, fold[i]] for i in held])
    np.testing.assert_array_equal(bags.out_of_fold(raw), expected)


def test_batches_cover_all_rows_and_cross_no_fold():
    x, y, _ = rows(37)
    bags = bag(x, y, None, 3, False, default_rng(0), Sizes(batch_rows=4))
    fold = fold_numbers(bags)
    seen = []
    for k, batch in bags.batches():
        assert 0 < batch.stop - batch.start <= 4
        assert (fold[batch] == k).all()
        seen += range(batch.start, batch.stop)
    assert seen == list(range(37))


def test_members_share_draws_where_rows_are_many():
    x, y, _ = rows(30)
    alone = bag(x, y, None, 3, False, default_rng(0), Sizes(shared_draw_rows=31))
    assert alone.groups == ((0,), (1,), (2,))
    np.testing.assert_array_equal(alone.seen[1,], alone.split(1)[0])
    many = Sizes(shared_draw_rows=30)
    shared = bag(x, y, None, 3, False, default_rng(0), many)
    assert shared.groups == ((0, 1, 2),)
    np.testing.assert_array_equal(shared.seen[0, 1, 2], np.arange(30))
    single = bag(x, y, None, 1, False, default_rng(0), many)
    np.testing.assert_array_equal(single.seen[single.groups[0]], single.split(0)[0])


@pytest.mark.parametrize("n_bags", [1, 3])
def test_some_of_the_rows_keep_their_folds(n_bags):
    x, y, w = rows(90)
    bags = bag(x, y, w, n_bags, False, default_rng(0))
    some = np.sort(default_rng(0).permutation(90)[:40])
    part = bags.restricted(some)
    np.testing.assert_array_equal(fold_numbers(part), fold_numbers(bags)[some])
    np.testing.assert_array_equal(part.x, bags.x[some])
    np.testing.assert_array_equal(part.y, bags.y[some])
    np.testing.assert_array_equal(part.w, bags.w[some])
    np.testing.assert_array_equal(some[part.held_out], np.intersect1d(some, bags.held_out))
    assert part.groups == (bags.members,)
    expected = part.split(0)[0] if n_bags == 1 else np.arange(40)
    np.testing.assert_array_equal(part.seen[bags.members], expected)


def test_rows_given_to_stop_by_are_those_held_out():
    x, y, w = rows(30)
    x_val, y_val, _ = rows(12, seed=5)
    bags = bag_apart(x, y, w, (x_val, y_val), default_rng(0))
    assert bags.members == (0,)
    by_first = np.argsort(bags.y[bags.held_out, 0])
    expected = np.argsort(y_val[:, 0])
    np.testing.assert_array_equal(bags.x[bags.held_out][by_first], x_val[expected])
    train, _ = bags.split(0)
    assert sorted(bags.y[train, 0]) == sorted(y[:, 0])
    # A given row to stop by weighs as much as an average row to fit.
    assert bags.w[bags.held_out] == pytest.approx(bags.w[train].mean())


def test_rows_are_drawn_in_proportion_to_weight():
    x, y, _ = rows(10)
    w = np.arange(1.0, 11.0)
    bags = bag(x, y, w, 2, False, default_rng(0))
    among, _ = bags.split(0)
    drawn = bags.draw(among, 20_000, default_rng(0))
    shares = np.bincount(drawn, minlength=10) / 20_000
    expected = np.zeros(10)
    expected[among] = bags.w[among] / bags.w[among].sum()
    np.testing.assert_allclose(shares, expected, atol=0.02)
