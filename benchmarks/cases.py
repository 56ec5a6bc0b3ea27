"""The fits that are timed: their shapes, data and models."""

from dataclasses import dataclass

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from rfrboost import RFRBoostClassifier, RFRBoostRegressor

# Features of Φ and of x in each layer.
N_FEATURES = (512, 512)
# The penalty of head and steps: large enough that single precision is used.
L2 = 1e-3


@dataclass(frozen=True)
class Case:
    """One fit: its name, shape and model, and the largest acceptable ratio to its floor (limit)."""

    name: str
    n: int
    columns: int
    classes: int  # 0 for regression
    n_layers: int
    limit: float
    strategy: str = "gradient"
    repeats: int = 5

    def data(self) -> tuple[NDArray, NDArray]:
        """X (n, columns) and y: a smooth function of a few inputs with noise, or classes."""
        rng = default_rng(0)
        X = rng.standard_normal((self.n, self.columns))
        if not self.classes:
            y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(self.n)
            return X, y
        hidden = np.tanh(X @ rng.standard_normal((self.columns, 30)))
        scores = hidden @ rng.standard_normal((30, self.classes))
        return X, np.argmax(scores + rng.standard_normal(scores.shape), axis=1)

    def model(self) -> RFRBoostRegressor | RFRBoostClassifier:
        """The unfitted model."""
        shared = {
            "n_layers": self.n_layers,
            "n_features": N_FEATURES,
            "l2_head": L2,
            "l2_step": L2,
            "learning_rate": 1.0,
            "random_state": 0,
        }
        if self.classes:
            return RFRBoostClassifier(**shared)
        return RFRBoostRegressor(strategy=self.strategy, **shared)


CASES = [
    Case("gradient, 4,000×8, T=7", 4000, 8, 0, 7, 1.3),
    Case("greedy dense, 4,000×8, T=7", 4000, 8, 0, 7, 1.3, strategy="greedy"),
    Case("3 classes, 4,000×50, T=5", 4000, 50, 3, 5, 1.4),
    Case("10 classes, 4,000×50, T=5", 4000, 50, 10, 5, 1.4),
    Case("gradient, 100,000×50, T=6", 100_000, 50, 0, 6, 1.25, repeats=2),
]
