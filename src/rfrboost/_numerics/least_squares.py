"""Weighted least squares with a ridge penalty: its sufficient statistics, and solvers for them.

Every sub-problem of the method is a sum over rows. A pass over batches of rows leaves a few small
matrices (:class:`Moments`), and the solvers see nothing else.

The solvers compute X = (G + sI)⁻¹B for a symmetric positive semi-definite G and never raise. They
first try a Cholesky factorisation, in single precision where that is accurate enough to be refined.
If G + sI is singular to working precision, its eigenvalues decide which part of the solution can be
determined; the rest is zero.

- :func:`solve`: one shift s.
- :func:`solve_shifts`: a shift for each column of B.
- :func:`solve_kernel`: a large kernel matrix in single precision, without some rows and columns.

:func:`ridge` is ridge regression with an intercept from moments, :func:`ridges` the same under
several penalties, and :func:`ridge_of_rows` from inner products of rows, for fewer rows than
columns.
"""

from collections.abc import Callable, Iterable
from copy import copy
from itertools import accumulate
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dsymm, dsymv, dsyr

from rfrboost._numerics.blas import gram, potrf, potrs, product
from rfrboost._typing import Array, Indices

# A variance below this share of the mean square is the rounding error of their difference.
CONSTANT_SHARE = 1e-13

# A pivot below this share of its diagonal entry is rounding noise, per unit of dimension.
PIVOT_NOISE = 8 * np.finfo(float).eps

# Relative residual that a refined solution must reach: far below the error of a single-precision G.
REFINED = 1e-8

# That residual for kernel matrices, whose targets have far larger noise.
KERNEL_REFINED = 1e-4

# Corrections before refinement is given up; each must at least halve the residual.
REFINEMENTS = 8

# Columns of a single-precision matrix that are converted to double precision at a time.
DOUBLE_COLUMNS = 512

# One spectral decomposition costs about as much as this many Cholesky factorisations.
SPECTRAL_COST = 16

# Up to this many columns, products with single columns are faster than one matrix product.
FEW_COLUMNS = 4


class Moments:
    """Σw, Σw·f, Σw·r, Σw·ffᵀ, Σw·frᵀ and Σw·rrᵀ over rows (f, r) with weights w.

    f (p,) are features and r (d,) targets; ``ff`` (p, p) holds its lower triangle only.
    Single-precision features are multiplied in single precision, batch by batch, and summed in
    double precision (see :mod:`rfrboost._numerics.precision`).
    """

    def __init__(self, n_features: int, n_outputs: int, rr: bool = True) -> None:
        self.weight = 0.0
        self.f = np.zeros(n_features)
        self.r = np.zeros(n_outputs)
        self.ff = np.zeros((n_features, n_features), order="F")
        self.fr = np.zeros((n_features, n_outputs))
        # With many outputs Σw·rrᵀ would be most of the work, so it can be left out.
        self.rr: Any = np.zeros((n_outputs, n_outputs)) if rr else None

    def add(self, F: Array, R: Array, w: Array | None) -> None:
        """Add a batch of rows: F (n, p), R (n, d) and weights w (n,), or None if all are one."""
        R1 = np.ones((len(R), R.shape[1] + 1), order="F")
        R1[:, :-1] = R
        if w is not None:
            root = np.sqrt(w)[:, None]
            F, R1 = F * root.astype(F.dtype), R1 * root
        r1f = product(R1.astype(F.dtype, copy=False).T, F)
        # Single-precision products of a batch are summed in double precision.
        np.add(self.ff, gram(F), out=self.ff)
        self.fr += r1f[:-1].T
        self.f += r1f[-1]
        rr1 = product(R1.T, R1 if self.rr is not None else R1[:, -1:])
        self.r += rr1[:-1, -1]
        self.weight += rr1[-1, -1]
        if self.rr is not None:
            self.rr += rr1[:-1, :-1]

    def take(self, part: "Moments") -> None:
        """Add the rows that another object has summed."""
        self.weight += part.weight
        self.f += part.f
        self.r += part.r
        self.ff += part.ff
        self.fr += part.fr
        if self.rr is not None:
            self.rr += part.rr

    def center(self) -> None:
        """Turn second moments into those about the mean: the problem once an intercept is fitted.

        In place, because ``ff`` is the largest matrix of a fit; the sums f and r are unchanged.
        A feature that does not vary leaves rounding noise, which is set to zero.
        """
        about_zero = np.diag(self.ff).copy()
        self.ff = dsyr(-1.0 / self.weight, self.f, lower=1, a=self.ff, overwrite_a=1)
        self.fr -= np.outer(self.f, self.r) / self.weight
        if self.rr is not None:
            self.rr -= np.outer(self.r, self.r) / self.weight
        constant = np.diag(self.ff) <= CONSTANT_SHARE * about_zero
        if constant.any():
            self.ff[constant] = 0.0
            self.ff[:, constant] = 0.0
            self.fr[constant] = 0.0


