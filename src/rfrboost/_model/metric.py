"""A learned metric: distances count in the directions in which the model bends.

After some layers the model's input gradients show which directions matter. Their average outer
product M (AGOP; Radhakrishnan, Beaglehole, Pandit, Belkin 2024) measures distances for the next
layer: SWIM pairs are drawn, and neurons placed, among rows z·L with L = M^½
(:class:`~rfrboost._model.samplers.InMetric`). Inputs that do not matter, the known weakness of
random features, then lose their influence.

Gradients are (n, D, d); L is (D, D), or its diagonal (D,) for many columns. There is nothing to
learn from features without a derivative.
"""

import numpy as np
from scipy.linalg import eigh

from rfrboost._numerics.blas import product
from rfrboost._typing import Array

# Number of gradients that are averaged, one for each row and output. With fewer, two inputs of
# thirty that matter only together are not found on every seed.
METRIC_GRADIENTS = 1024

# The fewest rows, however many outputs there are: gradients of outputs at one row are much alike.
FEWEST_ROWS = 256

# Added to each direction of M, in units of the average direction: a direction that no layer has
# used yet is not known to be useless.
FLOOR = 0.1

# Up to this many columns the metric is a full matrix, beyond it a factor for each column: a full
# matrix costs D³ operations for each layer.
DENSE_COLUMNS = 512

# Gradients that vary by less than this share of their size are constant up to rounding.
CONSTANT = 1e-9


def metric_rows(n_outputs: int) -> int:
    """The number of rows whose gradients a metric is learned from."""
    return max(METRIC_GRADIENTS // n_outputs, FEWEST_ROWS)


def learned_metric(gradients: Array) -> Array:
    """L = M^½ for the model's gradients (n, D, d), scaled so that the mean eigenvalue of M is 1,
    before ``FLOOR`` is added.

    M is the covariance of the gradients, not their second moment: a constant gradient belongs to a
    model that is linear in x, which needs no features. Entries off the diagonal are halved, because
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
    """The diagonal (D,) of L, from the diagonal of M alone."""
    D = gradients.shape[1]
    steep = np.square(gradients - gradients.mean(axis=0)).sum(axis=(0, 2))
    if np.sqrt(steep.max() / len(gradients)) <= CONSTANT * np.abs(gradients).max():
        return np.ones(D)
    diagonal: Array = np.sqrt(steep * (D / steep.sum()) + FLOOR)
    return diagonal
