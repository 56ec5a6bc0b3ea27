"""Problems with known answers, and the combinations of parts that share the same laws."""

import numpy as np
from numpy.random import default_rng

from rfrboost import RFNNClassifier, RFNNRegressor, RFRBoostClassifier, RFRBoostRegressor
from rfrboost._numerics.least_squares import Moments
from rfrboost._typing import Array

SMALL = {"n_layers": 3, "n_features": (12, 10), "l2_step": 1e-3, "random_state": 0}

#: every kind of regressor
REGRESSORS = {
    "gradient": RFRBoostRegressor(**SMALL),
    "gradient-gaussian": RFRBoostRegressor(**SMALL, features="gaussian"),
    "gradient-uniform": RFRBoostRegressor(**SMALL, features="uniform", activation="sigmoid"),
    "gradient-fourier": RFRBoostRegressor(**SMALL, features="fourier"),
    "gradient-relu": RFRBoostRegressor(**SMALL, activation="relu"),
    "gradient-normalize": RFRBoostRegressor(**SMALL, normalize=True),
    "gradient-agop": RFRBoostRegressor(**SMALL, metric="agop"),
    "gradient-schedule": RFRBoostRegressor(**SMALL, learning_rate=(1.0, 0.5)),
    "gradient-swim-start": RFRBoostRegressor(**SMALL, initial="swim", hidden_dim=9),
    "dense": RFRBoostRegressor(**SMALL, strategy="greedy"),
    "diagonal": RFRBoostRegressor(
        **SMALL, strategy="greedy", step_matrix="diagonal", initial="swim", hidden_dim=9
    ),
    "scalar": RFRBoostRegressor(
        **SMALL, strategy="greedy", step_matrix="scalar", initial="gaussian", hidden_dim=9
    ),
    "huber": RFRBoostRegressor(**SMALL, loss="huber"),
    "quantile": RFRBoostRegressor(**SMALL, loss="quantile", quantile=0.8),
    "rfnn": RFNNRegressor(20, random_state=0),
}

CLASSIFIERS = {
    "rfrboost": RFRBoostClassifier(**SMALL),
    "rfrboost-uniform": RFRBoostClassifier(**SMALL, features="uniform", normalize=True),
    "rfrboost-agop": RFRBoostClassifier(**SMALL, metric="agop"),
    "rfnn": RFNNClassifier(20, random_state=0),
}


def regression(n: int = 120, columns: int = 4, outputs: int = 0, seed: int = 0):
    """A smooth target with noise; ``outputs`` of 0 means y of shape (n,)."""
    rng = default_rng(seed)
    X = rng.standard_normal((n, columns))
    y = np.column_stack(
        [np.sin(2 * X[:, 0] + k) + X[:, 1] * X[:, -1] for k in range(max(outputs, 1))]
    )
    y = y + 0.1 * rng.standard_normal(y.shape)
    return X, y if outputs else y[:, 0]


def classification(n: int = 150, columns: int = 4, classes: int = 3, seed: int = 0):
    """Classes cut out of the regression target, named by strings."""
    X, y = regression(n, columns, seed=seed)
    cuts = np.quantile(y, np.arange(1, classes) / classes)
    return X, np.array([f"class {k}" for k in np.searchsorted(cuts, y)])


def least_squares_problem(n: int, p: int, D: int, d: int, seed: int = 0):
    """F, R, W and weights of a sandwiched least squares."""
    rng = default_rng(seed)
    F, R = rng.standard_normal((n, p)), rng.standard_normal((n, d))
    return F, R, rng.standard_normal((D, d)), rng.uniform(0.5, 2.0, n)


def moments_of(F: Array, R: Array, w: Array | None = None) -> Moments:
    moments = Moments(F.shape[1], R.shape[1])
    moments.add(F, R, w)
    return moments
