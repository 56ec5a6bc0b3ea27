"""Trees in files: the same bits again, small, and forged ones refused before they are asked."""

from dataclasses import replace

import numpy as np
import pytest
from small_forests import features, some_forest, some_rows

from rfrboost._files.network import FEATURE_MAP
from rfrboost._files.schema import ModelFileError
from rfrboost._model.forest import whole

FOREST = some_forest()
QUESTIONS = len(FOREST.columns)


def changed(array, place, value):
    array = array.copy()
    array.flat[place] = value
    return array


def test_what_was_written_is_read_to_the_same_bits():
    state = FEATURE_MAP.write(FOREST, "map")
    again = FEATURE_MAP.read(state, "map")
    assert FEATURE_MAP.fits(again, 3)
    for name in ("columns", "thresholds", "children", "roots", "values"):
        mine, theirs = getattr(FOREST, name), getattr(again, name)
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(features(again, some_rows(20)), features(FOREST, some_rows(20)))
    # Four bytes for each number.
    assert all(array.itemsize == 4 for array in state.values() if isinstance(array, np.ndarray))


def test_numbers_beyond_single_precision_are_kept():
    many = replace(FOREST, roots=whole(np.array([[2**24 + 1]])))
    assert FEATURE_MAP.read(FEATURE_MAP.write(many, "map"), "map").roots == 2**24 + 1


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("columns", 0, 3),
        ("children", 0, 0),
        ("children", 2 * QUESTIONS - 1, 0),
        ("children", 1, QUESTIONS + len(FOREST.values)),
        ("roots", 0, QUESTIONS + len(FOREST.values)),
    ],
)
def test_questions_that_lead_nowhere_or_in_circles_do_not_fit(name, place, value):
    forged = replace(FOREST, **{name: changed(getattr(FOREST, name), place, value)})
    assert FEATURE_MAP.fits(FOREST, 3)
    assert not FEATURE_MAP.fits(forged, 3)


@pytest.mark.parametrize("name", ["thresholds", "children"])
def test_arrays_of_other_lengths_do_not_fit(name):
    assert not FEATURE_MAP.fits(replace(FOREST, **{name: getattr(FOREST, name)[:-1]}), 3)


@pytest.mark.parametrize("value", [-1.0, 0.5, 2.0**31])
def test_numbers_of_nodes_are_whole(value):
    state = FEATURE_MAP.write(FOREST, "map")
    state["children"] = changed(state["children"], 0, value)
    with pytest.raises(ModelFileError, match="children should be whole numbers from 0 on"):
        FEATURE_MAP.read(state, "map")
