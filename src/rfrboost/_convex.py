"""Heads for general convex losses: L-BFGS, warm-started and well-conditioned."""

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg

from rfrboost._blas import product
from rfrboost._chunks import Chunks, Sums
from rfrboost._losses import Loss
from rfrboost._moments import Moments
from rfrboost._network import Head
from rfrboost._rows import Rows
from rfrboost._typing import Array

ITERATIONS = 300
# On the gradient in whitened coordinates: the risk is then within about 1e-8 of its minimum.
GRADIENT_TOLERANCE = 1e-5
# Up to this many entries of Φ times outputs, the last digits cost nothing and are computed too.
SMALL = 2**16
NEWTON_STEPS = 3
# A second derivative below this is none: the smallest inputs there are have larger squares.
FLAT = 1e-150

Objective = Callable[[Array], tuple[float, Array]]


def convex_head(chunks: Chunks, moments: Moments, loss: Loss, l2: float, start: Head) -> Array:
    """L-BFGS from the last head, in coordinates in which the problem is nearly round.

    With LLᵀ = h·cov(φ) + 2λI, an estimate of the Hessian (h the mean curvature of the loss),
    the search runs over V, W = L⁻ᵀV, and over the intercept about the mean of φ. ``moments``
    are central.
    """
    mean = moments.f / moments.weight
    h = mean_curvature(chunks, loss, start)
    L = whitener(moments.ff * (h / moments.weight), 2 * l2)
    inverse, _ = dtrtri(L, lower=1)
    root = np.sqrt(h)

    def matrix(v: Array) -> Array:
        V = v.reshape(start.matrix.shape)
        M = np.empty_like(V)
        M[:-1] = product(inverse.T, V[:-1])
        M[-1] = V[-1] / root - mean @ M[:-1]
        if loss.shift_invariant:
            M[-1] -= M[-1].mean()
        return M

    def objective(v: Array) -> tuple[float, Array]:
        M = matrix(v)
        value, gradient = risk_and_gradient(chunks, loss, Head(M))
        gradient[:-1] += 2 * l2 * M[:-1] - np.multiply.outer(mean, gradient[-1])
        gradient[:-1] = product(inverse, gradient[:-1])
        gradient[-1] /= root
        return value + l2 * float(np.einsum("ij,ij->", M[:-1], M[:-1])), gradient.ravel()

    first = np.vstack([L.T @ start.W, root * (start.b + mean @ start.W)])
    options = {"maxiter": ITERATIONS, "gtol": GRADIENT_TOLERANCE, "ftol": 1e-14, "maxcor": 20}
    v = minimize(objective, first.ravel(), jac=True, method="L-BFGS-B", options=options).x
    return matrix(polished(objective, v) if chunks.facts.n_rows * first.size <= SMALL else v)


def polished(objective: Objective, v: Array) -> Array:
    """Newton steps to a vanishing gradient, which values of the risk are too coarse to find.

    Hessian products are differences of gradients; conjugate gradients solve for the step.
    """
    gradient = objective(v)[1]
    # Where the loss is flat the step is not finite; it is then no improvement either.
    with np.errstate(all="ignore"):
        for _ in range(NEWTON_STEPS):
            step = newton_step(objective, v, gradient)
            after = objective(v + step)[1]
            if not np.abs(after).max() < np.abs(gradient).max():
                break
            v, gradient = v + step, after
    return v


def newton_step(objective: Objective, v: Array, gradient: Array) -> Array:
    """−H⁻¹g, roughly."""

    def hessian_times(direction: Array) -> Array:
        e = 1e-7 / max(float(np.linalg.norm(direction)), 1e-300)
        return (objective(v + e * direction)[1] - gradient) / e

    hessian = LinearOperator((v.size, v.size), matvec=hessian_times, dtype=float)
    return cg(hessian, -gradient, rtol=1e-5, maxiter=60)[0]


def risk_and_gradient(chunks: Chunks, loss: Loss, head: Head) -> tuple[float, Array]:
    """(1/n) Σ w·l and its gradient in the head's matrix."""
    value, weight, gradient = chunks.total(risk_sums, loss, head).values
    return value / weight, gradient / weight


def risk_sums(rows: Rows, loss: Loss, head: Head) -> Sums:
    """Σw·l, Σw and Σw·∇l."""
    value, weight, gradient = 0.0, 0.0, np.zeros_like(head.matrix)
    for block in rows.fitting_blocks():
        losses, slopes = loss.value_and_gradient(head(block.phi), block.y)
        w = np.ones(len(losses)) if block.w is None else block.w
        value += float(w @ losses)
        weight += float(w.sum())
        gradient += product(block.phi.T, slopes if block.w is None else slopes * w[:, None])
    return Sums(value, weight, gradient)


def mean_curvature(chunks: Chunks, loss: Loss, head: Head) -> float:
    """How curved the loss is on average, along one direction: a scale, not a bound."""
    total, weight = chunks.total(curvature_sums, loss, head).values
    curvature = total / weight
    return curvature if 1e-6 < curvature < 1e6 else 1.0


def curvature_sums(rows: Rows, loss: Loss, head: Head) -> Sums:
    """Σ of the curvatures, weighted, and Σw."""
    total = weight = 0.0
    for block in rows.fitting_blocks():
        raw = head(block.phi)
        towards = np.full_like(raw, raw.shape[1] ** -0.5)
        towards[:, ::2] *= -1.0
        curvatures = loss.slope_and_curvature(raw, block.y, towards)[1]
        total += float(curvatures.sum() if block.w is None else block.w @ curvatures)
        weight += len(raw) if block.w is None else float(block.w.sum())
    return Sums(total, weight)


def whitener(hessian: Array, shift: float) -> Array:
    """L with LLᵀ ≈ hessian + shift·I, made safe by a small multiple of its diagonal.

    A coordinate that neither varies nor is penalised keeps its own unit.
    """
    diagonal = np.diag(hessian) + shift
    floor = 1e-10 * diagonal + 1e-12 * diagonal.max(initial=0.0)
    curved = diagonal > FLAT
    A = hessian.astype(float, order="F")
    np.einsum("ii->i", A)[...] += shift + np.where(curved, floor, 1.0)
    L, failed = dpotrf(A, lower=1, clean=1)
    return L if not failed else np.diag(np.sqrt(np.where(curved, diagonal, 1.0)))
