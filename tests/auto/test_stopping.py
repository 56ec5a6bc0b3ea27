"""Early stopping: which layers count as improvements, and when a fit gives up."""

import numpy as np

from rfrboost._auto.members import FEWEST_LAYERS, IMPROVEMENT, PATIENCE, Stopping


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
