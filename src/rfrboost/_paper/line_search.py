"""The amount of say α_t: the minimiser of a convex function of one variable."""

from collections.abc import Callable

# Relative size of slope or step at which the search is done, and the most evaluations it takes.
TOLERANCE = 1e-13


EVALUATIONS = 30


# How far beyond the first Newton step a slope that never turns (separable data) is followed.
FARTHEST = 64.0


def minimize_convex(slope_and_curvature: Callable[[float], tuple[float, float]]) -> float:
    """α ≥ 0 where the slope of a convex function vanishes, by safeguarded Newton steps.

    Newton's step is taken while it stays inside the bracket known to hold the minimiser;
    otherwise the bracket is halved, or doubled while it has no upper end.
    """
    first, curvature = slope_and_curvature(0.0)
    if not first < 0:
        return 0.0
    low, high = 0.0, float("inf")
    alpha = -first / curvature if curvature > 0 else 1.0
    farthest = FARTHEST * alpha
    for _ in range(EVALUATIONS):
        slope, curvature = slope_and_curvature(alpha)
        if abs(slope) <= TOLERANCE * -first or (slope < 0 and alpha >= farthest):
            break
        low, high = (alpha, high) if slope < 0 else (low, alpha)
        middle = 0.5 * (low + high) if high < float("inf") else min(2 * alpha, farthest)
        newton = alpha - slope / curvature if curvature > 0 else middle
        alpha, previous = newton if low < newton < min(high, farthest) else middle, alpha
        if abs(alpha - previous) <= TOLERANCE * alpha:
            break
    return alpha


def newton_step(
    slope_and_curvature: Callable[[float], tuple[float, float]], longest: float
) -> float:
    """One Newton step from 0, held to [0, longest].

    Near enough to the minimiser where the curvature is bounded and spread over all rows, as that of
    the log loss is; it costs one evaluation.
    """
    slope, curvature = slope_and_curvature(0.0)
    return min(max(-slope / curvature, 0.0), longest) if curvature > 0 else 0.0
