"""Synthetic problems: concentric rings (classification), Friedman's function and a mixed table.

The rings are the paper's point cloud separation task. Friedman's first function with bounded
noise has a known Bayes risk; with bounded labels the squared error is Lipschitz and smooth where
it is used, as the paper's regret bound assumes.
"""

import numpy as np
import pandas as pd
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


N_MIXED = 20
# Rows of the mixed table that are made at a time, each block by a generator of its own.
MIXED_BLOCK = 1_000_000
MIXED_NOISE = 0.5


def mixed_function(X: NDArray) -> NDArray:
    """A target with smooth waves, products, thresholds and a small board of rectangles, E[y | x].

    Ten of the 20 columns matter. Neither trees nor smooth features fit all of it easily.
    """
    waves = np.sin(2 * X[:, 0]) + np.cos(X[:, 1] + X[:, 2])
    products = 0.5 * X[:, 3] * X[:, 4] + 0.3 * X[:, 0] * X[:, 5]
    thresholds = (X[:, 6] > 0.3) - 0.8 * ((X[:, 7] > 0) & (X[:, 3] < 0.5))
    board = 0.7 * ((np.floor(2 * X[:, 8]) + np.floor(2 * X[:, 9])) % 2)
    return waves + products + thresholds + board


def mixed_block(number: int, n_rows: int, seed: int) -> pd.DataFrame:
    """Rows of the mixed table in single precision: normal columns x0 to x19 and ``target``."""
    rng = np.random.default_rng([seed, number])
    X = rng.standard_normal((n_rows, N_MIXED), dtype=np.float32)
    # Neighbouring columns are correlated, so that columns that do not matter carry information.
    X[:, 1:] = 0.9 * X[:, 1:] + 0.435 * X[:, :-1]
    noise = MIXED_NOISE * rng.standard_normal(n_rows, dtype=np.float32)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(N_MIXED)])
    return frame.assign(target=(mixed_function(X) + noise).astype(np.float32))


def mixed_table(n_rows: int, seed: int) -> pd.DataFrame:
    """The first ``n_rows`` rows of the mixed table."""
    blocks = [
        mixed_block(number, min(MIXED_BLOCK, n_rows - begin), seed)
        for number, begin in enumerate(range(0, n_rows, MIXED_BLOCK))
    ]
    return pd.concat(blocks, ignore_index=True)


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
