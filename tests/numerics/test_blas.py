"""Products and factorisations: right for every layout, without Python's lock, with any SciPy."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from scipy.linalg import cython_blas, cython_lapack

from rfrboost._numerics.blas import (
    ROUTINES,
    PointerRoutines,
    WrapperRoutines,
    columns_first,
    fastest_routines,
    gram,
    parameter_kinds,
    potrf,
    potrs,
    product,
)

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
@pytest.mark.parametrize("shape", [(7, 4), (0, 4), (7, 0)])
def test_a_gram_is_right_for_every_layout(layout, dtype, shape):
    F = LAYOUTS[layout](default_rng(0).standard_normal(shape).astype(dtype))
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


def share_of_turns(A) -> float:
    """How often a thread that only counts gets its turn while another multiplies, of all turns."""
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
    return len([t for t in turns if start < t < stop]) / ((stop - start) / 1e-4)


def test_other_threads_run_meanwhile():
    A = np.asfortranarray(default_rng(0).standard_normal((3000, 600)))
    # The best of several: on a busy machine the counting thread may have to wait for a core.
    assert any(share_of_turns(A) > 0.02 for _ in range(20))


# A SciPy whose pointers are not those that the calls were written for


def changed(module, routine, other):
    """A Cython module in which one routine has the signature of another."""
    capsules = dict(module.__pyx_capi__)
    for letter in "sd":
        capsules[letter + routine] = capsules[letter + other]
    return SimpleNamespace(__pyx_capi__=capsules)


CHANGED = {
    "other arguments of gemm": (changed(cython_blas, "gemm", "symm"), cython_lapack),
    "other arguments of gemv": (changed(cython_blas, "gemv", "ger"), cython_lapack),
    "other arguments of syrk": (changed(cython_blas, "syrk", "gemm"), cython_lapack),
    "other arguments of potrf": (cython_blas, changed(cython_lapack, "potrf", "potrs")),
    "other arguments of potrs": (cython_blas, changed(cython_lapack, "potrs", "potrf")),
    "no such routine": (SimpleNamespace(__pyx_capi__={}), cython_lapack),
    "no pointers at all": (SimpleNamespace(), SimpleNamespace()),
}


def test_this_scipy_has_the_pointers():
    assert isinstance(ROUTINES, PointerRoutines)
    assert isinstance(fastest_routines(cython_blas, cython_lapack), PointerRoutines)


@pytest.mark.parametrize("modules", CHANGED.values(), ids=CHANGED)
def test_changed_pointers_are_not_called(modules):
    assert isinstance(fastest_routines(*modules), WrapperRoutines)


def test_every_argument_of_a_signature_counts():
    assert parameter_kinds("void (char *, int *, double *)", "d") == "cin"
    assert parameter_kinds("void (char *, int *, __pyx_t_5scipy_6linalg_s *)", "s") == "cin"
    # Integers of 64 bits, another precision, and a value in place of a pointer.
    assert parameter_kinds("void (blas_int *, npy_int64 *, float *, int)", "d") == "????"


FALLBACK = fastest_routines(SimpleNamespace(), SimpleNamespace())
DTYPES = [np.float32, np.float64]


def numbers(dtype, *shape, seed=0):
    return default_rng(seed).standard_normal(shape).astype(dtype)


def close(actual, expected):
    tolerance = 1e-4 if actual.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout_a", sorted(LAYOUTS))
@pytest.mark.parametrize("layout_b", sorted(LAYOUTS))
def test_the_wrappers_multiply(layout_a, layout_b, dtype):
    A, B = numbers(dtype, 6, 4), numbers(dtype, 4, 5, seed=1)
    a, transposed_a = columns_first(LAYOUTS[layout_a](A))
    b, transposed_b = columns_first(LAYOUTS[layout_b](B))
    spaced = np.full((9, 5), np.nan, dtype, order="F")[:6]
    for out in (np.full((6, 5), np.nan, dtype, order="F"), spaced):
        FALLBACK.gemm(a, transposed_a, b, transposed_b, out)
        close(out, A @ B)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_the_wrappers_multiply_a_column_and_make_a_gram(layout, dtype):
    A, b = numbers(dtype, 6, 4), numbers(dtype, 4, 1, seed=1)
    a, transposed = columns_first(LAYOUTS[layout](A))
    out = np.full((6, 1), np.nan, dtype)
    FALLBACK.gemv(a, transposed, b, out)
    close(out, A @ b)
    for of_rows, expected in ((True, A @ A.T), (False, A.T @ A)):
        lower = np.full(expected.shape, 7.0, dtype, order="F")
        FALLBACK.syrk(a, of_rows == transposed, lower)
        close(np.tril(lower), np.tril(expected))
        # The other triangle is left as it was.
        assert (lower[np.triu_indices(len(lower), 1)] == 7.0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["columns", "part of a column"])
@pytest.mark.parametrize("layout_b", sorted(LAYOUTS))
def test_the_wrappers_factorise_and_solve(layout, layout_b, dtype):
    F, B = numbers(float, 20, 5), numbers(float, 5, 3, seed=1)
    G = (F.T @ F).astype(dtype)
    L = LAYOUTS[layout](G)
    assert FALLBACK.potrf(L)
    close(np.tril(L), np.linalg.cholesky(G))
    assert (np.triu(L, 1) == np.triu(G, 1)).all()
    X = FALLBACK.potrs(L, LAYOUTS[layout_b](B))
    close(X, np.linalg.solve(G.astype(float), B))
    assert X.dtype == dtype
    assert not FALLBACK.potrf(LAYOUTS[layout](-G))


def test_wrappers_and_pointers_agree_to_the_bit():
    A, B = np.asfortranarray(numbers(float, 60, 40)), np.asfortranarray(numbers(float, 40, 30))
    found = []
    for routines in (ROUTINES, FALLBACK):
        out = np.empty((60, 30), order="F")
        routines.gemm(A, False, B, False, out)
        L = np.zeros((40, 40), order="F")
        routines.syrk(A, True, L)
        assert routines.potrf(L)
        found.append((out, L, routines.potrs(L, B)))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)
