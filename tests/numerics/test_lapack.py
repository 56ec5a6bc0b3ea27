"""Products and factorisations without Python's lock: right for every layout, and really without."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from rfrboost._numerics.blas import gram, potrf, potrs, product

LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "part of a row": lambda A: np.hstack([A, A])[:, : A.shape[1]],
    "part of a column": lambda A: np.asfortranarray(np.vstack([A, A]))[: A.shape[0]],
    "every other": lambda A: np.repeat(np.repeat(A, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda A: A[::-1, ::-1].copy()[::-1, ::-1],
    "not aligned": lambda A: unaligned(A),
}


def unaligned(A):
    """The same numbers, one byte off."""
    room = np.empty(A.nbytes + 1, np.uint8)[1:].view(A.dtype).reshape(A.shape)
    room[...] = A
    return room


SIZES = st.integers(0, 6)


@settings(max_examples=150, deadline=None)
@given(SIZES, SIZES, SIZES, *[st.sampled_from(sorted(LAYOUTS))] * 2, st.booleans(), st.booleans())
def test_a_product_is_right_for_every_layout(m, k, n, layout_a, layout_b, single_a, single_b):
    rng = default_rng(0)
    A = LAYOUTS[layout_a](rng.standard_normal((m, k)).astype(np.float32 if single_a else float))
    B = LAYOUTS[layout_b](rng.standard_normal((k, n)).astype(np.float32 if single_b else float))
    expected = A @ B
    both_single = single_a and single_b
    tolerance = {"rtol": 1e-5 if both_single else 1e-12, "atol": 1e-5 if both_single else 1e-12}
    np.testing.assert_allclose(product(A, B), expected, **tolerance)
    assert product(A, B).dtype == expected.dtype
    for order in "CF":
        out = np.full((m, n), np.nan, expected.dtype, order=order)
        assert product(A, B, out=out) is out
        np.testing.assert_allclose(out, expected, **tolerance)


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_gram_is_right_for_every_layout(layout, dtype):
    F = LAYOUTS[layout](default_rng(0).standard_normal((7, 4)).astype(dtype))
    np.testing.assert_allclose(np.tril(gram(F)), np.tril(F.T @ F), rtol=1e-4, atol=1e-5)
    assert gram(F).dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cholesky_solves_or_says_that_it_cannot(dtype):
    rng = default_rng(0)
    F = rng.standard_normal((9, 5))
    G = np.asfortranarray((F.T @ F).astype(dtype))
    B = rng.standard_normal((5, 3))
    L = G.copy(order="F")
    assert potrf(L)
    np.testing.assert_allclose(potrs(L, B), np.linalg.solve(G.astype(float), B), rtol=1e-3)
    assert not potrf(np.asfortranarray(-G))


def test_other_threads_go_on_meanwhile():
    """A thread that only counts gets its turns while another multiplies."""
    A = np.asfortranarray(default_rng(0).standard_normal((3000, 600)))
    turns: list[float] = []
    done = threading.Event()

    def count():
        while not done.is_set():
            turns.append(time.perf_counter())
            time.sleep(1e-4)

    counter = threading.Thread(target=count)
    counter.start()
    start = time.perf_counter()
    for _ in range(3):
        gram(A)
        product(A, A[:600].T)
    stop = time.perf_counter()
    done.set()
    counter.join()
    during = [t for t in turns if start < t < stop]
    assert len(during) > 0.02 * (stop - start) / 1e-4
