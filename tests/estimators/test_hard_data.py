"""Numbers that never break: every estimator on every hard table gives finite answers.

Warnings are errors in the whole test suite, so a division by zero deep in numpy counts as a
failure even where the final answer happens to be finite.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hard_tables import (
    CLASS_TABLE,
    CLASSIFIERS,
    HARD,
    HARD_CLASSES,
    PENALISED,
    REGRESSORS,
    SMALL,
    TABLE,
    TOO_LARGE_FOR_COUNTS,
    TRANSFORMERS,
    UNITS_OF_Y,
    Array,
    Data,
    N,
    assert_finite,
    assert_sound_classifier,
    assert_sound_regressor,
    in_range,
    labels,
    plain,
    scaled,
)

from rfrboost import (
    RFRBoostClassifier,
    RFRBoostRegressor,
)


@pytest.mark.parametrize(("estimator", "l2"), TABLE)
@pytest.mark.parametrize("data", HARD)
def test_regressors_on_hard_data(data: str, estimator: str, l2: float) -> None:
    model = REGRESSORS[estimator](l2)
    X, y = HARD[data]()
    y = in_range(model, y)
    if data in TOO_LARGE_FOR_COUNTS and model.loss == "poisson":
        with pytest.raises(ValueError, match=UNITS_OF_Y):
            model.fit(X, y)
        return
    assert_sound_regressor(model.fit(X, y), X, y)


@pytest.mark.parametrize("estimator", PENALISED)
@pytest.mark.parametrize("l2", [0.0, 1e-3])
@pytest.mark.parametrize("x_scale", [1e-150, 1e-160, 1e-310])
def test_columns_whose_squares_vanish(estimator: str, l2: float, x_scale: float) -> None:
    """Small beyond what the square of a distance can hold: as good as constant."""
    model = REGRESSORS[estimator](l2)
    X, y = scaled(x_scale)
    y = in_range(model, y)
    assert_sound_regressor(model.fit(X, y), X, y)


@pytest.mark.parametrize(("estimator", "l2"), CLASS_TABLE)
@pytest.mark.parametrize("data", HARD_CLASSES)
def test_classifiers_on_hard_data(data: str, estimator: str, l2: float) -> None:
    X, y = HARD_CLASSES[data]()
    assert_sound_classifier(CLASSIFIERS[estimator](l2).fit(X, y), X, y)


@pytest.mark.parametrize("kind", TRANSFORMERS)
@pytest.mark.parametrize("data", HARD)
def test_transformers_on_hard_data(data: str, kind: str) -> None:
    X, y = HARD[data]()
    assert_finite(TRANSFORMERS[kind]().fit(X, y).transform(X), (len(X), 8), "transform")
    assert_finite(TRANSFORMERS[kind]().fit_transform(X), (len(X), 8), "without y, transform")


@pytest.mark.parametrize("estimator", REGRESSORS)
@pytest.mark.parametrize("x_scale", [1e-30, 1e30])
def test_predictions_far_away_are_finite(estimator: str, x_scale: float) -> None:
    X, y = scaled(x_scale)
    model = REGRESSORS[estimator](1e-3)
    model.fit(X, in_range(model, y))
    far = np.vstack([X * 1e25, -X * 1e25, np.zeros((1, 3))])
    assert_sound_regressor(model, far, np.empty(len(far)))


@pytest.mark.parametrize("estimator", CLASSIFIERS)
@pytest.mark.parametrize("x_scale", [1e-30, 1e30])
def test_probabilities_far_away_are_finite(estimator: str, x_scale: float) -> None:
    X, y = scaled(x_scale)
    model = CLASSIFIERS[estimator](1e-3).fit(X, labels(y))
    far = np.vstack([X * 1e25, -X * 1e25, np.zeros((1, 3))])
    assert_sound_classifier(model, far, labels(y))


SQUARED = [n for n in REGRESSORS if REGRESSORS[n](0.0).loss == "squared_error"]


@pytest.mark.parametrize("estimator", REGRESSORS)
@pytest.mark.parametrize("value", [1e-150, 3.0, 1e50])
def test_equal_targets_are_predicted(estimator: str, value: float) -> None:
    X, _ = plain()
    y = np.full(len(X), value)
    prediction = REGRESSORS[estimator](1e-3).fit(X, y).predict(X)
    np.testing.assert_allclose(prediction, y, rtol=1e-3)


@pytest.mark.parametrize("estimator", SQUARED)
@pytest.mark.parametrize("exponent", [-498, -100, 100, 498])
def test_squared_error_scales_with_the_target(estimator: str, exponent: int) -> None:
    """λ = 0, where the penalty of the greedy step takes no part: then all is linear in y."""
    X, y = plain()
    model, factor = REGRESSORS[estimator](0.0), 2.0**exponent
    expected = model.fit(X, y).predict(X)
    np.testing.assert_allclose(model.fit(X, y * factor).predict(X) / factor, expected, rtol=1e-6)


@pytest.mark.parametrize("strategy", ["gradient", "greedy"])
def test_no_penalty_interpolates_when_features_outnumber_rows(strategy: str) -> None:
    X, y = plain(10)
    model = RFRBoostRegressor(
        2, strategy=strategy, initial="swim", hidden_dim=40, l2_head=0.0, l2_step=0.0,
        random_state=0,
    )  # fmt: skip
    np.testing.assert_allclose(model.fit(X, y).predict(X), y, atol=1e-6)


@pytest.mark.parametrize("strategy", ["gradient", "greedy"])
@pytest.mark.parametrize("x_scale", [1e-30, 1e30])
def test_signal_in_extreme_columns_is_found(strategy: str, x_scale: float) -> None:
    """SWIM measures distances in the data's own units, so the scale of X costs nothing."""
    X, y = scaled(x_scale)
    model = RFRBoostRegressor(**SMALL, strategy=strategy, l2_head=0.0, l2_step=0.0)
    assert model.fit(X, y).score(X, y) > 0.5


