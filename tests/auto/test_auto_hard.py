"""Numbers that never break, for automatic fits: finite answers, or a refusal that says why."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hard_tables import (
    TOO_LARGE_FOR_COUNTS,
    UNITS_OF_Y,
    Array,
    Data,
    assert_sound_classifier,
    assert_sound_regressor,
    in_range,
    labels,
    plain,
)
from sklearn.base import clone

from rfrboost import RFRBoostClassifier, RFRBoostRegressor

N = 60


def rows(columns: int = 3, outputs: int = 0) -> Data:
    return plain(N, columns, outputs)


def with_columns(*columns: float | Array) -> Data:
    X, y = rows()
    return np.column_stack([X, *(np.broadcast_to(c, N) for c in columns)]), y


def scaled(x_scale: float | list[float] = 1.0, y_scale: float = 1.0) -> Data:
    X, y = rows()
    return X * x_scale, y * y_scale


def outlier(size: float) -> Data:
    X, y = rows()
    X[3], y[3] = size, size
    return X, y


def one_row_different() -> Data:
    return np.eye(N)[:, [5, 5]] + 1.0, np.eye(N)[5]


HARD: dict[str, Callable[[], Data]] = {
    "plain": rows,
    "constant columns": lambda: with_columns(0.0, 7.0, 1e30),
    "only constant columns": lambda: (np.full((N, 3), 2.5), rows()[1]),
    "duplicate columns": lambda: with_columns(rows()[0][:, 0], rows()[0][:, 0] * (1 + 1e-15)),
    "duplicate rows": lambda: (np.repeat(rows()[0][:15], 4, 0), np.repeat(rows()[1][:15], 4)),
    "equal rows, unequal targets": lambda: (np.repeat(rows()[0][:6], 10, 0), rows()[1]),
    "all rows equal": lambda: (np.ones((N, 3)), np.ones(N)),
    "one row different": one_row_different,
    "n < columns": lambda: rows(90),
    "too many columns for a full metric": lambda: rows(700),
    "many outputs": lambda: rows(3, outputs=17),
    "one binary column": lambda: ((rows()[0][:, :1] > 0).astype(float), rows()[1]),
    "binary columns of 1e30 and 1e-40": lambda: ((rows()[0] > 0) * [1e30, 1.0, 1e-40], rows()[1]),
    "columns of 1e30": lambda: scaled(1e30),
    "columns of 1e-30": lambda: scaled(1e-30),
    "columns of 1e-30, 1 and 1e30": lambda: scaled([1e-30, 1.0, 1e30]),
    "columns of 1e60": lambda: scaled([1e59, 1.0, 1e-59]),
    "columns of 1e-150": lambda: scaled(1e-150),
    "columns far from zero": lambda: (rows()[0] + 1e12, rows()[1]),
    "targets of 1e150": lambda: scaled(y_scale=1e150),
    "targets of 1e-200": lambda: scaled(y_scale=1e-200),
    "subnormal targets": lambda: scaled(y_scale=1e-310),
    "targets far from zero": lambda: (rows()[0], rows()[1] + 1e12),
    "all targets equal": lambda: (rows()[0], np.full(N, 3.0)),
    "all targets zero but one": lambda: (rows()[0], np.eye(N)[0]),
    "an outlier of 1e3": lambda: outlier(1e3),
    "an outlier of 1e30": lambda: outlier(1e30),
    "X and y large": lambda: scaled(1e30, 1e150),
    "X small, y large": lambda: scaled(1e-30, 1e150),
}

WEIGHTS: dict[str, Array] = {
    "one row outweighs all": np.r_[1e50, np.ones(N - 1)],
    "of all sizes": 10.0 ** np.random.default_rng(0).uniform(-50, 50, N),
    "nearly none": np.full(N, 1e-300),
}

REGRESSORS: dict[str, RFRBoostRegressor] = {
    "squared error": RFRBoostRegressor(n_bags=2, random_state=0),
    "huber": RFRBoostRegressor(loss="huber", n_bags=2, random_state=0),
    "quantile": RFRBoostRegressor(loss="quantile", quantile=0.9, n_bags=2, random_state=0),
    "poisson": RFRBoostRegressor(loss="poisson", n_bags=2, random_state=0),
    "no penalties": RFRBoostRegressor(l2_head=0.0, l2_step=0.0, n_bags=1, random_state=0),
}

CLASSES: dict[str, Callable[[], Data]] = {
    **{
        name: lambda d=data: (d()[0], labels(d()[1]))
        for name, data in HARD.items()
        if "target" not in name and "outputs" not in name and "y" not in name.split()
    },
    "classes with one row": lambda: (rows()[0], np.r_[0, 1, 2, np.full(N - 3, 3)]),
    "one row against the rest": lambda: (rows()[0], np.arange(N) == 0),
    "separable": lambda: (rows()[0], rows()[0][:, 0] > 0),
    "separable by far": lambda: (rows()[0] * 1e6, rows()[0][:, 0] > 0),
    "three separable classes": lambda: (
        np.repeat([[0.0], [50.0], [100.0]], 20, axis=0),
        np.repeat(["a", "b", "c"], 20),
    ),
    "as many classes as half the rows": lambda: (rows()[0], np.arange(N) // 2),
    "labels unrelated to X": lambda: (rows()[0], np.arange(N) % 3),
}


def assert_sound_ensemble(model: Any, X: Array) -> None:
    """What an automatic fit offers besides predictions is finite too."""
    assert np.isfinite(model.feature_importances_).all()
    assert np.isfinite(model.input_gradient(X)).all()
    known = np.isfinite(model.oof_prediction_).reshape(len(X), -1).all(axis=1)
    assert known.sum() == (len(X) // 5 if model.n_bags == 1 else len(X))


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("data", HARD)
def test_regressors_on_hard_data(data: str, name: str) -> None:
    model = clone(REGRESSORS[name])
    X, y = HARD[data]()
    y = in_range(model, y)
    if data in TOO_LARGE_FOR_COUNTS and name == "poisson":
        with pytest.raises(ValueError, match=UNITS_OF_Y):
            model.fit(X, y)
        return
    assert_sound_regressor(model.fit(X, y), X, y)
    assert_sound_ensemble(model, X)


@pytest.mark.parametrize("data", CLASSES)
def test_classifiers_on_hard_data(data: str) -> None:
    X, y = CLASSES[data]()
    model = RFRBoostClassifier(n_bags=2, random_state=0).fit(X, y)
    assert_sound_classifier(model, X, y)
    assert_sound_ensemble(model, X)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", [*REGRESSORS, "classifier"])
def test_extreme_weights(weights: str, name: str) -> None:
    X, y = rows()
    w = WEIGHTS[weights]
    if name == "classifier":
        model: Any = RFRBoostClassifier(n_bags=2, random_state=0).fit(X, labels(y), sample_weight=w)
        assert_sound_classifier(model, X, labels(y))
    else:
        model = clone(REGRESSORS[name])
        assert_sound_regressor(model.fit(X, in_range(model, y), sample_weight=w), X, y)


@pytest.mark.parametrize("name", [*REGRESSORS, "classifier"])
@pytest.mark.parametrize("x_scale", [1e-30, 1.0, 1e30])
def test_predictions_far_away_are_finite(name: str, x_scale: float) -> None:
    X, y = scaled(x_scale)
    far = np.vstack([X * 1e25, -X * 1e25, np.zeros((1, 3))])
    if name == "classifier":
        model: Any = RFRBoostClassifier(n_bags=2, random_state=0).fit(X, labels(y))
        assert_sound_classifier(model, far, labels(y))
    else:
        model = clone(REGRESSORS[name])
        model.fit(X, in_range(model, y))
        assert_sound_regressor(model, far, np.empty(len(far)))


@pytest.mark.parametrize("data", ["plain", "one binary column", "n < columns", "many outputs"])
def test_the_unit_of_y_does_not_matter(data: str) -> None:
    X, y = HARD[data]()
    expected = RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y).predict(X)
    for size in (2.0**-400, 2.0**400):
        scaled_up = RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y * size).predict(X)
        np.testing.assert_array_equal(scaled_up / size, expected)
