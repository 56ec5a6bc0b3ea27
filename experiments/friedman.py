"""A regression problem whose Bayes risk is known: Friedman's first function and bounded noise.

With bounded labels the squared error is Lipschitz and smooth where it is used, as the regret
bound asks of the loss.
"""

import numpy as np
from numpy.typing import NDArray

N_INPUTS = 5
NOISE_STD = 0.5
# The least mean squared error of any predictor.
BAYES_RISK = NOISE_STD**2
# Mean and about the standard deviation of the function, so that labels are of size 1.
CENTRE, SPREAD = 14.4, 5.0


def regression_function(x: NDArray) -> NDArray:
    """The best prediction for rows of the cube [−1, 1]⁵: nothing else enters the label."""
    u = (x + 1) / 2
    wave = 10 * np.sin(np.pi * u[:, 0] * u[:, 1])
    bowl = 20 * (u[:, 2] - 0.5) ** 2
    return (wave + bowl + 10 * u[:, 3] + 5 * u[:, 4] - CENTRE) / SPREAD


def sample(n_rows: int, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Rows uniform on the cube, and labels with uniform noise."""
    x = rng.uniform(-1, 1, (n_rows, N_INPUTS))
    noise = rng.uniform(-1, 1, n_rows) * NOISE_STD * np.sqrt(3)
    return x, regression_function(x) + noise


def excess_risk(prediction: NDArray, x: NDArray) -> float:
    """How much the risk is above the Bayes risk: the mean squared distance to the best."""
    return float(np.mean((prediction - regression_function(x)) ** 2))
