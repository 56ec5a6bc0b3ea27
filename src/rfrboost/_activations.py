"""Activation functions σ of the random features, applied in place."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from rfrboost._typing import Array


@dataclass(frozen=True)
class Activation:
    """σ and what the numerics must know of it.

    ``bound`` is sup|σ|; a finite bound is what single precision needs (see
    :mod:`rfrboost._precision`). ``swim`` gives SWIM's two constants in units of the
    feature scale c: the pre-activation at x⁽¹⁾ and at x⁽²⁾. ``derivative`` is σ' of the
    pre-activation, which it may overwrite.
    """

    apply: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    bound: float
    swim: tuple[float, float]


def tanh_derivative(z: Array) -> Array:
    """1 − tanh², in place: fresh memory for every operation would take longer than the tanh."""
    np.tanh(z, out=z)
    np.multiply(z, z, out=z)
    return np.subtract(1.0, z, out=z)


# A saturating σ is centred between the two points; relu switches on at the first one.
ACTIVATIONS = {
    "identity": Activation(lambda z: z, np.ones_like, np.inf, (-1.0, 1.0)),
    "tanh": Activation(lambda z: np.tanh(z, out=z), tanh_derivative, 1.0, (-1.0, 1.0)),
    "relu": Activation(
        lambda z: np.maximum(z, 0, out=z), lambda z: (z > 0).astype(z.dtype), np.inf, (0.0, 2.0)
    ),
    "sigmoid": Activation(
        lambda z: expit(z, out=z), lambda z: expit(z) * expit(-z), 1.0, (-1.0, 1.0)
    ),
    "sin": Activation(lambda z: np.sin(z, out=z), np.cos, 1.0, (-1.0, 1.0)),
    "cos": Activation(lambda z: np.cos(z, out=z), lambda z: -np.sin(z), 1.0, (-1.0, 1.0)),
}

# What a user may choose; the identity is what a linear model's first layer is made of.
CHOICES = set(ACTIVATIONS) - {"identity"}
