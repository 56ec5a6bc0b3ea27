"""Early stopping: which layers count as improvements, and when a family is given up."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import default_rng
from small_bags import RUN, Seen, table

from rfrboost._auto.layer import Settings
from rfrboost._auto.members import (
    BEHIND,
    FEWEST_LAYERS,
    IMPROVEMENT,
    PATIENCE,
    HeldOutCurve,
    Stopping,
    boost_members,
)
from rfrboost._auto.trees import fit_trees
from rfrboost._model.history import LayerRecord
from rfrboost._model.losses import SquaredError
from rfrboost._model.samplers import SWIM


def layers_until_stalled(losses):
    """The number of layers after which a fit with these held-out losses stops."""
    stopping = Stopping()
    for n_layers, loss in enumerate(losses):
        stopping.improves(loss, n_layers)
        if stopping.stalled(n_layers):
            return n_layers, stopping.best_layers
    return None, stopping.best_layers


def test_a_loss_that_keeps_falling_never_stops_a_fit():
    assert layers_until_stalled(0.9 ** np.arange(50)) == (None, 49)


def test_a_fit_stops_after_its_patience():
    falling = list(0.9 ** np.arange(11))
    assert layers_until_stalled([*falling, *[1.0] * 20]) == (10 + PATIENCE, 10)


def test_the_first_layers_are_fitted_whatever_the_loss():
    assert layers_until_stalled(np.arange(1.0, 30.0)) == (FEWEST_LAYERS, 0)


def test_a_gain_within_the_margin_is_no_improvement():
    for best in (10.0, -10.0):
        stopping = Stopping()
        assert stopping.improves(best, 0)
        assert not stopping.improves(best - 0.9 * IMPROVEMENT * 10, 1)
        assert stopping.best_layers == 0
        assert stopping.improves(best - 1.1 * IMPROVEMENT * 10, 2)
        assert stopping.best_layers == 2


def test_a_loss_that_is_not_a_number_never_improves():
    stopping = Stopping()
    assert not stopping.improves(np.nan, 0)
    assert stopping.improves(1.0, 1)
    assert not stopping.improves(np.nan, 2)


def test_a_score_decides_before_the_loss_and_the_loss_between_equal_scores():
    stopping = Stopping(1.0, best_score=0.5)
    assert not stopping.improves(0.1, 1, 0.4)
    assert stopping.improves(2.0, 2, 0.6)
    assert not stopping.improves(2.0, 3, 0.6)
    assert stopping.improves(1.9, 4, 0.6)
    assert stopping.best_layers == 4


def curve_of(losses, score=None):
    """A curve that has seen layers with these held-out losses."""
    bags = table()
    start = np.zeros((len(bags.y), len(bags.members), 1))
    curve = HeldOutCurve(bags, start, SquaredError(), score)
    curve.records = [LayerRecord(i + 1, loss, 1.0, 0.0, 0.0) for i, loss in enumerate(losses)]
    return curve


def test_a_loss_is_far_behind_if_its_present_speed_does_not_bring_it_near_the_rival():
    falling = [10.0 - layer for layer in range(FEWEST_LAYERS)]
    last = falling[-1]
    for left in (0, 2):
        reached = last - left
        near = reached / (1 + BEHIND)
        assert curve_of(falling).far_behind(near - 0.01, left)
        assert not curve_of(falling).far_behind(near + 0.01, left)
    assert not curve_of(falling).far_behind(np.inf, 2)


def test_a_loss_that_rises_is_not_taken_to_rise_on():
    rising = [1.0 + layer for layer in range(FEWEST_LAYERS)]
    assert not curve_of(rising).far_behind(rising[-1], 30)


def test_below_zero_a_loss_is_far_behind_by_its_distance():
    flat = [-8.0] * FEWEST_LAYERS
    assert not curve_of(flat).far_behind(-9.0, 10)
    assert curve_of(flat).far_behind(-20.0, 10)


def test_nothing_is_far_behind_in_the_first_layers_or_where_a_score_decides():
    assert not curve_of([10.0] * (FEWEST_LAYERS - 1)).far_behind(1.0, 10)
    assert not curve_of([10.0] * FEWEST_LAYERS, score=lambda raw: 0.0).far_behind(1.0, 10)
    assert curve_of([10.0] * FEWEST_LAYERS).far_behind(1.0, 10)


@pytest.mark.parametrize("family", ["trees", "neurons"])
def test_a_family_far_behind_another_ends_early(family):
    bags = table(n=300)
    start = np.zeros((len(bags.y), len(bags.members), 1))
    swim = SWIM(0.5, "tanh")
    settings = Settings(20, 0.1, 20, (1e-3,), swim, swim, learns_metric=False)
    counts = []
    for rival in (np.inf, 1e-9):
        seen = Seen()
        run = replace(RUN, watch=seen)
        if family == "trees":
            fit_trees(bags, start[0], SquaredError(), 20, default_rng(0), run, rival)
        else:
            boost_members(bags, start, SquaredError(), settings, default_rng(0), run, rival)
        counts.append(len(seen.records))
    assert FEWEST_LAYERS <= counts[1] < counts[0]
