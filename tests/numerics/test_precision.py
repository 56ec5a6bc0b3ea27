"""Single precision is used in predictions only where its rounding errors do not matter."""

import numpy as np
import pytest

from rfrboost._model.bumps import Bumps, measured, two_valued
from rfrboost._model.features import DenseFeatures
from rfrboost._model.network import Head, Layer, LayerFeatures, LowRankStep, Network

# The largest change that rounding may cause, in units of the targets.
CLOSE = 5e-6
P, D = 200, 3


def network(features, coefficients):
    """A network that predicts features times coefficients."""
    step = LowRankStep(coefficients.reshape(-1, 1), np.zeros(1), np.eye(D, 1))
    head = Head(np.vstack([np.eye(D, 1), np.zeros((1, 1))]))
    return Network(np.zeros(D), None, (Layer(LayerFeatures(None, features), step, None),), (head,))


class InDouble:
    """A feature map computed in double precision."""

    dtype = np.dtype(float)

    def __init__(self, features):
        self.features = features
        self.width = features.width
        self.bound = features.bound

    def astype(self, dtype, largest_input):
        return self

    def __call__(self, rows, out):
        assert out.dtype == self.dtype
        self.features(rows, out)


@pytest.mark.parametrize("steepness", [0.3, 30.0, 3e3, 3e5])
@pytest.mark.parametrize("size", [0.01, 0.3, 3.0])
def test_steep_neurons(steepness, size):
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(D, P))
    directions *= steepness / np.linalg.norm(directions, axis=0)
    places = rng.normal(size=(P, D))
    weights = np.vstack([directions, -np.einsum("dp,pd->p", directions, places)])
    features = DenseFeatures(weights.astype(np.float32), "tanh")
    coefficients = size * rng.normal(size=P)
    # Rows where a neuron is halfway, or all would be saturated.
    X = places + rng.normal(size=(P, D)) / steepness
    expected = network(InDouble(features), coefficients).raw(X)
    np.testing.assert_allclose(network(features, coefficients).raw(X), expected, atol=CLOSE)


@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("size", [0.01, 0.3, 3.0])
def test_bumps_of_rows_close_to_their_centres(mix, size):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(P, D))
    distances = measured(centres[:100], centres[100:], np.eye(D), two_valued(centres))
    features = Bumps(centres, distances, 1.0, mix)
    coefficients = size * rng.normal(size=P)
    X = centres + 1e-3 * rng.normal(size=(P, D))
    expected = network(InDouble(features), coefficients).raw(X)
    np.testing.assert_allclose(network(features, coefficients).raw(X), expected, atol=CLOSE)


def test_gentle_features_stay_in_single_precision():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(D + 1, P)).astype(np.float32)
    net = network(DenseFeatures(weights, "tanh"), 0.0003 * rng.normal(size=P))
    assert net.precisions == ((np.dtype(np.float32), np.dtype(np.float32)),)