def moments_of(
    batches: Iterable[tuple[Array, Array, Array | None]], n_features: int, n_outputs: int
) -> Moments:
    """The moments of batches of rows (F, R, w), see :meth:`Moments.add`; Σw·rrᵀ is left out."""
    total = Moments(n_features, n_outputs, rr=False)
    for F, R, w in batches:
        total.add(F, R, w)
    return total


def merged(parts: Iterable[Moments]) -> Moments:
    """The moments of all rows together; the parts are left unchanged."""
    first, *others = parts
    total = copy(first)
    total.f = first.f.copy()
    total.r = first.r.copy()
    total.ff = first.ff.copy(order="K")
    total.fr = first.fr.copy(order="K")
    total.rr = None if first.rr is None else first.rr.copy(order="K")
    for part in others:
        total.take(part)
    return total


def solve(G: Array, s: float, B: Array, single: bool = False) -> Array:
    """X = (G + sI)⁻¹B, where only the lower triangle of ``G`` is read, in Fortran order.

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
    pivots = np.diag(L) ** 2
    diagonal = np.diag(G) + s
    return bool(np.all(pivots > PIVOT_NOISE * len(G) * diagonal))


def _solve_refined(G: Array, s: float, B: Array) -> Array | None:
    """The solution by a single-precision Cholesky factor and refinement; None if it stalls."""
    L = _shifted(G, s, np.float32)
    return _refined(L, lambda X: multiply(G, X), s, B) if potrf(L) else None


def _refined(
    L: Array, times: Callable[[Array], Array], s: float, B: Array, goal: float = REFINED
) -> Array | None:
    """The solution by corrections with a single-precision factor ``L``; None if they stall.

    ``times`` multiplies a matrix by G in double precision; ``goal`` is the relative residual.
    """
    X = np.zeros_like(B)
    residual = B
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


def solve_kernel(K: Array, runs: list[slice], s: float, B: Array) -> Array:
    """X = (K' + sI)⁻¹B, where K' is a single-precision K with these rows and columns only.

    A single-precision factor is refined, with products summed in double precision, until the
    residual is below any noise in B; where that stalls, :func:`solve` takes over. K is symmetric,
    given in full and left unchanged, because it may be too large for another copy.
    """
    L = submatrix(K, runs)
    np.einsum("ii->i", L)[...] += np.float32(s)
    positive = potrf(L)

    def times(X: Array) -> Array:
        whole = np.zeros((len(K), X.shape[1]))
        for run, to in places(runs):
            whole[run] = X[to]
        moved = in_double(K, whole)
        return np.vstack([moved[run] for run in runs])

    X = _refined(L, times, s, B, KERNEL_REFINED) if positive else None
    return X if X is not None else solve(submatrix(K, runs).astype(float), s, B)


def submatrix(K: Array, runs: list[slice]) -> Array:
    """A copy of some rows and columns of a symmetric matrix, in Fortran order."""
    K = K if K.flags.f_contiguous else K.T
    n = sum(run.stop - run.start for run in runs)
    A = np.empty((n, n), K.dtype, order="F")
    for columns, to in places(runs):
        for rows, own in places(runs):
            A[own, to] = K[rows, columns]
    return A


def places(runs: list[slice]) -> list[tuple[slice, slice]]:
    """Runs of rows, and their places among the rows of all runs."""
    stops = accumulate(run.stop - run.start for run in runs)
    return [(run, slice(b - run.stop + run.start, b)) for run, b in zip(runs, stops, strict=True)]


def in_double(K: Array, X: Array) -> Array:
    """K·X in double precision for a symmetric K, converted some columns at a time."""
    K = K if K.flags.f_contiguous else K.T
    starts = range(0, len(K), DOUBLE_COLUMNS)
    return np.vstack([product(K[:, i : i + DOUBLE_COLUMNS].astype(float).T, X) for i in starts])


def norm(A: Array) -> float:
    """The Frobenius norm (numpy.linalg.norm would wake the threads of NumPy's BLAS)."""
    return float(np.sqrt(np.einsum("ij,ij->", A, A)))


def multiply(G: Array, B: Array) -> Array:
    """G·B for a symmetric G of which only the lower triangle is read."""
    if B.shape[1] > FEW_COLUMNS:
        whole: Array = dsymm(1.0, G, B, lower=1)
        return whole
    return np.column_stack([dsymv(1.0, G, b, lower=1) for b in B.T])


def _solve_spectral(G: Array, s: float, B: Array) -> Array:
    """The solution on the numerical range of G + sI, after scaling its diagonal to one."""
    root = np.sqrt(np.maximum(np.diag(G) + s, 0.0))
    scale = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    A = scale[:, None] * _shifted(G, s, np.float64) * scale
    values, vectors = eigh(A, lower=True, overwrite_a=True, check_finite=False)
    kept = values > PIVOT_NOISE * len(G) * max(values[-1], 0.0)
    V = vectors[:, kept]
    X: Array = scale[:, None] * (V @ ((V.T @ (scale[:, None] * B)) / values[kept][:, None]))
    return X


def ridge(moments: Moments, l2: float, single: bool = False) -> tuple[Array, Array]:
    """C (p, d) and c (d,) that minimise (1/n) Σ w‖r − Cᵀf − c‖² + λ‖C‖²_F, λ = ``l2``.

    ``moments`` are those of (f, r); they are made central. ``single`` allows a factorisation in
    single precision.
    """
    moments.center()
    C = solve(moments.ff, moments.weight * l2, moments.fr, single)
    return C, (moments.r - moments.f @ C) / moments.weight


def ridges(
    parts: list[Moments],
    penalties: tuple[float, ...],
    targets: Indices,
    single: bool = False,
    copies: bool = True,
) -> tuple[Array, Array]:
    """Ridge regressions as by :func:`ridge` under each penalty, to some columns of r for each.

    They are fitted to the rows of all ``parts`` together. ``targets`` (penalties, d) are the
    numbers of these columns. Returns C (p, penalties·d) and the intercepts (penalties·d,), the
    outputs of each penalty side by side. The parts are left unchanged; without ``copies`` there
    is one part only, which is made central.
    """
    moments = merged(parts) if copies else parts[0]
    moments.center()
    d = targets.shape[1]
    C = np.empty((len(moments.f), targets.size), order="F")
    c = np.empty(targets.size)
    for i, (l2, r) in enumerate(zip(penalties, targets, strict=True)):
        own = slice(i * d, (i + 1) * d)
        C[:, own] = solve(moments.ff, moments.weight * l2, moments.fr[:, r], single)
        c[own] = (moments.r[r] - np.einsum("i,ij->j", moments.f, C[:, own])) / moments.weight
    return C, c


def ridge_of_rows(
    K: Array, fitted: Indices, w: Array, R: Array, penalties: tuple[float, ...]
) -> tuple[Array, Array]:
    """Ridge regression in its dual form, for fewer rows than columns.

    The coefficients of :func:`ridge` are C = FᵀA, where A (n, d) solves equations of the size of
    the rows. K = FFᵀ (n, n) are the inner products of rows, given in full; w (n,) are weights and R
    (n, d) targets. Rows other than those ``fitted`` have zeros in A. Returns A (n, penalties·d) and
    the intercepts (penalties·d,), the outputs of each penalty side by side.
    """
    w, R = w[fitted], R[fitted]
    total = w.sum()
    mean = w @ R / total
    G = np.asfortranarray(K[np.ix_(fitted, fitted)])
    # Products with the mean row, and the mean row with itself: rows are centred by these.
    towards = w @ G / total
    G -= towards[:, None]
    G -= towards - w @ towards / total
    root = np.sqrt(w)
    G *= root[:, None]
    G *= root
    B = root[:, None] * (R - mean)
    d = R.shape[1]
    A = np.zeros((len(K), len(penalties) * d))
    c = np.empty(len(penalties) * d)
    for i, penalty in enumerate(penalties):
        own = slice(i * d, (i + 1) * d)
        a = root[:, None] * solve(G, total * penalty, B)
        # The sum over centred rows is zero, and so is that of a, up to rounding.
        a -= np.outer(w / total, a.sum(axis=0))
        A[fitted, own] = a
        c[own] = mean - towards @ a
    return A, c


def solve_shifts(G: Array, shifts: Array, B: Array, single: bool = False) -> Array:
    """Column k of X solves (G + shifts[k]·I) x = B[:, k].

    With few shifts there is a factorisation for each; with more, one spectral decomposition for all
    is less work.
    """
    if len(shifts) <= SPECTRAL_COST:
        columns = [solve(G, s, B[:, [k]], single) for k, s in enumerate(shifts)]
        return np.hstack(columns) if columns else np.zeros_like(B)
    values, V = eigh(np.asfortranarray(G), lower=True, check_finite=False)
    denominators = np.maximum(values, 0.0)[:, None] + shifts
    floor = PIVOT_NOISE * len(G) * max(values[-1], 0.0)
    solvable = denominators > floor
    inverse = np.divide(1.0, denominators, out=np.zeros_like(denominators), where=solvable)
    X: Array = V @ (inverse * (V.T @ B))
    return X
