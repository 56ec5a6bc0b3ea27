"""Sparse random features: neurons that see a few columns each, as splits of a tree do."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from rfrboost._activations import ACTIVATIONS
from rfrboost._features import DenseFeatures
from rfrboost._typing import Array, frozen

# A neuron sees one, two or three columns.
MOST_COLUMNS = 3
# How much of the choice of columns follows their spread; the rest is even.
BY_SPREAD = 0.75
# Rows that tell how far columns spread.
SPREAD_ROWS = 2000
# Pairs of rows that a neuron is chosen from.
CANDIDATES = 16
# Pairs closer than this in a neuron's own columns, in units of the mean distance, are equal there.
EQUAL = 1e-6


@dataclass(frozen=True)
class SparseSWIM:
    """SWIM neurons of few columns, drawn in proportion to how far the column spreads.

    Each neuron is placed between two rows that differ in its columns, drawn in proportion to
    ‖Δy‖ / ‖Δz‖ among a few pairs. ``scale`` is c.
    ``axis_aligned`` says that a metric may stretch columns but not turn them.
    """

    scale: float
    activation: str
    axis_aligned = True

    def n_rows(self, n_features: int) -> int:
        return 2 * CANDIDATES * n_features

    def sample(self, Z: Array, Y: Array, n_features: int, rng: Generator) -> DenseFeatures:
        seen = chosen_columns(Z[:SPREAD_ROWS].std(axis=0), n_features, rng)
        half = n_features * CANDIDATES
        first, second = (part.reshape(n_features, CANDIDATES, -1) for part in (Z[:half], Z[half:]))
        delta = (second - first) * seen[:, None, :]
        distance = np.sqrt(np.einsum("ijk,ijk->ij", delta, delta))
        change = (Y[half:] - Y[:half]).reshape(n_features, CANDIDATES, -1)
        steepness = np.sqrt(np.einsum("ijk,ijk->ij", change, change))
        pair = chosen_pairs(steepness, distance, rng)
        own = np.arange(n_features)
        return self._neurons(first[own, pair], delta[own, pair], distance[own, pair])

    def _neurons(self, first: Array, delta: Array, distance: Array) -> DenseFeatures:
        """Equation (eqSWIMWeights) in a neuron's own columns; one without a pair is constant."""
        low, high = (self.scale * c for c in ACTIVATIONS[self.activation].swim)
        apart = np.where(distance > 0, distance, np.inf)[:, None]
        directions = (high - low) * (delta / apart) / apart
        offsets = low - np.einsum("ij,ij->i", directions, first)
        return DenseFeatures(frozen(np.vstack([directions.T, offsets])), self.activation)


def chosen_columns(spread: Array, n_features: int, rng: Generator) -> Array:
    """Which columns each neuron sees, as (n_features, D) of 0 and 1: a draw without replacement."""
    D = len(spread)
    squares = np.square(spread / (spread.max() or 1.0))
    share = BY_SPREAD * squares / (squares.sum() or 1.0) + (1 - BY_SPREAD) / D
    # The largest of log-shares with Gumbel noise are such a draw.
    keys = np.log(share) + rng.gumbel(size=(n_features, D))
    count = np.minimum(rng.integers(1, MOST_COLUMNS + 1, size=n_features), D)
    ranked = -np.sort(-keys, axis=1)
    return (keys >= ranked[np.arange(n_features), count - 1][:, None]).astype(float)


def chosen_pairs(steepness: Array, distance: Array, rng: Generator) -> Array:
    """For each neuron one of its pairs, in proportion to steepness; any if all are flat."""
    apart = distance > EQUAL * (distance.mean() or 1.0)
    density = np.where(apart, steepness / np.where(apart, distance, 1.0), 0.0)
    flat = ~density.any(axis=1)
    density[flat] = apart[flat]
    cumulative = np.cumsum(density, axis=1)
    drawn = (cumulative <= rng.random((len(density), 1)) * cumulative[:, -1:]).sum(axis=1)
    return np.minimum(drawn, density.shape[1] - 1)
