"""Features drawn in a learned metric: distances count where, and as far as, the model bends.

After some layers the model's own input gradients say which directions matter. Their average outer
product (AGOP) M measures distances for the next layer: SWIM pairs are drawn, and neurons placed,
among rows z·M^½. Irrelevant inputs, the known weakness of random features, then fade.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.linalg import eigh

from rfrboost._blas import product
from rfrboost._features import DenseFeatures, Sampler
from rfrboost._typing import Array, frozen

# Rows whose gradients are averaged.
METRIC_ROWS = 256
# What every direction keeps, in units of the average one: a direction that has not been tried is
# not known to be useless.
FLOOR = 0.1
# Gradients that differ by less than this share of their size differ by rounding.
CONSTANT = 1e-9


def learned_metric(gradients: Array) -> Array:
    """L = M^½ for the model's gradients (n, D, d), scaled so that an average direction counts 1.

    M is the covariance of the gradients, not their second moment: what is constant is linear in x,
    which the head fits without features. Half of what lies off the diagonal is dropped, because
    D² numbers are learned from few rows.
    """
    D = gradients.shape[1]
    steep = (gradients - gradients.mean(axis=0)).transpose(0, 2, 1).reshape(-1, D)
    largest = np.abs(steep).max()
    if largest <= CONSTANT * np.abs(gradients).max():
        return np.eye(D)
    M = (steep / largest).T @ (steep / largest)
    M *= D / np.trace(M)
    M = (M + np.diag(np.diag(M))) / 2 + FLOOR * np.eye(D)
    values, vectors = eigh(M)
    return (vectors * np.sqrt(np.maximum(values, FLOOR))) @ vectors.T


@dataclass(frozen=True)
class InMetric:
    """A sampler that sees rows z·L, and whose features are then those of z itself."""

    sampler: Sampler
    L: Array

    def n_rows(self, n_features: int) -> int:
        return self.sampler.n_rows(n_features)

    def sample(self, Z: Array, Y: Array, n_features: int, rng: Generator) -> DenseFeatures:
        # A map without weights has no gradients either, and is refused before there is a metric.
        features: Any = self.sampler.sample(product(Z, self.L), Y, n_features, rng)
        directions = product(self.L, features.weights[:-1])
        return DenseFeatures(
            frozen(np.vstack([directions, features.weights[-1:]])), features.activation
        )
