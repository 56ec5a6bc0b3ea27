"""Matrix products, Gram matrices and Cholesky factorisations, all by SciPy's BLAS and LAPACK.

Why not NumPy: NumPy and SciPy each carry a BLAS with threads of its own. Factorisations need
SciPy's. If the products between them were NumPy's, the idle threads of one library would keep the
cores from the other, several times slower on two cores.

Why not SciPy's Python wrappers: they hold the interpreter's lock while they compute, so that
threads of one process wait for each other. SciPy offers the same routines to Cython as pointers
(``scipy.linalg.cython_blas`` and ``cython_lapack``). Called through ctypes they release the lock
(:class:`PointerRoutines`). These pointers carry their signature as text, which a later SciPy may
change; then the wrappers are used instead (:class:`WrapperRoutines`), with the same results.

Matrices given to the five routines are in Fortran order, with any distance between two columns, and
of one dtype, float32 or float64. :func:`product` and :func:`gram` take any layout and return
Fortran order, in which the Gram matrix of many rows of features is computed fastest.
"""

import ctypes
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy.linalg import cython_blas, cython_lapack, get_blas_funcs, get_lapack_funcs

from rfrboost._typing import Array

# The letter of each precision in the routines' names, and its type in C.
PRECISIONS: dict[np.dtype, tuple[str, Any]] = {
    np.dtype(np.float32): ("s", ctypes.c_float),
    np.dtype(np.float64): ("d", ctypes.c_double),
}


class Routines(Protocol):
    """The five routines of BLAS and LAPACK that a fit spends its time in."""

    def gemm(self, A: Array, transpose_a: bool, B: Array, transpose_b: bool, out: Array) -> None:
        """Write A·B into ``out``, each of A and B transposed first if its flag is set."""

    def gemv(self, A: Array, transpose: bool, b: Array, out: Array) -> None:
        """Write A·b, or Aᵀ·b, into ``out``; b and ``out`` are contiguous columns (n, 1)."""

    def syrk(self, A: Array, transpose: bool, out: Array) -> None:
        """Write the lower triangle of A·Aᵀ, or of Aᵀ·A, into ``out``."""

    def potrf(self, A: Array) -> bool:
        """Replace the lower triangle of A by its Cholesky factor; False if A has none."""

    def potrs(self, L: Array, B: Array) -> Array:
        """(LLᵀ)⁻¹B for a lower Cholesky factor L, in L's precision."""


class SignatureError(Exception):
    """The pointers of this SciPy take other arguments than the calls below pass."""


def parameter_kinds(signature: str, precision: str) -> str:
    """A letter for each parameter of a C signature: character, integer, number, or ? for others.

    A number is one of the given precision, "s" or "d".
    """
    letters = {
        "char *": "c",
        "int *": "i",
        "float *": "n" if precision == "s" else "?",
        "double *": "n" if precision == "d" else "?",
    }
    parameters = signature.removeprefix("void (").removesuffix(")").split(", ")
    # Cython has names of its own for float and double, such as __pyx_t_..._cython_blas_d.
    own_name = f"_{precision} *"
    return "".join("n" if p.endswith(own_name) else letters.get(p, "?") for p in parameters)


def bind(module: Any, name: str, expected: str) -> dict[np.dtype, Callable[..., None]]:
    """A routine in both precisions, from the capsules of a Cython module.

    Every argument is a pointer, as in Fortran; ``expected`` has one letter for each of them, as
    :func:`parameter_kinds` gives them. Raises :class:`SignatureError` if the module has no such
    routine or its arguments differ: calling it would then read or write foreign memory.
    """
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype = ctypes.c_char_p
    get_name.argtypes = [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    # A call through CFUNCTYPE releases the interpreter's lock.
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(expected))
    bound: dict[np.dtype, Callable[..., None]] = {}
    for dtype, (letter, _) in PRECISIONS.items():
        try:
            capsule = module.__pyx_capi__[letter + name]
        except (AttributeError, KeyError):
            raise SignatureError(f"SciPy has no pointer to {letter}{name}.") from None
        signature = get_name(capsule).decode()
        if parameter_kinds(signature, letter) != expected:
            raise SignatureError(f"SciPy's {letter}{name} has the signature {signature}.")
        bound[dtype] = function(get_pointer(capsule, get_name(capsule)))
    return bound


