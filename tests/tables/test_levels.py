"""Categories: which levels get columns, and what target encodings learn from targets."""

import numpy as np
import pandas as pd
import pytest
from example_tables import fitted, many_levels

from rfrboost._tables.fit import ranks
from rfrboost._tables.statistics import (
    FEWEST_ROWS,
    MOST_INDICATORS,
    cross_fitted,
    target_means,
)


def levels(cells, at):
    """Cells fitted as a category, and others encoded."""
    X = pd.DataFrame({"c": pd.Series(cells, dtype="category")})
    encoder, _ = fitted(X, np.arange(len(X)))
    return encoder, encoder(pd.DataFrame({"c": pd.Series(at, dtype=object)}))


def test_unknown_rare_and_missing_levels_are_other():
    cells = ["a"] * 9 + ["b"] * 9 + ["c"] * 9 + ["rare"] * (FEWEST_ROWS - 1)
    encoder, encoded = levels(cells, ["never seen", "rare", None, "a"])
    assert encoder.names_out == ("c=a", "c=b", "c=c")
    assert np.array_equal(encoded[0], encoded[1])
    assert np.array_equal(encoded[0], encoded[2])
    assert (encoded[0] < 0).all()
    assert encoded[3, 0] > 0


@pytest.mark.parametrize("rare", [0, FEWEST_ROWS - 1])
def test_indicators_of_the_training_rows_are_standardised(rare):
    cells = ["a"] * 9 + ["b"] * 19 + [None] * 29 + ["rare"] * rare
    _, encoded = levels(cells, cells)
    np.testing.assert_allclose(encoded.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(encoded.std(axis=0), 1)


def test_a_missing_level_that_training_had_is_one_of_the_levels():
    encoder, encoded = levels(["a"] * 9 + ["b"] * 9 + [None] * 9, [None, "never seen"])
    assert encoder.names_out == ("c=(missing)", "c=a", "c=b")
    assert encoded[0, 0] > 0 > encoded[1].max()


def test_two_levels_take_one_column_and_others_are_average():
    encoder, encoded = levels(["a"] * 5 + ["b"] * 15, ["a", "b", "c", None])
    assert encoder.names_out == ("c=b",)
    assert encoded[0, 0] < encoded[2, 0] == encoded[3, 0] == 0 < encoded[1, 0]


def test_numbers_as_levels_stay_the_same_when_missing_values_turn_them_into_floats():
    encoder, encoded = levels([1, 2, 3] * 5, [1, 1.0, "1", None])
    assert encoder.names_out == ("c=1", "c=2", "c=3")
    assert np.array_equal(encoded[0], encoded[1])
    assert np.array_equal(encoded[0], encoded[2])
    assert not np.array_equal(encoded[0], encoded[3])


def test_many_levels_are_encoded_by_their_targets():
    X, y = many_levels()
    assert X["city"].nunique() > MOST_INDICATORS
    encoder, encoded = fitted(X, y)
    assert encoder.names_out == ("x", "city target", "city target rank")
    assert np.corrcoef(encoded[:, 1], y)[0, 1] > 0.5
    assert np.corrcoef(encoded[:, 2], y)[0, 1] > 0.5
    unknown = pd.DataFrame({"x": [0.0, 0.0], "city": ["nowhere", None]})
    other = encoder.columns[1].values[-1]
    mean = (y / 2 ** np.ceil(np.log2(np.abs(y).max()))).mean()
    np.testing.assert_allclose(other, [mean, 0.5])
    assert np.ptp(encoder(unknown), axis=0).tolist() == [0, 0, 0]
    labels = np.digitize(y, [-1, 1])
    assert fitted(X, labels, task="classification")[1].shape == (400, 4)
    assert fitted(X, labels > 0, task="classification")[1].shape == (400, 2)
    assert fitted(X, np.column_stack([y, 1e200 * y]))[1].shape == (400, 5)


def test_ranks_are_those_of_repeated_rows():
    y, w = np.array([3.0, 1.0, 1.0, 7.0]), np.array([2.0, 1.0, 3.0, 1.0])
    np.testing.assert_allclose(ranks(y, None), [0.625, 0.25, 0.25, 0.875])
    repeated = ranks(np.repeat(y, w.astype(int)), None)
    np.testing.assert_allclose(np.repeat(ranks(y, w), w.astype(int)), repeated)


def test_ranks_tell_levels_apart_where_a_few_rows_decide_the_mean():
    rng = np.random.default_rng(0)
    city = rng.integers(0, 20, 600)
    y = np.where(city < 10, 1.0, 2.0) + 0.1 * rng.normal(size=600)
    y[rng.permutation(600)[:12]] = 1e4
    _, encoded = fitted(pd.DataFrame({"x": rng.normal(size=600), "city": pd.Categorical(city)}), y)
    by_mean, by_rank = (np.corrcoef(encoded[:, k], city >= 10)[0, 1] for k in (1, 2))
    assert by_rank > 0.9 > 0.5 > by_mean


def test_target_encodings_of_noise_say_nothing_in_training():
    X, _ = many_levels(400, 80)
    correct, careless = [], []
    for seed in range(20):
        y = np.random.default_rng(seed).normal(size=400)
        encoder, encoded = fitted(X, y)
        correct.append(np.mean(encoded[:, 1] * (y - y.mean())))
        careless.append(np.mean(encoder(X)[:, 1] * (y - y.mean())))
    assert abs(np.mean(correct)) < 0.06
    assert np.mean(careless) > 0.15


def test_a_training_row_does_not_see_its_own_target():
    rng = np.random.default_rng(0)
    codes, folds, Y = rng.integers(0, 5, 60), np.arange(60) % 5, rng.normal(size=(60, 2))
    parts = [(folds == k, folds != k) for k in range(5)]
    before = cross_fitted(codes, 5, Y, None, parts, False)
    for i in range(60):
        changed = Y.copy()
        changed[i] = 1e6
        assert np.array_equal(cross_fitted(codes, 5, changed, None, parts, False)[i], before[i])


def test_target_means_are_shrunk_towards_the_true_effects():
    """Nearer to the true effects than level means and than the mean of all."""
    rng = np.random.default_rng(0)
    effects = rng.normal(size=200)
    codes = rng.integers(0, 200, 800)
    y = (effects[codes] + 2 * rng.normal(size=800))[:, None]
    encoded = target_means(codes, 200, y, None)[:-1, 0]
    counts = np.bincount(codes, minlength=200)
    means = np.bincount(codes, y[:, 0], minlength=200) / np.maximum(counts, 1)
    error = np.mean((encoded - effects) ** 2)
    assert error < 0.7 * np.mean((means - effects) ** 2)
    assert error < 0.7 * np.mean((y.mean() - effects) ** 2)
    ratio = (encoded - y.mean())[counts > 0] / (means - y.mean())[counts > 0]
    # σ²/τ² = 4: a level of c rows keeps c / (c + 4) of its deviation.
    np.testing.assert_allclose(ratio, counts[counts > 0] / (counts[counts > 0] + 4), atol=0.15)


@pytest.mark.parametrize("weighted", [False, True])
def test_target_encodings_do_not_depend_on_the_order_of_rows(weighted):
    X, y = many_levels()
    w = np.random.default_rng(1).integers(0, 4, len(y)).astype(float) if weighted else None
    rows = np.random.default_rng(2).permutation(len(y))
    encoded = fitted(X, y, w)[1]
    shuffled = fitted(X.iloc[rows], y[rows], w if w is None else w[rows])[1]
    np.testing.assert_allclose(shuffled, encoded[rows], atol=1e-9)


def test_target_encodings_of_new_rows_count_weights_as_repeated_rows():
    X, y = many_levels()
    w = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    rows = np.repeat(np.arange(len(y)), w.astype(int))
    weighted, repeated = fitted(X, y, w)[0], fitted(X.iloc[rows], y[rows])[0]
    np.testing.assert_allclose(weighted(X), repeated(X), atol=1e-9)
    # Weights that are not whole have no unit: only their ratios matter.
    w += 0.5
    np.testing.assert_allclose(fitted(X, y, w)[0](X), fitted(X, y, 3 * w)[0](X), atol=1e-9)
