"""How a layer's linear map A_t is fitted: Step 1 of Algorithms 1 and 2.

:class:`GradientStep` is that of Algorithm 2, for any convex loss; :class:`GreedyStep` that of
Algorithm 1, for squared error only, with a dense, diagonal or scalar A_t. Both are computed from
the moments of (f_t, r), where r (n, d) is the negative gradient of the loss with respect to the raw
prediction; only a line search goes over the rows again.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rfrboost._model.losses import Loss
from rfrboost._model.network import DiagonalStep, Head, LayerFeatures, LowRankStep
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import product
from rfrboost._numerics.least_squares import Moments, ridge
from rfrboost._numerics.precision import gram_dtype
from rfrboost._paper.line_search import minimize_convex
from rfrboost._paper.sandwich import sandwich_dense, sandwich_diagonal, sandwich_scalar
from rfrboost._rows.chunks import Chunk, Chunks, Sums, weights_of
from rfrboost._typing import Array

# ε, the penalty εα_t² of the line search on the paper's α_t: large enough to keep α_t finite where
# a step separates the classes, small enough to change little elsewhere.
SEARCH_PENALTY = 1e-5


@dataclass(frozen=True)
class FittedStep:
    """A_t (times α_t), α_t itself, and the norm of the functional gradient.

    ``known`` says that ``chunk.outputs`` holds the step's outputs, computed for the line search.
    """

    step: LowRankStep | DiagonalStep
    alpha: float
    gradient_norm: float
    known: bool = False


class StepRule(Protocol):
    """A way to fit A_t."""

    @property
    def added(self) -> bool:
        """Whether features of Φ and of x are summed to width D instead of put side by side."""

    def dtype(self, features: LayerFeatures, head: Head) -> type[np.floating]:
        """The precision in which this layer's features and their Gram matrix are safe."""

    def fit(self, chunks: Chunks, features: LayerFeatures, head: Head, loss: Loss) -> FittedStep:
        """A_t, given the features and the head of the layer before."""


def residual_moments(chunk: Chunk, features: LayerFeatures, head: Head, loss: Loss) -> Moments:
    """Moments of (f_t, r), where r is the negative gradient with respect to the raw prediction."""
    total = Moments(features.width, head.matrix.shape[1])
    for rows, w in chunk.fitting_batches():
        F = chunk.features(rows, features)
        total.add(F, -loss.gradient(head(chunk.phi[rows]), chunk.y[rows]), w)
    return total


def functional_gradient_norm(moments: Moments, W: Array) -> float:
    """‖W∇l‖ in L₂(μ̂), from Σw·rrᵀ."""
    # In units of a power of two near the largest entry: squares of W itself may overflow.
    exponent = int(np.frexp(np.abs(W).max(initial=0.0))[1])
    V = np.ldexp(W, -exponent)
    norm = np.sqrt(max(np.sum((V.T @ V) * moments.rr), 0.0) / moments.weight)
    return float(np.ldexp(norm, exponent))


@dataclass(frozen=True)
class GradientStep:
    """Algorithm 2: regress the negative functional gradient on f_t, then search along the fit.

    The functional gradient G = RWᵀ has rank at most d and ridge regression is linear in its
    target, so R (d columns) is regressed on f_t and A_t = W Cᵀ/‖W‖². The factor 1/‖W‖² makes the
    raw prediction move by about the residual, whatever the size of W. Like the √n/‖G‖ of Theorem
    theoremConstrainedLeastSquaresL2Dmu it does not change the result, because the line search
    chooses the length anyway. The step length reported is the paper's α_t, for the gradient
    normalised as in the theorem.
    """

    l2: float
    added = False

    def dtype(self, features: LayerFeatures, head: Head) -> type[np.floating]:
        return gram_dtype(self.l2, features.width, features.bound)

    def fit(self, chunks: Chunks, features: LayerFeatures, head: Head, loss: Loss) -> FittedStep:
        moments = chunks.total(residual_moments, features, head, loss)
        norm = functional_gradient_norm(moments, head.W)
        C, c = ridge(moments, self.l2, features.dtype == np.float32)
        size = float(np.linalg.norm(head.W)) or 1.0
        W = head.W / size
        step = LowRankStep(frozen(C.astype(features.dtype)), frozen(c), W / size)
        to_paper = norm / size / size
        if loss.quadratic:
            alpha = self._exact_alpha(moments, C, W)
            return FittedStep(step.scaled(alpha), alpha * to_paper, norm)
        chunks.set("outputs", step_outputs, features, step)
        chunks.set("moves", step_moves, W.T @ W)
        chunks.set("raw", raw_predictions, head)
        alpha = self._searched_alpha(chunks, loss, to_paper)
        return FittedStep(step.scaled(alpha), alpha * to_paper, norm, chunks.remembers)

    def _exact_alpha(self, moments: Moments, C: Array, W: Array) -> float:
        """α = ⟨R, F̂⟩ / ‖F̂‖² for the fitted move F̂ = (FC + c)WᵀW, from central moments alone.

        The scalar sandwich at λ = 0; CᵀFᵀFC follows from the normal equations of C.
        """
        n = moments.weight
        M = W.T @ W
        of_mean = np.outer(moments.r, moments.r) / n
        with_residual = moments.fr.T @ C + of_mean
        with_itself = C.T @ moments.fr - n * self.l2 * (C.T @ C) + of_mean
        size = float(np.sum((M @ M) * with_itself))
        return float(np.sum(M * with_residual)) / size if size > 0 else 0.0

    def _searched_alpha(self, chunks: Chunks, loss: Loss, to_paper: float) -> float:
        """α = argmin (1/n) Σ w·l(raw + α(FC + c)WᵀW, y) + εα_t², by safeguarded Newton.

        ``to_paper`` is the ratio of the paper's α_t to α.
        """
        weight = chunks.total(fitting_weight).values[0]
        penalty = 2 * SEARCH_PENALTY * to_paper**2 * weight

        def derivatives(alpha: float) -> tuple[float, float]:
            slope, curvature = chunks.total(slope_sums, alpha, penalty, loss).values[0]
            return float(slope), float(curvature)

        return minimize_convex(derivatives)


