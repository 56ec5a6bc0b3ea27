"""What cannot be fitted is refused with a ValueError that says what to do."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hard_tables import SMALL, TINY_RFNN, TRANSFORMERS, UNITS_OF_Y, Array, Data, N, plain
from sklearn.preprocessing import StandardScaler

from rfrboost import (
    FourierFeatures,
    GaussianFeatures,
    RFNNClassifier,
    RFNNRegressor,
    RFRBoostClassifier,
    RFRBoostRegressor,
    SWIMFeatures,
)

ALL_FOUR: dict[str, Callable[[], Any]] = {
    "RFRBoostRegressor": lambda: RFRBoostRegressor(**SMALL),
    "RFRBoostClassifier": lambda: RFRBoostClassifier(**SMALL),
    "RFNNRegressor": lambda: RFNNRegressor(**TINY_RFNN),
    "RFNNClassifier": lambda: RFNNClassifier(**TINY_RFNN),
}


def two_classes(n: int = N) -> Data:
    X, y = plain(n)
    return X, (y > 0).astype(float)


@pytest.mark.parametrize("estimator", [*ALL_FOUR, *TRANSFORMERS])
@pytest.mark.parametrize(("bad", "name"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_refuses_nan_and_infinity_in_x(estimator: str, bad: float, name: str) -> None:
    X, y = two_classes()
    X[5, 1] = bad
    model = {**ALL_FOUR, **TRANSFORMERS}[estimator]()
    with pytest.raises(ValueError, match=rf"Input X contains {name}"):
        model.fit(X, y)


@pytest.mark.parametrize("estimator", [*ALL_FOUR, *TRANSFORMERS])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_refuses_nan_and_infinity_in_x_at_prediction(estimator: str, bad: float) -> None:
    X, y = two_classes()
    model = {**ALL_FOUR, **TRANSFORMERS}[estimator]().fit(X, y)
    X[5, 1] = bad
    for method in ("predict", "transform", "predict_proba"):
        if hasattr(model, method):
            with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
                getattr(model, method)(X)


@pytest.mark.parametrize("estimator", [*ALL_FOUR, *TRANSFORMERS])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_refuses_nan_and_infinity_in_y(estimator: str, bad: float) -> None:
    X, y = two_classes()
    y[5] = bad
    model = {**ALL_FOUR, **TRANSFORMERS}[estimator]()
    with pytest.raises(ValueError, match=r"y contains (NaN|infinity)"):
        model.fit(X, y)


@pytest.mark.parametrize("estimator", ALL_FOUR)
@pytest.mark.parametrize(
    ("reshape_x", "reshape_y", "message"),
    [
        (lambda X: X[:, 0], lambda y: y, r"Expected 2D array, got 1D array.*Reshape your data"),
        (lambda X: X[None], lambda y: y, r"Found array with dim 3"),
        (lambda X: X[:-1], lambda y: y, r"inconsistent numbers of samples"),
        (lambda X: X[:0], lambda y: y[:0], r"0 sample\(s\)"),
        (lambda X: X[:, :0], lambda y: y, r"0 feature\(s\)"),
        (lambda X: X, lambda y: y[:, None, None], r"(dim 3|1d array|y should be)"),
    ],
    ids=["1d X", "3d X", "too few rows", "no rows", "no columns", "3d y"],
)
def test_refuses_wrong_shapes(
    estimator: str,
    reshape_x: Callable[[Array], Array],
    reshape_y: Callable[[Array], Array],
    message: str,
) -> None:
    X, y = two_classes()
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)):
        ALL_FOUR[estimator]().fit(reshape_x(X), reshape_y(y))


@pytest.mark.parametrize("kind", TRANSFORMERS)
@pytest.mark.parametrize("shape", [(15,), ()], ids=["too few rows", "a number"])
def test_transformers_refuse_targets_of_another_length(kind: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="y must have a row for each of the 16 rows"):
        TRANSFORMERS[kind]().fit(plain()[0], np.ones(shape))


def test_regressor_refuses_a_missing_target() -> None:
    with pytest.raises(ValueError, match="requires y to be passed"):
        RFRBoostRegressor(**SMALL).fit(plain()[0], None)


@pytest.mark.parametrize("estimator", [*ALL_FOUR, *TRANSFORMERS])
def test_refuses_another_number_of_columns(estimator: str) -> None:
    X, y = two_classes()
    model = {**ALL_FOUR, **TRANSFORMERS}[estimator]().fit(X, y)
    for method in ("predict", "transform", "predict_proba"):
        if hasattr(model, method):
            with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3"):
                getattr(model, method)(X[:, :2])


def test_warm_start_refuses_another_number_of_columns() -> None:
    X, y = plain()
    model = RFRBoostRegressor(**SMALL, warm_start=True).fit(X, y).set_params(n_layers=3)
    with pytest.raises(ValueError, match=r"(features|columns).*warm_start"):
        model.fit(X[:, :2], y)


def test_warm_start_refuses_fewer_layers_and_other_outputs() -> None:
    X, y = plain()
    model = RFRBoostRegressor(**SMALL, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="Raise n_layers, or set warm_start=False"):
        model.set_params(n_layers=1).fit(X, y)
    with pytest.raises(ValueError, match=r"another number of outputs.*Set warm_start=False"):
        model.set_params(n_layers=3).fit(X, np.column_stack([y, y]))


def test_refuses_complex_numbers_and_words() -> None:
    X, y = plain()
    with pytest.raises(ValueError, match=r"[Cc]omplex"):
        RFRBoostRegressor(**SMALL).fit(X + 1j, y)
    with pytest.raises(ValueError, match="could not convert string to float"):
        RFRBoostRegressor(**SMALL).fit(X.astype(str).astype(object) + "m", y)
    with pytest.raises(ValueError, match="could not convert string to float"):
        RFRBoostRegressor(**SMALL).fit(X, np.full(N, "high", dtype=object))


@pytest.mark.parametrize("estimator", ["RFRBoostClassifier", "RFNNClassifier"])
def test_classifier_refuses_continuous_labels(estimator: str) -> None:
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        ALL_FOUR[estimator]().fit(*plain())


@pytest.mark.parametrize("estimator", ["RFRBoostClassifier", "RFNNClassifier"])
def test_classifier_refuses_one_class(estimator: str) -> None:
    X, _ = plain()
    with pytest.raises(ValueError, match=r"at least two classes .* one class only, 'spam'"):
        ALL_FOUR[estimator]().fit(X, np.full(N, "spam"))
    # Weights of zero can leave one class where y has two.
    y = np.arange(N) < N // 2
    with pytest.raises(ValueError, match=r"rows of weight zero do not count"):
        ALL_FOUR[estimator]().fit(X, y, sample_weight=y.astype(float))


UNKNOWN: list[tuple[Any, dict[str, Any]]] = [
    (RFRBoostRegressor, {"strategy": "gready"}),
    (RFRBoostRegressor, {"step_matrix": "banded"}),
    (RFRBoostRegressor, {"loss": "mse"}),
    (RFRBoostRegressor, {"loss": "log_loss"}),
    (RFRBoostRegressor, {"features": "swmi"}),
    (RFRBoostRegressor, {"pair_sampling": "random"}),
    (RFRBoostRegressor, {"activation": "gelu"}),
    (RFRBoostRegressor, {"initial": "fourier"}),
    (RFNNRegressor, {"loss": "mse"}),
    (RFNNRegressor, {"features": "swmi"}),
    (RFNNClassifier, {"activation": "gelu"}),
    (SWIMFeatures, {"pair_sampling": "random"}),
    (GaussianFeatures, {"activation": "gelu"}),
]


OUT_OF_RANGE: list[tuple[Any, dict[str, Any]]] = [
    *((m, {"l2_head": -1e-9}) for m in (RFRBoostRegressor, RFRBoostClassifier)),
    *((m, {"l2_head": -1e-9}) for m in (RFNNRegressor, RFNNClassifier)),
    *((m, {"l2_step": -1e-9}) for m in (RFRBoostRegressor, RFRBoostClassifier)),
    *((RFRBoostRegressor, {name: bad}) for name in ("l2_head", "l2_step")
      for bad in (np.nan, np.inf, None, "1")),
    *((RFRBoostRegressor, {"feature_scale": bad}) for bad in (0.0, -1.0, np.nan, np.inf)),
    *((RFRBoostRegressor, {"initial_scale": bad}) for bad in (0.0, -1.0)),
    *((RFRBoostRegressor, {"learning_rate": bad}) for bad in (0.0, -0.5, np.nan, np.inf, "1")),
    *((RFRBoostRegressor, {"n_layers": bad}) for bad in (-1, 1.5, "2")),
    *((RFRBoostRegressor, {"n_features": bad}) for bad in (0, -8, 8.0, [8, 8])),
    *((RFRBoostRegressor, {"hidden_dim": bad}) for bad in (0, -3, 2.5)),
    *((RFRBoostRegressor, {"quantile": bad}) for bad in (0.0, 1.0, -0.1, 1.1, np.nan)),
    (RFRBoostRegressor, {"features": 3}),
    (RFRBoostRegressor, {"random_state": "zero"}),
    (RFNNRegressor, {"n_features": (8, 8)}),
    (SWIMFeatures, {"n_features": 0}),
    (SWIMFeatures, {"feature_scale": 0.0}),
    (FourierFeatures, {"feature_scale": -1.0}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "params"), UNKNOWN + OUT_OF_RANGE, ids=str)
def test_refuses_unknown_names_and_values_out_of_range(kind: Any, params: dict[str, Any]) -> None:
    """The message names the parameter, what it may be, and what it was."""
    ((name, value),) = params.items()
    message = rf"The '{name}' parameter of {kind.__name__} must be .*Got {re.escape(repr(value))}"
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)) as caught:
        kind(**params).fit(*two_classes())
    # Users cannot import private modules.
    assert "rfrboost._" not in str(caught.value)


@pytest.mark.parametrize(
    "n_features", [(0, 0), (8,), (8, 8, 8), (-1, 8), (8.0, 8), (), ("8", 8)], ids=str
)
def test_refuses_bad_pairs_of_features(n_features: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"n_features must be an int >= 1 or a pair"):
        RFRBoostRegressor(2, n_features=n_features).fit(*plain())


@pytest.mark.parametrize(
    "learning_rate",
    [(0.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (1.0,), (1.0, 1.0, 1.0), ("1", 0.0), (), (np.nan, 0.0),
     (1.0, np.nan), (np.inf, 0.0), (1.0, np.inf)],
    ids=str,
)  # fmt: skip
def test_refuses_bad_schedules(learning_rate: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"learning_rate must be a positive number or a pair"):
        RFRBoostRegressor(**SMALL, learning_rate=learning_rate).fit(*plain())


@pytest.mark.parametrize("kind", [RFRBoostRegressor, RFNNRegressor])
@pytest.mark.parametrize(
    "y", [np.r_[-1.0, np.ones(N - 1)], np.zeros(N), np.column_stack([np.ones(N), np.zeros(N)])],
    ids=["negative", "all zero", "one output all zero"],
)  # fmt: skip
def test_poisson_refuses_targets_out_of_range(kind: Any, y: Array) -> None:
    with pytest.raises(ValueError, match=r"loss='poisson' needs y >= 0 .*Use another loss"):
        kind(n_features=8, loss="poisson").fit(plain()[0], y)


@pytest.mark.parametrize("loss", ["poisson"])
def test_refuses_targets_too_large_for_the_loss(loss: str) -> None:
    X, y = plain()
    with pytest.raises(ValueError, match=UNITS_OF_Y):
        RFRBoostRegressor(**SMALL, loss=loss).fit(X, 1e61 * np.abs(y))


@pytest.mark.parametrize("loss", ["huber", "quantile", "poisson"])
@pytest.mark.parametrize("step_matrix", ["dense", "diagonal", "scalar"])
def test_greedy_refuses_other_losses(loss: str, step_matrix: str) -> None:
    X, y = plain()
    model = RFRBoostRegressor(**SMALL, strategy="greedy", step_matrix=step_matrix, loss=loss)
    with pytest.raises(ValueError, match=r"strategy='greedy' .* Set strategy='gradient'"):
        model.fit(X, np.abs(y))


@pytest.mark.parametrize("step_matrix", ["diagonal", "scalar"])
def test_gradient_refuses_other_step_matrices(step_matrix: str) -> None:
    with pytest.raises(ValueError, match=rf"step_matrix='{step_matrix}' .* Set strategy='greedy'"):
        RFRBoostRegressor(**SMALL, step_matrix=step_matrix).fit(*plain())


@pytest.mark.parametrize("estimator", ["RFRBoostRegressor", "RFRBoostClassifier"])
def test_identity_refuses_another_width(estimator: str) -> None:
    model = ALL_FOUR[estimator]().set_params(hidden_dim=7)
    with pytest.raises(ValueError, match=r"3 columns.*hidden_dim=7.*initial='swim'"):
        model.fit(*two_classes())


@pytest.mark.parametrize("estimator", ALL_FOUR)
def test_refuses_bad_weights(estimator: str) -> None:
    X, y = two_classes()
    model, ones = ALL_FOUR[estimator](), np.ones(N)
    with pytest.raises(ValueError, match="negative entries; weights must be zero or positive"):
        model.fit(X, y, sample_weight=np.where(np.arange(N) == 3, -1.0, ones))
    with pytest.raises(ValueError, match=r"zero for every row|must contain at least one non-zero"):
        model.fit(X, y, sample_weight=0 * ones)
    with pytest.raises(ValueError, match="sample_weight contains NaN"):
        model.fit(X, y, sample_weight=np.nan * ones)
    with pytest.raises(ValueError, match="sample_weight contains infinity"):
        model.fit(X, y, sample_weight=np.inf * ones)
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(15,\), expected \(16,\)"):
        model.fit(X, y, sample_weight=ones[:-1])
    with pytest.raises(ValueError, match="Sample weights must be 1D"):
        model.fit(X, y, sample_weight=ones[:, None])


TOO_LARGE = r"Column 1 of X holds values as large as 1e\+61.*Rescale it, for example with"


@pytest.mark.parametrize("estimator", [*ALL_FOUR, *TRANSFORMERS])
@pytest.mark.parametrize("sign", [1, -1])
def test_refuses_columns_beyond_all_measure(estimator: str, sign: int) -> None:
    X, y = two_classes()
    X[2, 1] = sign * 1e61
    with pytest.raises(ValueError, match=TOO_LARGE):
        {**ALL_FOUR, **TRANSFORMERS}[estimator]().fit(X, y)
    # What the message advises helps.
    model = {**ALL_FOUR, **TRANSFORMERS}[estimator]()
    assert np.isfinite(model.fit(StandardScaler().fit_transform(X), y).transform(X / 1e61)).all()


@pytest.mark.parametrize("estimator", [*ALL_FOUR, *TRANSFORMERS])
def test_refuses_columns_beyond_all_measure_at_prediction(estimator: str) -> None:
    X, y = two_classes()
    model = {**ALL_FOUR, **TRANSFORMERS}[estimator]().fit(X, y)
    X[2, 1] = 1e61
    for method in ("predict", "transform", "predict_proba"):
        if hasattr(model, method):
            with pytest.raises(ValueError, match=TOO_LARGE):
                getattr(model, method)(X)


def test_a_column_too_large_is_named() -> None:
    X, y = plain()
    frame = pd.DataFrame(X, columns=["age", "income", "debt"]).assign(income=1e61)
    with pytest.raises(ValueError, match="Column 'income' of X"):
        RFRBoostRegressor(**SMALL).fit(frame, y)


def test_sample_splitting_refuses_more_layers_than_rows() -> None:
    with pytest.raises(
        ValueError, match=r"only 3 rows\. Use fewer layers or sample_splitting=False"
    ):
        RFRBoostRegressor(4, sample_splitting=True).fit(*plain(3))


def test_refuses_to_predict_before_fit() -> None:
    for make in ALL_FOUR.values():
        with pytest.raises(ValueError, match="is not fitted yet"):
            make().predict(plain()[0])


@pytest.mark.parametrize("task", ["numbers", "classes"])
def test_rows_to_stop_by_come_in_pairs(task):
    X = np.random.default_rng(0).normal(size=(90, 2))
    y = X[:, 0] if task == "numbers" else np.digitize(X[:, 0], [-0.5, 0.5])
    model = RFRBoostRegressor() if task == "numbers" else RFRBoostClassifier()
    with pytest.raises(ValueError, match="y_val was passed without X_val"):
        model.fit(X, y, y_val=y)
    with pytest.raises(ValueError, match="X_val was passed without y_val"):
        model.fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="X_val has 90 rows, but y_val has 80"):
        model.fit(X, y, X_val=X, y_val=y[:80])
    if task == "classes":
        with pytest.raises(ValueError, match="y_val must contain every class of y; '2' is missing"):
            model.fit(X, y, X_val=X[y < 2], y_val=y[y < 2])
