"""Trees as a feature map: leaves by brute force, one row at a time, and flat almost everywhere."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from rfrboost._model.features import DifferentiableFeatures
from rfrboost._model.trees import TREE_ROWS, Trees


def some_trees(members=2, count=3, height=4, outputs=2, columns=3, seed=0):
    rng = default_rng(seed)
    shape = (members, count, height)
    thresholds = np.round(rng.standard_normal(shape), 1)
    values = rng.standard_normal((members, count, 2**height, outputs))
    return Trees(rng.integers(0, columns, shape), thresholds, values)


def some_rows(n, columns=3, seed=1):
    # Rounded like the thresholds, so that some values lie exactly on one.
    X = np.round(default_rng(seed).standard_normal((n, columns)), 1)
    return np.hstack([X, np.ones((n, 1))])


def features(trees, rows):
    out = np.empty((len(rows), trees.width), order="F")
    trees(rows, out)
    return out


def by_hand(trees, row):
    """The features of one row: answer the questions of every tree one after the other."""
    members, count, _, outputs = trees.values.shape
    sums = np.zeros((members, outputs))
    for k in range(members):
        for t in range(count):
            leaf = 0
            for column, threshold in zip(trees.columns[k, t], trees.thresholds[k, t], strict=True):
                leaf = 2 * leaf + (row[column] > threshold)
            sums[k] += trees.values[k, t, leaf]
    return sums.ravel()


@settings(deadline=None, max_examples=30)
@given(
    members=st.integers(1, 3),
    count=st.integers(1, 4),
    height=st.integers(1, 10),
    outputs=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_features_are_the_values_of_the_leaves_that_the_questions_lead_to(
    members, count, height, outputs, seed
):
    trees = some_trees(members, count, height, outputs, seed=seed)
    rows = some_rows(20, seed=seed)
    expected = np.array([by_hand(trees, row) for row in rows])
    np.testing.assert_allclose(features(trees, rows), expected, rtol=0, atol=1e-12)


def test_a_row_has_the_same_bits_in_any_batch():
    trees = some_trees()
    rows = some_rows(2 * TREE_ROWS + 7)
    together = features(trees, rows)
    outlier = rows.copy()
    outlier[::2, :-1] = 1e300
    np.testing.assert_array_equal(features(trees, outlier)[1::2], together[1::2])
    for i in (0, 5, TREE_ROWS, 2 * TREE_ROWS + 6):
        np.testing.assert_array_equal(features(trees, rows[i : i + 1])[0], together[i])


def test_every_distinct_question_is_answered_once():
    trees = some_trees(members=5, count=40, columns=2)
    columns, thresholds, which = trees.questions
    assert len(columns) < trees.columns.size
    np.testing.assert_array_equal(columns[which].ravel(), trees.columns.ravel())
    np.testing.assert_array_equal(thresholds[which].ravel(), trees.thresholds.ravel())


def test_steps_are_flat():
    trees = some_trees()
    assert isinstance(trees, DifferentiableFeatures)
    rows = some_rows(4)
    cotangent = np.ones((4, trees.width))
    np.testing.assert_array_equal(trees.pullback(rows)(cotangent), np.zeros((4, 3)))
