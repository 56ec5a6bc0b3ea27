"""Solve (G + sI) X = B for a symmetric positive semi-definite G, and never raise.

First a Cholesky factorisation, in single precision where that is accurate enough to refine
from. Where G + sI is singular to working precision, the eigenvalues decide what can be
solved for, and the rest of the solution is zero.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dsymm, dsymv

from rfrboost._blas import product
from rfrboost._lapack import potrf, potrs
from rfrboost._typing import Array

# A pivot below this share of its diagonal entry is rounding noise, per unit of dimension.
NOISE = 8 * np.finfo(float).eps
# Relative residual a refined solution must reach: far below the error of a single-precision G.
REFINED = 1e-8
REFINEMENTS = 8
KERNEL_REFINED = 1e-4
# Rows of a single-precision matrix that are taken to double precision at a time.
CHUNK = 512


def solve(G: Array, s: float, B: Array, single: bool = False) -> Array:
    """X = (G + sI)⁻¹B; ``G`` is given by its lower triangle in Fortran order.

    ``single`` allows a single-precision factorisation, refined against the double-precision
    ``G`` until it is as accurate as a double-precision one.
    """
    X = _solve_refined(G, s, B) if single else None
    X = X if X is not None else _solve_cholesky(G, s, B)
    return X if X is not None else _solve_spectral(G, s, B)


def _shifted(G: Array, s: float, dtype: type[np.floating]) -> Array:
    """A Fortran-ordered copy of G + sI to factorise in place."""
    A = G.astype(dtype, order="F")
    np.einsum("ii->i", A)[...] += dtype(s)
    return A


def _solve_cholesky(G: Array, s: float, B: Array) -> Array | None:
    L = _shifted(G, s, np.float64)
    if not potrf(L) or not _well_determined(L, G, s):
        return None
    X = potrs(L, B)
    return X if np.isfinite(X).all() else None


def _well_determined(L: Array, G: Array, s: float) -> bool:
    """Whether every pivot stands clear of rounding noise (invariant to scaling of columns)."""
    pivots, diagonal = np.diag(L) ** 2, np.diag(G) + s
    return bool(np.all(pivots > NOISE * len(G) * diagonal))


def _solve_refined(G: Array, s: float, B: Array) -> Array | None:
    """Single-precision Cholesky as the solver of an iterative refinement; None if it stalls."""
    L = _shifted(G, s, np.float32)
    return _refined(L, lambda X: multiply(G, X), s, B) if potrf(L) else None


def _refined(
    L: Array, times: Callable[[Array], Array], s: float, B: Array, goal: float = REFINED
) -> Array | None:
    """The solution by corrections through a single-precision factor ``L``; None if they stall."""
    X, residual = np.zeros_like(B), B
    size = whole = norm(B)
    for _ in range(REFINEMENTS):
        if size <= goal * whole:
            return X
        # Scaled to size one, because residuals shrink below what single precision can hold.
        X = X + size * potrs(L, residual / size)
        residual = B - times(X) - s * X
        size, previous = norm(residual), size
        if not size < 0.5 * previous:
            return None
    return None


def solve_kernel(K: Array, held: slice, s: float, B: Array) -> Array:
    """X = (K' + sI)⁻¹B, K' a symmetric single-precision K without its rows and columns ``held``.

    A single-precision factor, refined with products summed in double until the residual is below
    any noise in B; ``solve`` where that stalls. K itself stays as it is: it may be large.
    """
    L = without(K, held)
    np.einsum("ii->i", L)[...] += np.float32(s)
    positive = potrf(L)

    def times(X: Array) -> Array:
        zeros = np.zeros((held.stop - held.start, X.shape[1]))
        whole = np.vstack([X[: held.start], zeros, X[held.start :]])
        moved = in_double(K, whole)
        return np.vstack([moved[: held.start], moved[held.stop :]])

    X = _refined(L, times, s, B, KERNEL_REFINED) if positive else None
    return X if X is not None else solve(without(K, held).astype(float), s, B)


def without(K: Array, held: slice) -> Array:
    """A symmetric matrix without some rows and columns, in Fortran order, by copies of blocks."""
    K = K if K.flags.f_contiguous else K.T
    a, b, n = held.start, held.stop, len(K)
    A = np.empty((n - b + a, n - b + a), K.dtype, order="F")
    for columns, to in ((slice(0, a), slice(0, a)), (slice(b, n), slice(a, None))):
        A[:a, to] = K[:a, columns]
        A[a:, to] = K[b:, columns]
    return A


def in_double(K: Array, X: Array) -> Array:
    """K·X for a symmetric K, taken to double precision some columns at a time."""
    K = K if K.flags.f_contiguous else K.T
    starts = range(0, len(K), CHUNK)
    return np.vstack([product(K[:, i : i + CHUNK].astype(float).T, X) for i in starts])


def norm(A: Array) -> float:
    """The Frobenius norm (numpy's would wake the threads of another BLAS)."""
    return float(np.sqrt(np.einsum("ij,ij->", A, A)))


def multiply(G: Array, B: Array) -> Array:
    """G·B for a symmetric G given by its lower triangle; column by column while they are few."""
    if B.shape[1] > 4:
        return dsymm(1.0, G, B, lower=1)
    return np.column_stack([dsymv(1.0, G, b, lower=1) for b in B.T])


def _solve_spectral(G: Array, s: float, B: Array) -> Array:
    """The solution on the numerical range of G + sI, after scaling its diagonal to one."""
    root = np.sqrt(np.maximum(np.diag(G) + s, 0.0))
    scale = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    A = scale[:, None] * _shifted(G, s, np.float64) * scale
    values, vectors = eigh(A, lower=True, overwrite_a=True, check_finite=False)
    kept = values > NOISE * len(G) * max(values[-1], 0.0)
    V = vectors[:, kept]
    return scale[:, None] * (V @ ((V.T @ (scale[:, None] * B)) / values[kept][:, None]))


def solve_shifts(G: Array, shifts: Array, B: Array, single: bool = False) -> Array:
    """Column k of X solves (G + shifts[k]·I) x = B[:, k].

    A factorisation a shift while they are few; one spectral decomposition when that is less
    work (eigh costs about sixteen Cholesky factorisations).
    """
    if len(shifts) <= 16:
        columns = [solve(G, s, B[:, [k]], single) for k, s in enumerate(shifts)]
        return np.hstack(columns) if columns else np.zeros_like(B)
    values, V = eigh(np.asfortranarray(G), lower=True, check_finite=False)
    denominators = np.maximum(values, 0.0)[:, None] + shifts
    floor = NOISE * len(G) * max(values[-1], 0.0)
    solvable = denominators > floor
    inverse = np.divide(1.0, denominators, out=np.zeros_like(denominators), where=solvable)
    return V @ (inverse * (V.T @ B))
