"""The line search on convex functions whose minimisers are known."""

import numpy as np
import pytest

from rfrboost._paper.line_search import FARTHEST, minimize_convex, newton_step


def quadratic(minimiser, curvature):
    return lambda a: (curvature * (a - minimiser), curvature)


@pytest.mark.parametrize("curvature", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("minimiser", [1e-8, 0.7, 1e8])
def test_a_quadratic_takes_one_newton_step(minimiser, curvature):
    function = quadratic(minimiser, curvature)
    assert minimize_convex(function) == pytest.approx(minimiser, rel=1e-14)
    assert newton_step(function, np.inf) == pytest.approx(minimiser, rel=1e-14)


def test_a_slope_that_rises_from_the_start_means_no_step():
    assert minimize_convex(quadratic(-1.0, 1.0)) == 0.0
    assert newton_step(quadratic(-1.0, 1.0), 2.0) == 0.0


def test_newton_is_safeguarded_where_curvature_misleads():
    """The slope tanh(a − 10): pure Newton steps from 0 would overshoot to 10⁸."""
    evaluations = []

    def function(a):
        evaluations.append(a)
        return np.tanh(a - 10), 1 - np.tanh(a - 10) ** 2 + 1e-3

    assert minimize_convex(function) == pytest.approx(10, rel=1e-12)
    assert len(evaluations) <= 32


def test_a_slope_that_never_turns_is_followed_up_to_a_limit():
    assert minimize_convex(lambda a: (-1.0, 0.0)) == FARTHEST


def test_a_newton_step_is_cut_to_the_longest():
    assert newton_step(quadratic(5.0, 1.0), 2.0) == 2.0
    assert newton_step(lambda a: (-1.0, 0.0), 2.0) == 0.0
