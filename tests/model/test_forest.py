"""Deep trees as a feature map: leaves by brute force and by scikit-learn, whatever the batch."""

import pickle
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from sklearn.tree import ExtraTreeRegressor
from small_forests import features, grown_by, some_forest, some_rows

from rfrboost._model import forest as module
from rfrboost._model.features import DifferentiableFeatures
from rfrboost._model.forest import as_one_member, side_by_side, whole


def by_hand(forest, row):
    """The features of one row: answer the questions of every tree one after the other."""
    sums = np.zeros((len(forest.roots), forest.values.shape[1]))
    for k, roots in enumerate(forest.roots):
        for node in roots:
            while node < len(forest.columns):
                above = np.float32(row[forest.columns[node]]) > forest.thresholds[node]
                node = forest.children[node, int(above)]
            sums[k] += forest.values[node - len(forest.columns)]
    return sums.ravel()


@settings(deadline=None, max_examples=30)
@given(
    members=st.integers(1, 3),
    count=st.integers(1, 4),
    outputs=st.integers(1, 3),
    rows=st.integers(1, 40),
    seed=st.integers(0, 99),
)
def test_features_are_the_values_of_the_leaves_that_questions_lead_to(
    members, count, outputs, rows, seed
):
    forest = some_forest(members, count, outputs, rows, seed)
    x = some_rows(20, seed=seed)
    expected = np.array([by_hand(forest, row) for row in x])
    np.testing.assert_allclose(features(forest, x), expected, rtol=0, atol=1e-12)


def test_a_tree_predicts_what_scikit_learn_does_for_rows_seen_and_new():
    rng = default_rng(0)
    X, fresh = (rng.standard_normal((n, 4)).round(2) * 1e3 for n in (300, 500))
    y = rng.standard_normal((300, 2))
    tree = ExtraTreeRegressor(random_state=0).fit(X, y)
    forest = grown_by(tree)
    for rows in (X, fresh):
        found = features(forest, np.hstack([rows, np.ones((len(rows), 1))]))
        np.testing.assert_allclose(found, tree.predict(rows), rtol=1e-6, atol=1e-7)


def test_a_row_is_the_same_in_every_batch(monkeypatch):
    forest = some_forest()
    rows = some_rows(300)
    together = features(forest, rows)
    for i in (0, 17, 299):
        np.testing.assert_array_equal(features(forest, rows[i : i + 1])[0], together[i])
    monkeypatch.setattr(module, "FOLLOWED", 7)
    np.testing.assert_array_equal(features(forest, rows), together)


SINGLE_LEAF = ExtraTreeRegressor().fit([[0.0]], [1.0])


def small_trees(members, count, columns, seed):
    """Trees of at most 64 leaves, many thresholds of which are equal, and rows on and off them."""
    rng = default_rng(seed)

    def tree():
        X, y = rng.standard_normal((300, columns)).round(1), rng.standard_normal((300, 2))
        grown = ExtraTreeRegressor(max_leaf_nodes=64, random_state=int(rng.integers(99)))
        return grown_by(grown.fit(X, y))

    forest = side_by_side([as_one_member([tree() for _ in range(count)]) for _ in range(members)])
    X = rng.standard_normal((module.MASKED_ROWS, columns)).round(1)
    X[0, 0], X[1, 0] = np.inf, -np.inf
    asked = forest.columns == columns - 1
    X[2 : 2 + asked.sum(), -1] = forest.thresholds[asked][: len(X) - 2]
    return forest, np.hstack([X, np.ones((len(X), 1))])


@settings(deadline=None, max_examples=20)
@given(
    members=st.integers(1, 3),
    count=st.integers(1, 40),
    columns=st.integers(1, 7),
    seed=st.integers(0, 99),
)
def test_masks_lead_to_the_leaves_that_questions_lead_to(members, count, columns, seed):
    forest, rows = small_trees(members, count, columns, seed)
    assert forest.masks is not None
    one_by_one = [forest.leaf_numbers(row[None, :-1]) for row in rows]
    np.testing.assert_array_equal(forest.leaf_numbers(rows[:, :-1]), np.vstack(one_by_one))
    expected = np.array([by_hand(forest, row) for row in rows[:5]])
    np.testing.assert_allclose(features(forest, rows)[:5], expected, rtol=0, atol=1e-12)


def test_trees_that_masks_cannot_hold_are_followed_instead():
    forest, rows = small_trees(1, 2, 3, 0)
    X = default_rng(0).standard_normal((99, 3))
    deep = grown_by(ExtraTreeRegressor(random_state=0).fit(X, X[:, 0]))
    assert len(deep.values) > module.MASK_BITS
    assert deep.masks is None
    assert side_by_side([grown_by(SINGLE_LEAF)] * (module.MOST_MASKED + 1)).masks is None
    # Trees that share all their nodes, as a forged file may have.
    shared = replace(forest, roots=whole(forest.roots[:, [0, 0]]))
    assert shared.masks is None
    np.testing.assert_array_equal(features(shared, rows), features(shared, rows[::-1])[::-1])


def test_trees_of_one_leaf_are_constants():
    forest = some_forest(count=2, rows=1)
    assert forest.depth == 0
    found = features(forest, some_rows(5))
    np.testing.assert_array_equal(found, np.tile(found[:1], (5, 1)))


def test_members_are_put_side_by_side():
    forests = [some_forest(members=1, seed=seed) for seed in range(3)]
    rows = some_rows(50)
    expected = np.hstack([features(forest, rows) for forest in forests])
    np.testing.assert_array_equal(features(side_by_side(forests), rows), expected)


def test_depth_is_that_of_the_deepest_tree():
    X = default_rng(0).standard_normal((200, 3))
    trees = [ExtraTreeRegressor(max_depth=d, random_state=0).fit(X, X[:, 0]) for d in (3, 9, 5)]
    assert side_by_side([grown_by(tree) for tree in trees]).depth == trees[1].get_depth() == 9


def test_trees_are_flat_almost_everywhere():
    forest = some_forest()
    assert isinstance(forest, DifferentiableFeatures)
    pulled = forest.pullback(some_rows(4))(np.ones((4, forest.width)))
    np.testing.assert_array_equal(pulled, np.zeros((4, 3)))


def test_pickles_predict_the_same():
    forest = some_forest()
    again = pickle.loads(pickle.dumps(forest))
    np.testing.assert_array_equal(features(again, some_rows(9)), features(forest, some_rows(9)))
