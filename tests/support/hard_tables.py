"""Tables that are hard to fit, every kind of estimator, and checks that a fitted model is sound."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.kernel_approximation import RBFSampler

from rfrboost import (
    FourierFeatures,
    GaussianFeatures,
    RFNNClassifier,
    RFNNRegressor,
    RFRBoostClassifier,
    RFRBoostRegressor,
    SWIMFeatures,
)

Array = NDArray[Any]


Data = tuple[Array, Array]


N = 16


SMALL: dict[str, Any] = {"n_layers": 2, "n_features": (8, 8), "random_state": 0}


TINY_RFNN: dict[str, Any] = {"n_features": 8, "random_state": 0}


def assert_finite(values: Array, shape: tuple[int, ...], what: str) -> None:
    assert values.shape == shape, f"{what} has shape {values.shape}, not {shape}"
    assert np.isfinite(values).all(), f"{what} is not finite: {values}"


def assert_sound_regressor(model: Any, X: Array, y: Array) -> None:
    """Predictions after every layer, the representation and the history must be finite numbers."""
    prediction = model.predict(X)
    assert_finite(prediction, y.shape, "predict")
    for stage in model.staged_predict(X):
        assert_finite(stage, y.shape, "staged_predict")
    # Members apart, stage by stage, and all together are summed up in another order. A model that
    # predicts zero may do so up to the rounding of the targets.
    largest = np.abs(prediction).max(initial=0.0)
    rounding = 1e-15 * np.abs(y).max(initial=0.0)
    np.testing.assert_allclose(stage, prediction, rtol=0, atol=3e-6 * largest + rounding)
    assert np.isfinite(model.transform(X)).all(), "transform is not finite"
    assert all(np.isfinite(v) for record in model.history_ for v in record.values())


def assert_sound_classifier(model: Any, X: Array, y: Array) -> None:
    """Probabilities must be valid, and predicted labels must be among the training labels."""
    probabilities = model.predict_proba(X)
    assert_finite(probabilities, (len(X), len(model.classes_)), "predict_proba")
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    assert np.isfinite(model.decision_function(X)).all(), "decision_function is not finite"
    assert np.isfinite(model.transform(X)).all(), "transform is not finite"
    assert set(model.predict(X)) <= set(y)
    assert all(np.isfinite(v) for record in model.history_ for v in record.values())


def plain(n: int = N, d: int = 3, outputs: int = 0, seed: int = 0) -> Data:
    """Ordinary rows whose targets depend on X; ``outputs=0`` makes y a vector."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    Y = np.sin(X @ rng.standard_normal((d, max(outputs, 1)))) + 0.1 * rng.standard_normal((n, 1))
    return X, Y if outputs else Y[:, 0]


def with_columns(*columns: float | Array, n: int = N) -> Data:
    """Ordinary rows with these columns added."""
    X, y = plain(n)
    return np.column_stack([X, *(np.broadcast_to(c, n) for c in columns)]), y


def scaled(x_scale: float | list[float] = 1.0, y_scale: float = 1.0) -> Data:
    X, y = plain()
    return X * x_scale, y * y_scale


def shifted(x_shift: float = 0.0, y_shift: float = 0.0) -> Data:
    X, y = plain()
    return X + x_shift, y + y_shift


def outlier() -> Data:
    X, y = plain()
    X[3], y[3] = 1e8, 1e8
    return X, y


def repeated(rows: int, times: int) -> Data:
    X, y = plain(rows)
    return np.repeat(X, times, axis=0), np.repeat(y, times, axis=0)


