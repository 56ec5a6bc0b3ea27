"""Matrix products over rows, all by SciPy's BLAS.

NumPy and SciPy each carry a BLAS with threads of its own. Factorisations need SciPy's; were the
products between them NumPy's, the idle threads of the one would keep the cores from the other
(several times slower on two cores). Results are in Fortran order, which is also what makes the
Gram of a tall block of features fastest.
"""

import numpy as np
from scipy.linalg.blas import dgemm, dgemv, dsyrk, sgemm, sgemv, ssyrk

from rfrboost._typing import Array


def product(A: Array, B: Array, out: Array | None = None) -> Array:
    """A·B; ``out``, if given, receives it (without a copy where it is in Fortran order)."""
    if 0 in A.shape or 0 in B.shape:  # which BLAS refuses
        return np.matmul(A, B, out=out)
    single = np.result_type(A, B) == np.float32
    a, trans_a = columns_first(A)
    if B.shape[1] == 1 and out is None:
        gemv = sgemv if single else dgemv
        return gemv(1.0, a, B[:, 0], trans=trans_a)[:, None]
    b, trans_b = columns_first(B)
    gemm = sgemm if single else dgemm
    if out is None or not out.flags.f_contiguous:
        result = gemm(1.0, a, b, trans_a=trans_a, trans_b=trans_b)
    else:
        result = gemm(1.0, a, b, trans_a=trans_a, trans_b=trans_b, c=out, overwrite_c=1)
    if out is not None and result is not out:
        out[...] = result
    return result if out is None else out


def columns_first(A: Array) -> tuple[Array, bool]:
    """A, or its transpose and True, whichever is in Fortran order."""
    return (A, False) if A.flags.f_contiguous else (A.T, True)


def gram(F: Array) -> Array:
    """The lower triangle of FᵀF, in F's precision."""
    a, transposed = columns_first(F)
    syrk = ssyrk if F.dtype == np.float32 else dsyrk
    return syrk(1.0, a, trans=not transposed, lower=1)