def step_outputs(chunk: Chunk, features: LayerFeatures, step: LowRankStep) -> Array:
    """FC + c on every row."""
    outputs = np.empty((chunk.size, step.C.shape[1]), order="F")
    for rows, _ in chunk.batches():
        outputs[rows] = step.outputs(chunk.features(rows, features))
    return outputs


def step_moves(chunk: Chunk, M: Array) -> Array:
    """How every row's raw prediction moves along the step, M being WᵀW."""
    return product(chunk.outputs, M)


def raw_predictions(chunk: Chunk, head: Head) -> Array:
    """Every row's raw prediction Wᵀφ + b."""
    raw = np.empty((chunk.size, len(head.b)), order="F")
    for rows, _ in chunk.batches():
        raw[rows] = head(chunk.phi[rows])
    return raw


def fitting_weight(chunk: Chunk) -> Sums:
    """Σw over the rows that this layer is fitted on."""
    w = weights_of(chunk)
    return Sums(sum(float(w[rows].sum()) for rows, _ in chunk.fitting_batches()))


def slope_sums(chunk: Chunk, alpha: float, penalty: float, loss: Loss) -> Sums:
    """Slope and curvature of the loss along the step; the first chunk adds those of the penalty."""
    total = np.array([alpha, 1.0]) * (penalty if chunk.first == 0 else 0.0)
    for rows, w in chunk.fitting_batches():
        move = chunk.moves[rows]
        pair = loss.slope_and_curvature(chunk.raw[rows] + alpha * move, chunk.y[rows], move)
        total += [p.sum() if w is None else w @ p for p in pair]
    return Sums(total)


@dataclass(frozen=True)
class GreedyStep:
    """Algorithm 1: A_t minimises the training objective itself, a sandwiched least squares.

    ``matrix`` is "dense", "diagonal" or "scalar".
    """

    l2: float
    matrix: str

    @property
    def added(self) -> bool:
        return self.matrix != "dense"

    def dtype(self, features: LayerFeatures, head: Head) -> type[np.floating]:
        if self.added:
            return np.float64
        # In units of FᵀF the penalty is λ/s², s the head's largest singular value.
        largest = max(float(np.linalg.norm(head.W, 2)), 1e-100)
        l2 = min(self.l2, 1e100) / largest / largest
        return gram_dtype(l2, features.width, features.bound)

    def fit(self, chunks: Chunks, features: LayerFeatures, head: Head, loss: Loss) -> FittedStep:
        moments = chunks.total(residual_moments, features, head, loss)
        norm = functional_gradient_norm(moments, head.W)
        if self.matrix == "dense":
            single = features.dtype == np.float32
            C, U = sandwich_dense(moments, head.W, self.l2, single)
            c = frozen(np.zeros(C.shape[1]))
            step = LowRankStep(frozen(C.astype(features.dtype)), c, frozen(U))
            return FittedStep(step, 1.0, norm)
        if self.matrix == "diagonal":
            return FittedStep(DiagonalStep(sandwich_diagonal(moments, head.W, self.l2)), 1.0, norm)
        a = sandwich_scalar(moments, head.W, self.l2)
        return FittedStep(DiagonalStep(np.full(features.width, a)), a, norm)