def clashing() -> Data:
    """Equal rows with unequal targets, which no function fits."""
    X, y = plain()
    return np.ones_like(X[:, :1]) * np.repeat([0.0, 1.0], N // 2)[:, None], y


HARD: dict[str, Callable[[], Data]] = {
    "plain": plain,
    "constant columns": lambda: with_columns(0.0, 7.0, 1e30),
    "only constant columns": lambda: (np.full((N, 3), 2.5), plain()[1]),
    "all zero X": lambda: (np.zeros((N, 3)), plain()[1]),
    "duplicate columns": lambda: with_columns(plain()[0][:, 0], plain()[0][:, 0]),
    "nearly duplicate columns": lambda: with_columns(plain()[0][:, 0] * (1 + 1e-15)),
    "duplicate rows": lambda: repeated(4, 4),
    "one row repeated": lambda: repeated(1, N),
    "equal rows, unequal targets": clashing,
    "n = 2": lambda: plain(2),
    "n = 2, one column": lambda: plain(2, 1),
    "n < columns": lambda: plain(5, 20),
    "n < outputs": lambda: plain(4, 3, outputs=9),
    "many outputs": lambda: plain(N, 3, outputs=17),
    "one output as a matrix": lambda: plain(N, 3, outputs=1),
    "one binary column": lambda: ((plain()[0][:, :1] > 0).astype(float), plain()[1]),
    "columns of 1e30": lambda: scaled(1e30),
    "columns of 1e-30": lambda: scaled(1e-30),
    "columns of 1e-30, 1 and 1e30": lambda: scaled([1e-30, 1.0, 1e30]),
    "columns of 1e60": lambda: scaled([1e59, 1.0, 1e-59]),
    "columns of 1e-60": lambda: scaled(1e-60),
    "columns far from zero": lambda: shifted(1e12),
    "targets of 1e150": lambda: scaled(y_scale=1e150),
    "targets of 1e-150": lambda: scaled(y_scale=1e-150),
    "targets of 1e300": lambda: scaled(y_scale=1e300),
    "subnormal targets": lambda: scaled(y_scale=1e-310),
    "targets of 1e50": lambda: scaled(y_scale=1e50),
    "targets far from zero": lambda: shifted(y_shift=1e12),
    "all targets equal": lambda: (plain()[0], np.full(N, 3.0)),
    "all targets 1e150": lambda: (plain()[0], np.full(N, 1e150)),
    "all targets zero but one": lambda: (plain()[0], np.eye(N)[0]),
    "an outlier": outlier,
    "X and y large": lambda: scaled(1e30, 1e150),
    "X and y small": lambda: scaled(1e-30, 1e-150),
    "X large, y small": lambda: scaled(1e30, 1e-150),
    "X small, y large": lambda: scaled(1e-30, 1e150),
}


# The refusal of targets too large for a loss that works in the units of y.
UNITS_OF_Y = re.compile(r"y holds values as large as .* Rescale y, or use loss='squared_error'")


TOO_LARGE_FOR_COUNTS = {
    "targets of 1e150",
    "targets of 1e300",
    "all targets 1e150",
    "X and y large",
    "X small, y large",
}


BOOSTED: dict[str, dict[str, Any]] = {
    "gradient": {},
    "greedy dense": {"strategy": "greedy"},
    "greedy diagonal": {"strategy": "greedy", "step_matrix": "diagonal"},
    "greedy scalar": {"strategy": "greedy", "step_matrix": "scalar"},
    "huber": {"loss": "huber"},
    "quantile": {"loss": "quantile", "quantile": 0.9},
    "poisson": {"loss": "poisson"},
    "swim Φ₀": {"initial": "swim", "hidden_dim": 6},
    "gaussian Φ₀": {"initial": "gaussian", "hidden_dim": 6, "strategy": "greedy"},
    "uniform Φ₀": {"initial": "uniform", "hidden_dim": 6, "initial_scale": 5.0},
    "gaussian relu": {"features": "gaussian", "activation": "relu"},
    "uniform sigmoid": {"features": "uniform", "activation": "sigmoid"},
    "fourier": {"features": "fourier", "feature_scale": 3.0},
    "transformer": {"features": RBFSampler(n_components=8)},
    "swim relu": {"activation": "relu", "initial": "swim", "hidden_dim": 6},
    "swim relu greedy": {"activation": "relu", "strategy": "greedy"},
    "swim sin, uniform pairs": {"activation": "sin", "pair_sampling": "uniform"},
    "swim cos, features of x only": {"activation": "cos", "n_features": (0, 8)},
    "normalized": {"normalize": True, "learning_rate": (1.0, 0.5)},
    "normalized greedy diagonal": {
        "normalize": True,
        "strategy": "greedy",
        "step_matrix": "diagonal",
        "initial": "swim",
        "hidden_dim": 6,
    },
    "split": {"sample_splitting": True},
    "split huber": {"sample_splitting": True, "loss": "huber"},
    "no layers": {"n_layers": 0},
}


SINGLE: dict[str, dict[str, Any]] = {
    "swim": {},
    "gaussian": {"features": "gaussian"},
    "fourier": {"features": "fourier"},
    "relu": {"activation": "relu"},
    "transformer": {"features": RBFSampler(n_components=8)},
    "huber": {"loss": "huber"},
    "quantile": {"loss": "quantile"},
    "poisson": {"loss": "poisson"},
}


REGRESSORS: dict[str, Callable[[float], Any]] = {
    **{
        name: lambda l2, p=params: RFRBoostRegressor(**SMALL | p, l2_head=l2, l2_step=l2)
        for name, params in BOOSTED.items()
    },
    **{
        f"RFNN {name}": lambda l2, p=params: RFNNRegressor(**TINY_RFNN | p, l2_head=l2)
        for name, params in SINGLE.items()
    },
}


def in_range(model: Any, y: Array) -> Array:
    """Targets that the model's loss accepts: for Poisson they must not be negative."""
    return np.abs(y) if model.loss == "poisson" else y


# Every estimator is fitted without a penalty, which is hardest; these also with one.
PENALISED = ["gradient", "greedy dense", "greedy diagonal", "huber", "poisson", "gaussian Φ₀"]


TABLE = [(name, 0.0) for name in REGRESSORS] + [(name, 1e-3) for name in PENALISED]


def labels(y: Array) -> Array:
    """Three classes of unequal size, or two classes if there are only two rows."""
    rank = np.argsort(np.argsort(y if y.ndim == 1 else y[:, 0]))
    return np.minimum(rank * 5 // len(rank), 2) if len(rank) > 2 else rank


CLASSIFIERS: dict[str, Callable[[float], Any]] = {
    **{
        name: lambda l2, p=params: RFRBoostClassifier(**SMALL | p, l2_head=l2, l2_step=l2)
        for name, params in BOOSTED.items()
        if not {"strategy", "loss"} & set(params)
    },
    **{
        f"RFNN {name}": lambda l2, p=params: RFNNClassifier(**TINY_RFNN | p, l2_head=l2)
        for name, params in SINGLE.items()
        if "loss" not in params
    },
}


HARD_CLASSES: dict[str, Callable[[], Data]] = {
    **{
        name: lambda d=data: (d()[0], labels(d()[1]))
        for name, data in HARD.items()
        if "target" not in name and "output" not in name and "y" not in name.split()
    },
    "as many classes as rows": lambda: (plain(6)[0], np.arange(6)),
    "classes with one row": lambda: (plain()[0], np.r_[0, 1, 2, np.full(N - 3, 3)]),
    "one row against the rest": lambda: (plain()[0], np.arange(N) == 0),
    "separable": lambda: (plain()[0], plain()[0][:, 0] > 0),
    "separable by far": lambda: (plain()[0] * 1e6, plain()[0][:, 0] > 0),
    "three separable classes": lambda: (
        np.repeat([[0.0], [50.0], [100.0]], 8, axis=0),
        np.repeat(["a", "b", "c"], 8),
    ),
    "labels unrelated to X": lambda: (plain()[0], np.arange(N) % 3),
}


CLASS_TABLE = [(name, 0.0) for name in CLASSIFIERS] + [("gradient", 1e-3), ("RFNN swim", 1e-3)]


TRANSFORMERS: dict[str, Callable[[], Any]] = {
    "swim": lambda: SWIMFeatures(8, random_state=0),
    "swim uniform relu": lambda: SWIMFeatures(
        8, pair_sampling="uniform", activation="relu", random_state=0
    ),
    "gaussian": lambda: GaussianFeatures(8, random_state=0),
    "gaussian relu": lambda: GaussianFeatures(8, activation="relu", random_state=0),
    "fourier": lambda: FourierFeatures(8, random_state=0),
}
