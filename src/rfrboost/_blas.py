"""Matrix products over rows, all by SciPy's BLAS.

NumPy and SciPy each carry a BLAS with threads of its own. Factorisations need SciPy's; were the
products between them NumPy's, the idle threads of the one would keep the cores from the other
(several times slower on two cores). Results are in Fortran order, which is also what makes the
Gram of a tall block of features fastest.
"""

import numpy as np

from rfrboost._lapack import gemm, gemv, syrk
from rfrboost._typing import Array


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
