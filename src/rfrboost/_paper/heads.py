"""The linear head W_t, refitted to the whole representation Φ_t after every layer.

    W_t = argmin (1/n) Σ w·l(Wᵀφ + b, y) + λ‖W‖²_F ,     n = Σw ,

with an unpenalised intercept b, as one matrix (width + 1, d) whose last row is b. Squared error has
a closed form, ridge regression. Other losses are minimised by L-BFGS, which starts from the head of
the layer before. It searches in coordinates in which the Hessian is near a multiple of the identity
(:func:`convex_head`). In small problems Newton steps then find the last digits.
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
from rfrboost._numerics.least_squares import Moments, ridge
from rfrboost._rows.chunks import Chunk, Chunks, Sums, thinned_targets, weighted_sums
from rfrboost._typing import Array

# Largest entry of the gradient, in whitened coordinates, at which L-BFGS stops: the risk is then
# within about 1e-8 of its minimum.
GRADIENT_TOLERANCE = 1e-5
# The most Newton steps for a small problem. Each about doubles the number of correct digits.
NEWTON_STEPS = 3
# A second derivative up to this counts as zero. It is below the square of the smallest deviation
# that an input may have, 1e-120.
FLAT = 1e-150

# The penalised risk and its gradient, given the head's coordinates as one vector.
Objective = Callable[[Array], tuple[float, Array]]


def constant_head(chunks: Chunks, width: int, loss: Loss) -> Head:
    """W = 0 and the best constant b, from which the first head is searched."""
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
    """The head of the present Φ, with λ = ``l2``; a convex head is searched from ``start``.

    For squared error the paper's objective has no ½: ridge regression with penalty nλ.
    """
    moments = chunks.total(representation_moments)
    if loss.quadratic:
        return Head(frozen(np.vstack(ridge(moments, l2))))
    return Head(frozen(convex_head(chunks, moments, loss, l2, start)))


def representation_moments(chunk: Chunk) -> Moments:
    """Moments of (φ, y) over the rows that this layer is fitted on."""
    total = Moments(chunk.phi.shape[1] - 1, chunk.y.shape[1])
    for rows, w in chunk.fitting_batches():
        total.add(np.asfortranarray(chunk.phi[rows, :-1]), chunk.y[rows], w)
    return total


def convex_head(chunks: Chunks, moments: Moments, loss: Loss, l2: float, start: Head) -> Array:
    """The head for any convex loss, by L-BFGS from ``start``; ``moments`` are made central.

    With LLᵀ = h·cov(φ) + 2λI, an estimate of the Hessian (h the mean curvature of the loss),
    the search runs over V, where W = L⁻ᵀV, and over the intercept at the mean of φ.
    """
    moments.center()
    mean = moments.f / moments.weight
    h = mean_curvature(chunks, loss, start)
    L = whitener(moments.ff * (h / moments.weight), 2 * l2)
    inverse, _ = dtrtri(L, lower=1)
    root = np.sqrt(h)

    def matrix(v: Array) -> Array:
        """The head's matrix for coordinates v."""
        V = v.reshape(start.matrix.shape)
        M = np.empty_like(V)
        M[:-1] = product(inverse.T, V[:-1])
        M[-1] = V[-1] / root - mean @ M[:-1]
        if loss.shift_invariant:
            M[-1] -= M[-1].mean()
        return M

    def objective(v: Array) -> tuple[float, Array]:
        """The penalised risk and its gradient in v."""
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
    """Newton steps towards a gradient of zero, as long as they make it smaller.

    L-BFGS compares values of the risk, whose rounding errors hide the last digits of the minimiser.
    """
    gradient = objective(v)[1]
    # Where the loss is flat the step may not be finite; it is then not taken.
    with np.errstate(all="ignore"):
        for _ in range(NEWTON_STEPS):
            step = newton_direction(objective, v, gradient)
            after = objective(v + step)[1]
            if not np.abs(after).max() < np.abs(gradient).max():
                break
            v, gradient = v + step, after
    return v


def newton_direction(objective: Objective, v: Array, gradient: Array) -> Array:
    """About −H⁻¹g, by conjugate gradients; products with H are differences of gradients."""

    def hessian_times(direction: Array) -> Array:
        e = 1e-7 / max(float(np.linalg.norm(direction)), 1e-300)
        return (objective(v + e * direction)[1] - gradient) / e

    hessian = LinearOperator((v.size, v.size), matvec=hessian_times, dtype=float)
    step: Array = cg(hessian, -gradient, rtol=1e-5, maxiter=60)[0]
    return step


def risk_and_gradient(chunks: Chunks, loss: Loss, head: Head) -> tuple[float, Array]:
    """(1/n) Σ w·l and its gradient in the head's matrix."""
    value, weight, gradient = chunks.total(risk_sums, loss, head).values
    return value / weight, gradient / weight


def risk_sums(chunk: Chunk, loss: Loss, head: Head) -> Sums:
    """Σw·l, Σw and Σw·∇l."""
    value = weight = 0.0
    gradient = np.zeros_like(head.matrix)
    for rows, w in chunk.fitting_batches():
        losses, slopes = loss.value_and_gradient(head(chunk.phi[rows]), chunk.y[rows])
        weights = np.ones(len(losses)) if w is None else w
        value += float(weights @ losses)
        weight += float(weights.sum())
        gradient += product(chunk.phi[rows].T, slopes if w is None else slopes * w[:, None])
    return Sums(value, weight, gradient)


def mean_curvature(chunks: Chunks, loss: Loss, head: Head) -> float:
    """The mean second derivative of the loss along one direction of raw predictions.

    It estimates how large the Hessian is; 1 is returned if it is too small or too large to divide
    by.
    """
    total, weight = chunks.total(curvature_sums, loss, head).values
    curvature = total / weight
    return curvature if 1e-6 < curvature < 1e6 else 1.0


def curvature_sums(chunk: Chunk, loss: Loss, head: Head) -> Sums:
    """Σw·(second derivative) along the direction (−1, 1, −1, …)/√d, and Σw."""
    total = weight = 0.0
    for rows, w in chunk.fitting_batches():
        raw = head(chunk.phi[rows])
        towards = np.full_like(raw, raw.shape[1] ** -0.5)
        towards[:, ::2] *= -1.0
        curvatures = loss.slope_and_curvature(raw, chunk.y[rows], towards)[1]
        total += float(curvatures.sum() if w is None else w @ curvatures)
        weight += len(raw) if w is None else float(w.sum())
    return Sums(total, weight)


def whitener(hessian: Array, shift: float) -> Array:
    """L with LLᵀ ≈ hessian + shift·I, lower triangular.

    A small multiple of the diagonal is added so that the factor exists. For a coordinate that
    neither varies nor is penalised, L has a 1.
    """
    diagonal = np.diag(hessian) + shift
    floor = 1e-10 * diagonal + 1e-12 * diagonal.max(initial=0.0)
    curved = diagonal > FLAT
    A = hessian.astype(float, order="F")
    np.einsum("ii->i", A)[...] += shift + np.where(curved, floor, 1.0)
    L, failed = dpotrf(A, lower=1, clean=1)
    return L if not failed else np.diag(np.sqrt(np.where(curved, diagonal, 1.0)))
