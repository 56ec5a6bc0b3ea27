"""Predictions in single precision: only where rounding cannot be seen in them."""

import numpy as np
import pytest

from rfrboost._model.bumps import Bumps, measured, two_valued
from rfrboost._model.features import DenseFeatures
from rfrboost._model.network import Head, Layer, LayerFeatures, LowRankStep, Network

# What rounding may change, in units of the targets.
CLOSE = 5e-6
P, D = 200, 3


def network(features, coefficients):
    """One layer of these features, and a head that takes what it says."""
    step = LowRankStep(coefficients.reshape(-1, 1), np.zeros(1), np.eye(D, 1))
    head = Head(np.vstack([np.eye(D, 1), np.zeros((1, 1))]))
    return Network(np.zeros(D), None, (Layer(LayerFeatures(None, features), step, None),), (head,))


def in_double(net):
    """The same network, which predicts in double precision only."""
    double = np.dtype(float)
    same = Network(net.mean, net.initial, net.layers, net.heads)
    same.__dict__["precisions"] = ((double, double),)
    return same


@pytest.mark.parametrize("steepness", [0.3, 30.0, 3e3, 3e5])
@pytest.mark.parametrize("size", [0.01, 0.3, 3.0])
def test_steep_neurons(steepness, size):
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(D, P))
    directions *= steepness / np.linalg.norm(directions, axis=0)
    places = rng.normal(size=(P, D))
    weights = np.vstack([directions, -np.einsum("dp,pd->p", directions, places)])
    net = network(DenseFeatures(weights.astype(np.float32), "tanh"), size * rng.normal(size=P))
    # Rows where a neuron is halfway, or all would be saturated.
    X = places + rng.normal(size=(P, D)) / steepness
    np.testing.assert_allclose(net.raw(X), in_double(net).raw(X), atol=CLOSE)


@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("size", [0.01, 0.3, 3.0])
def test_bumps_of_rows_close_to_their_centres(mix, size):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(P, D))
    distances = measured(centres[:100], centres[100:], np.eye(D), two_valued(centres))
    net = network(Bumps(centres, distances, 1.0, mix), size * rng.normal(size=P))
    X = centres + 1e-3 * rng.normal(size=(P, D))
    np.testing.assert_allclose(net.raw(X), in_double(net).raw(X), atol=CLOSE)


def test_gentle_features_stay_in_single_precision():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(D + 1, P)).astype(np.float32)
    net = network(DenseFeatures(weights, "tanh"), 0.01 * rng.normal(size=P))
    assert net.precisions == ((np.dtype(np.float32), np.dtype(np.float32)),)
