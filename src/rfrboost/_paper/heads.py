"""The linear head W_t, refitted on the whole representation after every layer.

Heads for general convex losses: L-BFGS, warm-started and well-conditioned.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg

from rfrboost._model.losses import Loss
from rfrboost._model.network import Head
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import product
from rfrboost._numerics.least_squares import Moments, solve
from rfrboost._rows.chunks import Chunk, Chunks, Sums, thinned_targets, weighted_sums
from rfrboost._typing import Array


def constant_head(chunks: Chunks, width: int, loss: Loss) -> Head:
    """W = 0 and the best constant: where the first fit starts."""
    if loss.starts_at_mean and chunks.facts.n_rows > chunks.sizes.chunk_rows:
        total, weight = chunks.total(target_sums).values
        b = loss.start((total / weight)[None], np.ones(1))
    else:
        b = loss.start(*thinned_targets(chunks))
    return Head(np.vstack([np.zeros((width, len(b))), b]))


def target_sums(chunk: Chunk) -> Sums:
    """Σw·y and Σw."""
    return weighted_sums(chunk.y, chunk.w)


def fit_head(chunks: Chunks, loss: Loss, l2: float, start: Head) -> Head:
    """W_t = argmin (1/n) Σ w·l(Wᵀφ + b, y) + λ‖W‖²_F, b unpenalised.

    For squared error the paper's objective has no ½: ridge regression with penalty nλ.
    """
    moments = chunks.total(representation_moments)
    moments.center()
    if loss.quadratic:
        return Head(frozen(ridge_head(moments, l2)))
    return Head(frozen(convex_head(chunks, moments, loss, l2, start)))


def representation_moments(chunk: Chunk) -> Moments:
    """Moments of (φ, y) over the rows that fit this layer."""
    total = Moments(chunk.phi.shape[1] - 1, chunk.y.shape[1])
    for rows in chunk.fitting_batches():
        total.add(np.asfortranarray(chunk.phi[rows, :-1]), chunk.y[rows], chunk.weights(rows))
    return total


def ridge_head(moments: Moments, l2: float) -> Array:
    """The closed form, on moments about the mean."""
    W = solve(moments.ff, moments.weight * l2, moments.fr)
    return np.vstack([W, (moments.r - moments.f @ W) / moments.weight])


# On the gradient in whitened coordinates: the risk is then within about 1e-8 of its minimum.
GRADIENT_TOLERANCE = 1e-5


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
    options = {
        "maxiter": chunks.sizes.head_iterations,
        "gtol": GRADIENT_TOLERANCE,
        "ftol": 1e-14,
        "maxcor": 20,
    }
    v = minimize(objective, first.ravel(), jac=True, method="L-BFGS-B", options=options).x
    if chunks.facts.n_rows * first.size <= chunks.sizes.exact_head_entries:
        v = polished(objective, v)
    return matrix(v)


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


def risk_sums(chunk: Chunk, loss: Loss, head: Head) -> Sums:
    """Σw·l, Σw and Σw·∇l."""
    value, weight, gradient = 0.0, 0.0, np.zeros_like(head.matrix)
    for rows in chunk.fitting_batches():
        losses, slopes = loss.value_and_gradient(head(chunk.phi[rows]), chunk.y[rows])
        w = np.ones(len(losses)) if chunk.w is None else chunk.w[rows]
        value += float(w @ losses)
        weight += float(w.sum())
        gradient += product(chunk.phi[rows].T, slopes if chunk.w is None else slopes * w[:, None])
    return Sums(value, weight, gradient)


def mean_curvature(chunks: Chunks, loss: Loss, head: Head) -> float:
    """How curved the loss is on average, along one direction: a scale, not a bound."""
    total, weight = chunks.total(curvature_sums, loss, head).values
    curvature = total / weight
    return curvature if 1e-6 < curvature < 1e6 else 1.0


def curvature_sums(chunk: Chunk, loss: Loss, head: Head) -> Sums:
    """Σ of the curvatures, weighted, and Σw."""
    total = weight = 0.0
    for rows in chunk.fitting_batches():
        raw = head(chunk.phi[rows])
        towards = np.full_like(raw, raw.shape[1] ** -0.5)
        towards[:, ::2] *= -1.0
        curvatures = loss.slope_and_curvature(raw, chunk.y[rows], towards)[1]
        w = chunk.weights(rows)
        total += float(curvatures.sum() if w is None else w @ curvatures)
        weight += len(raw) if w is None else float(w.sum())
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
