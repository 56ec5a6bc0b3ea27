"""The concentric rings of the point cloud separation task."""

import numpy as np
from numpy.typing import NDArray

from experiments.protocols import Fold

N_RINGS = 9
N_CLASSES = 3
N_POINTS = 10_000
NOISE = 0.4


def concentric_rings(seed: int) -> tuple[NDArray, NDArray]:
    """Points and classes in random order: rings of radius 1 to 9, whose classes take turns.

    The angles of a ring are evenly spaced, and every ring has as many points. The noise is
    uniform on [0, 0.4) in each coordinate, so neighbouring rings come close but stay apart.
    """
    rng = np.random.default_rng(seed)
    per_ring = N_POINTS // N_RINGS
    radius = np.repeat(np.arange(1, N_RINGS + 1), per_ring)
    angle = np.tile(np.linspace(0, 2 * np.pi, per_ring), N_RINGS)
    points = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    points += NOISE * rng.random(points.shape)
    order = rng.permutation(len(points))
    return points[order] / points.max(), (radius[order] - 1) % N_CLASSES


def rings_fold(seed: int) -> Fold:
    """One run's rings: the first half to fit on, the other half to score on."""
    X, y = concentric_rings(seed)
    half = len(X) // 2
    return Fold(X[:half], y[:half], X[half:], y[half:])
