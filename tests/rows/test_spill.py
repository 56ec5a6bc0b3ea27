"""Spill files give back what was written, within their budget, and are gone when closed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from rfrboost._rows.spill import BYTES_PER_SECOND, Spill, SpillFile


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.sampled_from([(), (1,), (3,)]),
    st.sampled_from(["float64", "float32", "int32"]),
    st.sampled_from("CF"),
)
def test_chunks_come_back_in_any_order_as_they_lay(sizes, shape, dtype, order):
    rng = default_rng(0)
    chunks = [
        np.array(100 * rng.standard_normal((size, *shape)), dtype, order=order) for size in sizes
    ]
    spill = Spill(None, 1e9)
    with spill.open_files:
        file = SpillFile(spill, chunks[0])
        firsts = np.cumsum([0, *sizes[:-1]])
        for first, chunk in zip(firsts, chunks, strict=True):
            file.write(first, chunk)
        for first, chunk in reversed(list(zip(firsts, chunks, strict=True))):
            read = file.read(first, len(chunk))
            np.testing.assert_array_equal(read, chunk)
            assert read.dtype == chunk.dtype
    assert file.file.closed


def test_memory_layout_is_kept():
    spill = Spill(None, 1e9)
    with spill.open_files:
        for order in "CF":
            array = np.array(default_rng(0).standard_normal((5, 3)), order=order)
            file = SpillFile(spill, array)
            file.write(0, array)
            assert file.read(0, 5).flags[f"{order}_CONTIGUOUS"]


def test_a_budget_is_taken_and_not_exceeded():
    spill = Spill(None, 100.0)
    assert spill.take(60)
    assert not spill.take(50)
    assert spill.take(40)
    assert spill.left == 0
    assert spill.time_for(BYTES_PER_SECOND) == 1.0


def test_a_file_that_is_cut_short_is_not_taken_for_rows():
    spill = Spill(None, 1e9)
    with spill.open_files:
        file = SpillFile(spill, np.ones((4, 2)))
        file.write(0, np.ones((4, 2)))
        with pytest.raises(OSError, match="ends before its rows"):
            file.read(2, 4)
