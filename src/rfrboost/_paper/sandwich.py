"""Sandwiched least squares (Theorem theoremSandwichedLeastSquares), from moments.

Minimise over A

    J(A) = (1/n) Σ w‖r − Wᵀ A f‖² + λ‖A‖²_F ,     n = Σw ,

for scalar, diagonal and dense A. Every normal equation carries nλ. ``moments`` are those of
(f, r), f (p,) and r (d,), not about the mean: A f has no intercept. W is (D, d); scalar and
diagonal A need p = D.
"""

import numpy as np

from rfrboost._numerics.least_squares import Moments, multiply, solve, solve_shifts
from rfrboost._typing import Array


def sandwich_scalar(moments: Moments, W: Array, l2: float) -> float:
    """A = ⟨R, FW⟩ / (‖FW‖² + nλ)   (Proposition sandwichScalar)."""
    numerator = np.sum(W * moments.fr)
    denominator = np.sum(W * multiply(moments.ff, W)) + moments.weight * l2
    return float(numerator / denominator) if denominator > 0 else 0.0


def sandwich_diagonal(moments: Moments, W: Array, l2: float) -> Array:
    """diag(A) = (WWᵀ ⊙ FᵀF + nλI)⁻¹ diag(W RᵀF)   (Proposition sandwichDiag, with its n)."""
    b = np.sum(W * moments.fr, axis=1, keepdims=True)
    C = np.asfortranarray((W @ W.T) * moments.ff)
    return solve(C, moments.weight * l2, b)[:, 0]


def sandwich_dense(
    moments: Moments, W: Array, l2: float, single: bool = False
) -> tuple[Array, Array]:
    """A = UCᵀ, returned as C (p, k) and U (D, k), k ≤ d   (Proposition sandwichDense).

    WWᵀ has rank at most d and A vanishes outside its range. With the thin SVD W = U S Vᵀ the
    normal equation W RᵀF = WWᵀ A FᵀF + nλ A separates into k ridge problems,

        (s_k² FᵀF + nλ I) c_k = s_k FᵀR v_k ,

    which is the theorem's spectral formula without its D×D and p×p decompositions. ``single``
    says that the features are in single precision, in which the problems may then be factorised.
    """
    U, S, Vt = np.linalg.svd(W, full_matrices=False)
    kept = np.finfo(float).eps * len(W) * S.max(initial=0.0) < S
    U = U[:, kept]
    S = S[kept]
    Vt = Vt[kept]
    with np.errstate(over="ignore"):
        shifts = np.minimum(moments.weight * l2 / S / S, np.finfo(float).max)
    C = solve_shifts(moments.ff, shifts, (moments.fr @ Vt.T) / S, single)
    return C, U