def test_a_constant_column_changes_nothing_much() -> None:
    X, y = plain()
    with_constant = np.column_stack([X, np.full(len(X), 1e12)])
    model = RFRBoostRegressor(0, l2_head=1e-3)
    np.testing.assert_allclose(
        model.fit(with_constant, y).predict(with_constant), model.fit(X, y).predict(X), rtol=1e-9
    )


def grid(n: int = N) -> Data:
    """Small integers, which every dtype below holds exactly."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (n, 4)).astype(float)
    return X, X @ np.array([1.0, -2.0, 3.0, 0.0])


DTYPES = ["float16", "float32", "float64", "longdouble", "int8", "int64", "uint8", "bool", "object"]


@cache
def predictions_of_floats() -> Array:
    X, y = grid()
    return RFRBoostRegressor(**SMALL).fit(X, y).predict(X)


@cache
def probabilities_of_floats() -> Array:
    X, y = grid()
    return RFRBoostClassifier(**SMALL).fit(X, (y > 0).astype(int)).predict_proba(X)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", ["float16", "float32", "int64", "longdouble", "object"])
def test_dtype_does_not_matter(dtype: str, target: str) -> None:
    X, y = grid()
    expected = predictions_of_floats()
    model = RFRBoostRegressor(**SMALL).fit(X.astype(dtype), y.astype(target))
    np.testing.assert_allclose(model.predict(X.astype(dtype)), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("as_labels", [bool, np.int8, np.uint64, np.float32, str])
def test_dtype_does_not_matter_to_classifiers(dtype: str, as_labels: Any) -> None:
    X, y = grid()
    y = (y > 0).astype(int)
    expected = probabilities_of_floats()
    model = RFRBoostClassifier(**SMALL).fit(X.astype(dtype), y.astype(as_labels))
    probabilities = model.predict_proba(X.astype(dtype))
    np.testing.assert_allclose(probabilities, expected, rtol=1e-4, atol=1e-5)
    assert set(model.predict(X.astype(dtype))) <= set(y.astype(as_labels))


def memory_map(X: Array, path: Path) -> Array:
    np.save(path / "x.npy", X)
    return np.load(path / "x.npy", mmap_mode="r")


def strided(X: Array) -> Array:
    """Every other row and column of a larger array, read-only."""
    larger = np.full((2 * len(X), 2 * X.shape[1]), np.nan)
    larger[::2, ::2] = X
    view = larger[::2, ::2]
    view.flags.writeable = False
    return view


LAYOUTS: dict[str, Callable[[Array, Path], Any]] = {
    "Fortran": lambda X, path: np.asfortranarray(X),
    "read-only memory map": memory_map,
    "read-only Fortran memory map": lambda X, path: memory_map(np.asfortranarray(X), path),
    "strided, read-only": lambda X, path: strided(X),
    "reversed": lambda X, path: X[::-1].copy()[::-1],
    "big-endian": lambda X, path: X.astype(">f8"),
    "list": lambda X, path: X.tolist(),
    "frame": lambda X, path: pd.DataFrame(X, columns=list("abc")),
    "nullable frame": lambda X, path: pd.DataFrame(X, columns=list("abc")).astype("Float64"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("estimator", ["gradient", "greedy diagonal", "huber", "RFNN swim"])
def test_layout_does_not_matter(layout: str, estimator: str, tmp_path: Path) -> None:
    X, y = plain()
    before = X.copy()
    expected = REGRESSORS[estimator](1e-3).fit(X, y).predict(X)
    other, y_frozen = LAYOUTS[layout](X, tmp_path), y.copy()
    y_frozen.flags.writeable = False
    model = REGRESSORS[estimator](1e-3).fit(other, y_frozen, sample_weight=None)
    np.testing.assert_allclose(model.predict(other), expected, rtol=1e-9)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("estimator", ["gradient", "greedy dense", "huber", "normalized"])
@pytest.mark.parametrize("x_scale", [1e-38, 1e30, 1e38])
def test_float32_at_its_limits(estimator: str, x_scale: float) -> None:
    """Sums of float32 numbers that fit, each on its own, must not overflow."""
    X, y = scaled(x_scale)
    # One sign only: scikit-learn's own search for NaN would warn of inf − inf.
    X32 = np.minimum(np.abs(X), 3e38).astype(np.float32)
    assert_sound_regressor(REGRESSORS[estimator](1e-3).fit(X32, y), X32, y)


@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_transformers_take_float32_at_its_limits(kind: str) -> None:
    X32 = np.minimum(np.abs(plain()[0]) * 1e38, 3e38).astype(np.float32)
    assert_finite(TRANSFORMERS[kind]().fit_transform(X32), (N, 8), "transform")


def test_float16_at_its_limits() -> None:
    X, y = plain()
    X16, y16 = (65504 * np.tanh(X)).astype(np.float16), (65504 * np.tanh(y)).astype(np.float16)
    assert_sound_regressor(RFRBoostRegressor(**SMALL).fit(X16, y16), X16, y16)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integers_at_their_limits(dtype: str) -> None:
    X, y = plain()
    limits = np.iinfo(dtype)
    least, most = np.array([limits.min, limits.max], dtype)
    extreme = np.where(X > 0, most, least)
    target = np.where(y > 0, most, least)
    assert_sound_regressor(RFRBoostRegressor(**SMALL).fit(extreme, target), extreme, target)


WEIGHTS: dict[str, Callable[[int], Array]] = {
    "ones": np.ones,
    "all 1e-300": lambda n: np.full(n, 1e-300),
    "all 1e300": lambda n: np.full(n, 1e300),
    "all the largest float": lambda n: np.full(n, np.finfo(float).max),
    "all subnormal": lambda n: np.full(n, 5e-324),
    "mostly zero": lambda n: np.eye(n)[0] + np.eye(n)[-1],
    "one heavy row": lambda n: np.where(np.arange(n) == 0, 1e20, 1.0),
    "one light row": lambda n: np.where(np.arange(n) == 0, 1e-20, 1.0),
    "one row beyond precision": lambda n: np.where(np.arange(n) == 0, 1e-300, 1.0),
    "all scales": lambda n: 10.0 ** np.linspace(-140, 140, n),
    "booleans": lambda n: np.arange(n) % 2 == 0,
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("estimator", [*PENALISED, "quantile", "normalized", "split", "RFNN swim"])
def test_regressors_with_hard_weights(weights: str, estimator: str) -> None:
    X, y = plain()
    model = REGRESSORS[estimator](1e-3)
    y = in_range(model, y)
    assert_sound_regressor(model.fit(X, y, sample_weight=WEIGHTS[weights](len(y))), X, y)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("estimator", ["gradient", "normalized", "split", "RFNN swim"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers_with_hard_weights(weights: str, estimator: str, n_classes: int) -> None:
    """Rows 0 and n−1, the ones singled out by the weights, are of different classes.

    Row 0 is alone in its class, so that all of a class can weigh next to nothing.
    """
    X, _ = plain()
    y = np.where(np.arange(N) == 0, 0, 1 + np.arange(N) % (n_classes - 1))
    model, w = CLASSIFIERS[estimator](1e-3), WEIGHTS[weights](len(y))
    if n_classes == 2 and weights in ("one row beyond precision", "all scales"):
        with pytest.raises(ValueError, match="rows of weight zero do not count"):
            model.fit(X, y, sample_weight=w)
        return
    assert_sound_classifier(model.fit(X, y, sample_weight=w), X, y)


def test_poisson_with_its_only_count_next_to_weightless() -> None:
    X, _ = plain()
    y, w = np.eye(N)[0], np.where(np.arange(N) == 0, 1e-50, 1.0)
    model = RFRBoostRegressor(**SMALL, loss="poisson").fit(X, y, sample_weight=w)
    assert_sound_regressor(model, X, y)


def test_rows_of_weight_zero_are_as_good_as_absent() -> None:
    X, y = plain()
    w = np.arange(N) % 3 != 0
    X_bad, y_bad = X.copy(), y.copy()
    X_bad[~w], y_bad[~w] = 1e30, -1e30
    model = RFRBoostRegressor(**SMALL)
    expected = model.fit(X[w], y[w], sample_weight=np.ones(w.sum())).predict(X)
    actual = model.fit(X_bad, y_bad, sample_weight=w.astype(float)).predict(X)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("seed", range(2))
def test_predictions_so_large_that_their_squares_overflow_are_refused(seed):
    """Hardly any penalty and features that are nearly constant: heads of 1e134 and more."""
    X, other = (np.random.default_rng(i).standard_normal((7, 1)) for i in range(2))
    Y = np.hstack([X, X, other])
    model = RFRBoostRegressor(
        3,
        n_features=1,
        strategy="greedy",
        step_matrix="diagonal",
        features="fourier",
        feature_scale=1e-6,
        initial="swim",
        learning_rate=0.1,
        l2_step=0.0,
        l2_head=1e-300,
        sample_splitting=True,
        random_state=seed,
    )
    with pytest.raises(ValueError, match="The fit diverged"):
        model.fit(X, Y)
