"""Units and limits: what is refused, which weights count, and how targets are scaled."""

import numpy as np
import pytest
from numpy.random import default_rng

from rfrboost._rows.chunks import InMemory
from rfrboost._rows.units import (
    at_rows,
    check_inputs,
    coded,
    present_rows,
    target_scale,
    weighted_rows,
)


def test_a_column_that_is_too_large_is_named():
    X = np.ones((3, 2))
    check_inputs(X * 1e60)
    X[1, 1] = -2e60
    with pytest.raises(ValueError, match=r"Column 1 of X holds values as large as 2e\+60"):
        check_inputs(X)
    with pytest.raises(ValueError, match="Column 'b' of X"):
        check_inputs(X, ["a", "b"])


@pytest.mark.parametrize("unit", [2.0**-900, 1.0, 2.0**900])
def test_weights_have_no_unit(unit):
    X = np.arange(4.0)[:, None]
    w = np.array([1.0, 0.0, 1e-70, 0.75])
    kept_X, kept_y, kept_w = weighted_rows(X, X, w * unit)
    np.testing.assert_array_equal(kept_X[:, 0], [0, 3])
    np.testing.assert_array_equal(kept_y, kept_X)
    np.testing.assert_array_equal(kept_w, [0.5, 0.375])
    np.testing.assert_array_equal(present_rows(w * unit, 4), [True, False, False, True])


def test_weights_that_are_all_zero_are_refused():
    X = np.ones((3, 1))
    with pytest.raises(ValueError, match="zero for every row"):
        weighted_rows(X, X, np.zeros(3))


def test_values_are_put_back_at_their_rows():
    kept = np.array([True, False, True])
    found = at_rows(np.array([[1.0], [2.0]]), kept, 3)
    np.testing.assert_array_equal(found, [[1.0], [np.nan], [2.0]])


def test_classes_are_one_column_for_two_and_one_each_for_more():
    np.testing.assert_array_equal(coded(np.array([1, 0]), 2), [[1.0], [0.0]])
    np.testing.assert_array_equal(coded(np.array([2, 0]), 3), [[0, 0, 1], [1, 0, 0]])


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_targets_of_any_size_become_targets_of_size_one(unit):
    y = unit * (3 + default_rng(0).standard_normal((200, 2)))
    scale = target_scale(InMemory(y, y, None))
    assert np.log2(scale.scale) == round(np.log2(scale.scale))
    shrunk = scale.shrink(y)
    np.testing.assert_allclose(shrunk.mean(axis=0), 0, atol=1e-12)
    assert 0.7 < shrunk.std() < 1.5
    np.testing.assert_allclose(scale.grow(shrunk), y, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, -7.0, 1e300])
def test_equal_targets_become_zero(value):
    y = np.full((5, 1), value)
    scale = target_scale(InMemory(y, y, None))
    np.testing.assert_array_equal(scale.shrink(y), np.zeros((5, 1)))
    assert scale.scale > 0
