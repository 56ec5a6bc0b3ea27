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

from rfrboost._model.features import DenseFeatures
from rfrboost._model.samplers import Sampler
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import product, stretched
from rfrboost._typing import Array

# Gradients that are averaged, one a row and output. With fewer, two inputs of thirty that matter
# together are not found on every seed.
METRIC_GRADIENTS = 1024


# Rows at least, however many outputs: gradients at one row are much alike.
FEWEST_ROWS = 256


# What every direction keeps, in units of the average one: a direction that has not been tried is
# not known to be useless.
FLOOR = 0.1


# Up to this many columns the metric is a full matrix; beyond, a stretch of every column.
DENSE_COLUMNS = 512


# Gradients that differ by less than this share of their size differ by rounding.
CONSTANT = 1e-9


def metric_rows(n_outputs: int) -> int:
    """How many rows' gradients make a metric."""
    return max(METRIC_GRADIENTS // n_outputs, FEWEST_ROWS)


def learned_metric(gradients: Array) -> Array:
    """L = M^½ for the model's gradients (n, D, d), scaled so that an average direction counts 1.

    M is the covariance of the gradients, not their second moment: what is constant is linear in x,
    which the head fits without features. Half of what lies off the diagonal is dropped, because
    D² numbers are learned from few rows.
    """
    D = gradients.shape[1]
    if D > DENSE_COLUMNS:
        return column_metric(gradients)
    steep = (gradients - gradients.mean(axis=0)).transpose(0, 2, 1).reshape(-1, D)
    largest = np.abs(steep).max()
    if largest <= CONSTANT * np.abs(gradients).max():
        return np.eye(D)
    M = product((steep / largest).T, steep / largest)
    M *= D / np.trace(M)
    M = (M + np.diag(np.diag(M))) / 2 + FLOOR * np.eye(D)
    values, vectors = eigh(M)
    return product(vectors * np.sqrt(np.maximum(values, FLOOR)), vectors.T)


def column_metric(gradients: Array) -> Array:
    """The diagonal of L alone."""
    D = gradients.shape[1]
    steep = np.square(gradients - gradients.mean(axis=0)).sum(axis=(0, 2))
    if np.sqrt(steep.max() / len(gradients)) <= CONSTANT * np.abs(gradients).max():
        return np.ones(D)
    return np.sqrt(steep * (D / steep.sum()) + FLOOR)


@dataclass(frozen=True)
class InMetric:
    """A sampler that sees rows z·L, and whose features are then those of z itself."""

    sampler: Sampler
    L: Array

    def n_rows(self, n_features: int) -> int:
        return self.sampler.n_rows(n_features)

    def sample(self, Z: Array, Y: Array, n_features: int, rng: Generator) -> DenseFeatures:
        # A map without weights has no gradients either, and is refused before there is a metric.
        features: Any = self.sampler.sample(stretched(Z, self.L), Y, n_features, rng)
        directions = stretched(features.weights[:-1].T, self.L.T).T
        return DenseFeatures(
            frozen(np.vstack([directions, features.weights[-1:]])), features.activation
        )
