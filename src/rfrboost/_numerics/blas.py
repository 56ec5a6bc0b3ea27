"""The few routines that fits spend their time in, called without Python's lock.

SciPy's wrappers of BLAS and LAPACK hold the interpreter's lock while they compute, so that threads
of one process wait for each other. SciPy offers the same routines to Cython as pointers
(``scipy.linalg.cython_blas`` and ``cython_lapack``); called through ctypes they run side by side.

Matrices here are in Fortran order, with any distance between columns, and of one dtype, float32
or float64.

Matrix products over rows, all by SciPy's BLAS.

NumPy and SciPy each carry a BLAS with threads of its own. Factorisations need SciPy's; were the
products between them NumPy's, the idle threads of the one would keep the cores from the other
(several times slower on two cores). Results are in Fortran order, which is also what makes the
Gram of a tall block of features fastest.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

from rfrboost._typing import Array

Routine = Callable[..., None]


PRECISIONS: dict[np.dtype, tuple[str, Any]] = {
    np.dtype(np.float32): ("s", ctypes.c_float),
    np.dtype(np.float64): ("d", ctypes.c_double),
}


PLAIN, TRANSPOSED, LOWER = (ctypes.byref(ctypes.c_char(c)) for c in (b"N", b"T", b"L"))


UNIT = ctypes.byref(ctypes.c_int(1))


ONE, ZERO = (
    {dtype: ctypes.byref(number(value)) for dtype, (_, number) in PRECISIONS.items()}
    for value in (1.0, 0.0)
)


def bound(module: Any, name: str, n_arguments: int) -> dict[np.dtype, Routine]:
    """A routine in both precisions; every argument is a pointer, as in Fortran."""
    read_name = ctypes.pythonapi.PyCapsule_GetName
    read_name.restype, read_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    read = ctypes.pythonapi.PyCapsule_GetPointer
    read.restype, read.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # A call through CFUNCTYPE gives up the lock.
    pointers = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)
    signature = read_name(module.__pyx_capi__["d" + name]).decode()
    if "int *" not in signature or signature.count("*") != n_arguments:
        raise ImportError(f"This SciPy's {name} takes other arguments than expected: {signature}.")
    capsules = {dtype: module.__pyx_capi__[c + name] for dtype, (c, _) in PRECISIONS.items()}
    return {dtype: pointers(read(own, read_name(own))) for dtype, own in capsules.items()}


GEMM = bound(cython_blas, "gemm", 13)


GEMV = bound(cython_blas, "gemv", 11)


SYRK = bound(cython_blas, "syrk", 10)


POTRF = bound(cython_lapack, "potrf", 5)


POTRS = bound(cython_lapack, "potrs", 8)


def integers(*values: int) -> list[Any]:
    """References to these numbers, as the routines take them."""
    return [ctypes.byref(ctypes.c_int(value)) for value in values]


def leading(A: Array) -> int:
    """How many numbers lie between the beginnings of two columns."""
    return max(A.strides[1] // A.itemsize, A.shape[0], 1)


def gemm(A: Array, transpose_a: bool, B: Array, transpose_b: bool, out: Array) -> None:
    """out = A·B, either one transposed first."""
    dtype, inner = out.dtype, A.shape[0] if transpose_a else A.shape[1]
    m, n, k, lda, ldb, ldc = integers(*out.shape, inner, leading(A), leading(B), leading(out))
    a, b, c = A.ctypes.data, B.ctypes.data, out.ctypes.data
    ta, tb = (TRANSPOSED if t else PLAIN for t in (transpose_a, transpose_b))
    GEMM[dtype](ta, tb, m, n, k, ONE[dtype], a, lda, b, ldb, ZERO[dtype], c, ldc)


def gemv(A: Array, transpose: bool, b: Array, out: Array) -> None:
    """out = A·b or Aᵀ·b, for a column b; both of them in one piece."""
    dtype, t = out.dtype, TRANSPOSED if transpose else PLAIN
    m, n, lda = integers(*A.shape, leading(A))
    x, y = b.ctypes.data, out.ctypes.data
    GEMV[dtype](t, m, n, ONE[dtype], A.ctypes.data, lda, x, UNIT, ZERO[dtype], y, UNIT)


def syrk(A: Array, transpose: bool, out: Array) -> None:
    """The lower triangle of A·Aᵀ, or of Aᵀ·A, into ``out``."""
    dtype, inner = out.dtype, A.shape[0] if transpose else A.shape[1]
    n, k, lda, ldc = integers(len(out), inner, leading(A), leading(out))
    t, a, c = TRANSPOSED if transpose else PLAIN, A.ctypes.data, out.ctypes.data
    SYRK[dtype](LOWER, t, n, k, ONE[dtype], a, lda, ZERO[dtype], c, ldc)


def potrf(A: Array) -> bool:
    """Replace the lower triangle of A by its Cholesky factor; whether there is one."""
    failed = ctypes.c_int(0)
    n, lda = integers(len(A), leading(A))
    POTRF[A.dtype](LOWER, n, A.ctypes.data, lda, ctypes.byref(failed))
    return failed.value == 0


def potrs(L: Array, B: Array) -> Array:
    """(LLᵀ)⁻¹B for a lower Cholesky factor, in L's precision."""
    X = np.array(B, L.dtype, order="F")
    n, columns, lda, ldb, failed = integers(*X.shape, leading(L), leading(X), 0)
    POTRS[L.dtype](LOWER, n, columns, L.ctypes.data, lda, X.ctypes.data, ldb, failed)
    return X


