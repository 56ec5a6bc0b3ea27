"""The step length α_t: the minimiser of a convex function of one variable.

:func:`minimize_convex` finds it to full precision; :func:`newton_step` comes near it with a single
evaluation. Both are given a function of α that returns the slope and the curvature there.
"""

from collections.abc import Callable

# The search ends when the slope is this small relative to that at 0, or α changes by this little
# relative to α: near the rounding error of sums over rows.
TOLERANCE = 1e-13
# The most evaluations, each a pass over the rows; the search then ends with the last α.
EVALUATIONS = 30
# The largest α, as a multiple of the first Newton step. It is reached only if the slope stays
# negative, as it does if classes are separable and the best α is infinite.
FARTHEST = 64.0


def minimize_convex(slope_and_curvature: Callable[[float], tuple[float, float]]) -> float:
    """α ≥ 0 where the slope of a convex function vanishes, by safeguarded Newton steps.

    Newton's step is taken while it stays inside the bracket known to hold the minimiser;
    otherwise the bracket is halved, or doubled while it has no upper end.
    """
    first, curvature = slope_and_curvature(0.0)
    if not first < 0:
        return 0.0
    low = 0.0
    high = float("inf")
    alpha = -first / curvature if curvature > 0 else 1.0
    farthest = FARTHEST * alpha
    for _ in range(EVALUATIONS):
        slope, curvature = slope_and_curvature(alpha)
        if abs(slope) <= TOLERANCE * -first or (slope < 0 and alpha >= farthest):
            break
        if slope < 0:
            low = alpha
        else:
            high = alpha
        middle = 0.5 * (low + high) if high < float("inf") else min(2 * alpha, farthest)
        newton = alpha - slope / curvature if curvature > 0 else middle
        previous = alpha
        alpha = newton if low < newton < min(high, farthest) else middle
        if abs(alpha - previous) <= TOLERANCE * alpha:
            break
    return alpha


def newton_step(
    slope_and_curvature: Callable[[float], tuple[float, float]], longest: float
) -> float:
    """One Newton step from 0, cut to [0, longest].

    It comes near enough to the minimiser where the curvature is bounded and spread over all rows,
    as that of the log loss is; use :func:`minimize_convex` elsewhere.
    """
    slope, curvature = slope_and_curvature(0.0)
    return min(max(-slope / curvature, 0.0), longest) if curvature > 0 else 0.0
