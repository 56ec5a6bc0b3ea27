"""The few routines that fits spend their time in, called without Python's lock.

SciPy's wrappers of BLAS and LAPACK hold the interpreter's lock while they compute, so that threads
of one process wait for each other. SciPy offers the same routines to Cython as pointers
(``scipy.linalg.cython_blas`` and ``cython_lapack``); called through ctypes they run side by side.

Matrices here are in Fortran order, with any distance between columns, and of one dtype, float32
or float64.
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