def product(A: Array, B: Array, out: Array | None = None) -> Array:
    """A·B; ``out``, if given, receives it (without a copy where it is in Fortran order)."""
    if 0 in A.shape or 0 in B.shape:  # which BLAS refuses
        return np.matmul(A, B, out=out)
    dtype = np.dtype(np.float32 if np.result_type(A, B) == np.float32 else np.float64)
    a, trans_a = columns_first(A.astype(dtype, copy=False))
    if B.shape[1] == 1 and out is None:
        column = np.empty((A.shape[0], 1), dtype)
        gemv(a, trans_a, np.ascontiguousarray(B, dtype), column)
        return column
    b, trans_b = columns_first(B.astype(dtype, copy=False))
    fits = out is not None and out.flags.f_contiguous and out.dtype == dtype
    result = out if fits else np.empty((A.shape[0], B.shape[1]), dtype, order="F")
    assert result is not None
    gemm(a, trans_a, b, trans_b, result)
    if out is not None and result is not out:
        out[...] = result
    return result if out is None else out


def columns_first(A: Array) -> tuple[Array, bool]:
    """A, or its transpose and True, whichever has its columns in one piece; else a copy."""
    if one_piece(A):
        return A, False
    return (A.T, True) if one_piece(A.T) else (np.asfortranarray(A), False)


def one_piece(A: Array) -> bool:
    """Whether the numbers of a column are neighbours, and columns do not overlap."""
    down, across = A.strides
    neighbours = down == A.itemsize or A.shape[0] == 1
    apart = across >= A.shape[0] * A.itemsize or A.shape[1] == 1
    return neighbours and apart and across % A.itemsize == 0 and A.flags.aligned


def gram(F: Array) -> Array:
    """The lower triangle of FᵀF, in F's precision."""
    a, transposed = columns_first(F)
    out = np.zeros((F.shape[1], F.shape[1]), F.dtype, order="F")
    syrk(a, not transposed, out)
    return out


# Squared distances below this share of the largest squared norm are rounding: rows are equal.
EQUAL = 1e-13


def squared_distances(A: Array, B: Array) -> Array:
    """‖a − b‖² for every row a of A and b of B, by one product."""
    a, b = np.einsum("ij,ij->i", A, A), np.einsum("ij,ij->i", B, B)
    squared = product(A, B.T)
    squared *= -2.0
    squared += a[:, None]
    squared += b
    squared *= squared > EQUAL * (a.max() + b.max())
    return squared


def stretched(X: Array, L: Array) -> Array:
    """Rows in the metric: X·L, or column by column where L is a diagonal."""
    return X * L if L.ndim == 1 else product(X, L)


def column_scales(L: Array) -> Array:
    """How long each column's unit is in the metric."""
    return L if L.ndim == 1 else np.sqrt(np.einsum("ij,ij->i", L, L))