def integers(*values: int) -> list[Any]:
    """References to integers, as the routines take them."""
    return [ctypes.byref(ctypes.c_int(value)) for value in values]


def leading_dimension(A: Array) -> int:
    """The distance between the starts of two neighbouring columns, in numbers."""
    distance: int = max(A.strides[1] // A.itemsize, A.shape[0], 1)
    return distance


PLAIN, TRANSPOSED, LOWER = (ctypes.byref(ctypes.c_char(c)) for c in (b"N", b"T", b"L"))
UNIT_STRIDE = ctypes.byref(ctypes.c_int(1))
ONE, ZERO = (
    {dtype: ctypes.byref(number(value)) for dtype, (_, number) in PRECISIONS.items()}
    for value in (1.0, 0.0)
)


class PointerRoutines:
    """The routines called through SciPy's Cython pointers, which releases the lock."""

    def __init__(self, cython_blas: Any, cython_lapack: Any) -> None:
        self._gemm = bind(cython_blas, "gemm", "cciiinnininni")
        self._gemv = bind(cython_blas, "gemv", "ciinnininni")
        self._syrk = bind(cython_blas, "syrk", "cciinninni")
        self._potrf = bind(cython_lapack, "potrf", "cinii")
        self._potrs = bind(cython_lapack, "potrs", "ciininii")

    def gemm(self, A: Array, transpose_a: bool, B: Array, transpose_b: bool, out: Array) -> None:
        dtype = out.dtype
        inner = A.shape[0] if transpose_a else A.shape[1]
        strides = leading_dimension(A), leading_dimension(B), leading_dimension(out)
        m, n, k, lda, ldb, ldc = integers(*out.shape, inner, *strides)
        a, b, c = A.ctypes.data, B.ctypes.data, out.ctypes.data
        ta = TRANSPOSED if transpose_a else PLAIN
        tb = TRANSPOSED if transpose_b else PLAIN
        self._gemm[dtype](ta, tb, m, n, k, ONE[dtype], a, lda, b, ldb, ZERO[dtype], c, ldc)

    def gemv(self, A: Array, transpose: bool, b: Array, out: Array) -> None:
        dtype = out.dtype
        t = TRANSPOSED if transpose else PLAIN
        m, n, lda = integers(*A.shape, leading_dimension(A))
        a, x, y = A.ctypes.data, b.ctypes.data, out.ctypes.data
        one, zero = ONE[dtype], ZERO[dtype]
        self._gemv[dtype](t, m, n, one, a, lda, x, UNIT_STRIDE, zero, y, UNIT_STRIDE)

    def syrk(self, A: Array, transpose: bool, out: Array) -> None:
        dtype = out.dtype
        t = TRANSPOSED if transpose else PLAIN
        inner = A.shape[0] if transpose else A.shape[1]
        n, k, lda, ldc = integers(len(out), inner, leading_dimension(A), leading_dimension(out))
        a, c = A.ctypes.data, out.ctypes.data
        self._syrk[dtype](LOWER, t, n, k, ONE[dtype], a, lda, ZERO[dtype], c, ldc)

    def potrf(self, A: Array) -> bool:
        failed = ctypes.c_int(0)
        n, lda = integers(len(A), leading_dimension(A))
        self._potrf[A.dtype](LOWER, n, A.ctypes.data, lda, ctypes.byref(failed))
        return failed.value == 0

    def potrs(self, L: Array, B: Array) -> Array:
        X = np.array(B, L.dtype, order="F")
        n, columns, lda, ldb, failed = integers(
            *X.shape, leading_dimension(L), leading_dimension(X), 0
        )
        self._potrs[L.dtype](LOWER, n, columns, L.ctypes.data, lda, X.ctypes.data, ldb, failed)
        return X


class WrapperRoutines:
    """The routines by SciPy's public wrappers: right with every SciPy, but they hold the lock."""

    def gemm(self, A: Array, transpose_a: bool, B: Array, transpose_b: bool, out: Array) -> None:
        gemm = get_blas_funcs("gemm", dtype=out.dtype)
        out[...] = gemm(1.0, A, B, trans_a=transpose_a, trans_b=transpose_b)

    def gemv(self, A: Array, transpose: bool, b: Array, out: Array) -> None:
        out[:, 0] = get_blas_funcs("gemv", dtype=out.dtype)(1.0, A, b[:, 0], trans=transpose)

    def syrk(self, A: Array, transpose: bool, out: Array) -> None:
        syrk = get_blas_funcs("syrk", dtype=out.dtype)
        out[...] = syrk(1.0, A, c=out, trans=transpose, lower=True)

    def potrf(self, A: Array) -> bool:
        potrf = get_lapack_funcs("potrf", dtype=A.dtype)
        A[...], failed = potrf(A, lower=True, clean=False)
        return bool(failed == 0)

    def potrs(self, L: Array, B: Array) -> Array:
        potrs = get_lapack_funcs("potrs", dtype=L.dtype)
        X: Array = potrs(L, B.astype(L.dtype, copy=False), lower=True)[0]
        return X


def fastest_routines(cython_blas: Any, cython_lapack: Any) -> Routines:
    """The routines by pointers where these have the expected signatures, else by wrappers."""
    try:
        return PointerRoutines(cython_blas, cython_lapack)
    except SignatureError:
        return WrapperRoutines()


ROUTINES = fastest_routines(cython_blas, cython_lapack)
potrf = ROUTINES.potrf
potrs = ROUTINES.potrs


def product(A: Array, B: Array, out: Array | None = None) -> Array:
    """A·B; ``out``, if given, receives it (without a copy where it is in Fortran order)."""
    if 0 in A.shape or 0 in B.shape:  # which BLAS refuses
        return np.matmul(A, B, out=out)
    dtype = np.dtype(np.float32 if np.result_type(A, B) == np.float32 else np.float64)
    a, trans_a = columns_first(A.astype(dtype, copy=False))
    if B.shape[1] == 1 and out is None:
        column = np.empty((A.shape[0], 1), dtype)
        ROUTINES.gemv(a, trans_a, np.ascontiguousarray(B, dtype), column)
        return column
    b, trans_b = columns_first(B.astype(dtype, copy=False))
    fits = out is not None and out.flags.f_contiguous and out.dtype == dtype
    result = out if fits else np.empty((A.shape[0], B.shape[1]), dtype, order="F")
    assert result is not None
    ROUTINES.gemm(a, trans_a, b, trans_b, result)
    if out is not None and result is not out:
        out[...] = result
    return result if out is None else out


def gram(F: Array) -> Array:
    """The lower triangle of FᵀF, in F's precision; the rest is zero."""
    out = np.zeros((F.shape[1], F.shape[1]), F.dtype, order="F")
    if F.size:
        a, transposed = columns_first(F)
        ROUTINES.syrk(a, not transposed, out)
    return out


def columns_first(A: Array) -> tuple[Array, bool]:
    """A and False, or its transpose and True, whichever has contiguous columns; else a copy."""
    if has_contiguous_columns(A):
        return A, False
    return (A.T, True) if has_contiguous_columns(A.T) else (np.asfortranarray(A), False)


def has_contiguous_columns(A: Array) -> bool:
    """Whether each column lies in one piece of memory, and columns do not overlap."""
    down, across = A.strides
    neighbours = down == A.itemsize or A.shape[0] == 1
    apart = across >= A.shape[0] * A.itemsize or A.shape[1] == 1
    return bool(neighbours and apart and across % A.itemsize == 0 and A.flags.aligned)


def squared_distances(A: Array, B: Array) -> Array:
    """‖a − b‖² for every row a of A and b of B, by one product.

    Those of close rows are differences of large numbers, and may be slightly below 0.
    """
    a = np.einsum("ij,ij->i", A, A)
    b = np.einsum("ij,ij->i", B, B)
    squared = product(A, B.T)
    squared *= -2.0
    squared += a[:, None]
    squared += b
    return squared


def stretched(X: Array, L: Array) -> Array:
    """X·L: rows in a metric L (D, D), or with each column scaled where L (D,) is a diagonal."""
    return X * L if L.ndim == 1 else product(X, L)


def column_scales(L: Array) -> Array:
    """The length of each column's unit vector in a metric L, (D, D) or its diagonal (D,)."""
    return L if L.ndim == 1 else np.sqrt(np.einsum("ij,ij->i", L, L))
