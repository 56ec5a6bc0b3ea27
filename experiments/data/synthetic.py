"""Two synthetic problems: concentric rings (classification) and Friedman's function (regression).

The rings are the paper's point cloud separation task. Friedman's first function with bounded
noise has a known Bayes risk; with bounded labels the squared error is Lipschitz and smooth where
it is used, as the paper's regret bound assumes.
"""

import numpy as np
from numpy.typing import NDArray

from experiments.data.protocols import Fold

N_RINGS = 9
N_CLASSES = 3
N_POINTS = 10_000
# Width of the uniform noise in each coordinate; rings are 1 apart, so they do not overlap.
RING_NOISE = 0.4

N_INPUTS = 5
NOISE_STD = 0.5
# The least mean squared error that any predictor can have.
BAYES_RISK = NOISE_STD**2
# Mean and approximate standard deviation of Friedman's function, so that labels have size 1.
CENTRE, SPREAD = 14.4, 5.0


def concentric_rings(seed: int) -> tuple[NDArray, NDArray]:
    """Points (9,999, 2) and classes (9,999) in random order.

    Ring r has radius r (1 to 9) and class (r − 1) mod 3. All rings have the same number of
    points, at evenly spaced angles, with uniform noise on [0, 0.4) in each coordinate. The
    points are divided by the largest coordinate.
    """
    rng = np.random.default_rng(seed)
    per_ring = N_POINTS // N_RINGS
    radius = np.repeat(np.arange(1, N_RINGS + 1), per_ring)
    angle = np.tile(np.linspace(0, 2 * np.pi, per_ring), N_RINGS)
    points = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    points += RING_NOISE * rng.random(points.shape)
    order = rng.permutation(len(points))
    return points[order] / points.max(), (radius[order] - 1) % N_CLASSES


def rings_fold(seed: int) -> Fold:
    """The rings of one run: the first half for training, the second half for testing."""
    X, y = concentric_rings(seed)
    half = len(X) // 2
    return Fold(X[:half], y[:half], X[half:], y[half:])


def regression_function(x: NDArray) -> NDArray:
    """Friedman's first function, scaled, on rows of the cube [−1, 1]⁵: E[y | x]."""
    u = (x + 1) / 2
    wave = 10 * np.sin(np.pi * u[:, 0] * u[:, 1])
    bowl = 20 * (u[:, 2] - 0.5) ** 2
    return (wave + bowl + 10 * u[:, 3] + 5 * u[:, 4] - CENTRE) / SPREAD


def sample(n_rows: int, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Rows uniform on the cube, and labels with uniform noise of standard deviation 0.5."""
    x = rng.uniform(-1, 1, (n_rows, N_INPUTS))
    noise = rng.uniform(-1, 1, n_rows) * NOISE_STD * np.sqrt(3)
    return x, regression_function(x) + noise


def excess_risk(prediction: NDArray, x: NDArray) -> float:
    """Risk minus Bayes risk: the mean squared distance of the prediction to E[y | x]."""
    return float(np.mean((prediction - regression_function(x)) ** 2))
