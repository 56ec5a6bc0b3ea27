"""Numbers that never break: hypothesis goes looking for data and parameters that do it."""

import re
from typing import Any

import numpy as np
from hard_tables import (
    SMALL,
    Array,
    assert_finite,
    assert_sound_classifier,
    assert_sound_regressor,
    in_range,
)
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rfrboost import (
    RFNNRegressor,
    RFRBoostClassifier,
    RFRBoostRegressor,
    SWIMFeatures,
)

# The refusals that random data may rightly meet. Anything else is a defect, LinAlgError included,
# which is a ValueError by inheritance only.
RIGHTFUL = re.compile(
    r"Rescale|needs at least two classes|zero for every row|at least one non-zero|needs y >= 0"
    r"|sample_splitting gives each|The fit diverged"
)


SEARCH = settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


ROWS = st.integers(2, 12)


SEEDS = st.integers(0, 2**16)


COLUMN_KINDS = ["normal", "binary", "constant", "zero", "copy", "nearly constant", "heavy"]


@st.composite
def columns(draw: Any, n: int, largest_exponent: int = 30) -> Array:
    """A column of some kind and scale; "copy" is the same for every draw with the same n."""
    kind = draw(st.sampled_from(COLUMN_KINDS))
    scale = 10.0 ** draw(st.integers(-largest_exponent, largest_exponent))
    rng = np.random.default_rng(0 if kind == "copy" else draw(SEEDS))
    z = rng.standard_normal(n)
    return (
        scale
        * {
            "normal": z,
            "copy": z,
            "binary": (z > 0).astype(float),
            "constant": np.ones(n),
            "zero": np.zeros(n),
            "nearly constant": 1 + 1e-14 * z,
            "heavy": np.sign(z) * np.abs(z) ** 20,
        }[kind]
    )


@st.composite
def tables(draw: Any, largest_exponent: int = 30) -> Array:
    n = draw(ROWS)
    X = np.column_stack(
        [draw(columns(n, largest_exponent)) for _ in range(draw(st.integers(1, 5)))]
    )
    repeated_rows = draw(st.lists(st.integers(0, n - 1), min_size=0, max_size=3))
    return np.vstack([X, X[repeated_rows]])


@st.composite
def targets(draw: Any, n: int, largest_exponent: int = 150) -> Array:
    outputs = draw(st.integers(0, 3))
    Y = np.column_stack([draw(columns(n, largest_exponent)) for _ in range(max(outputs, 1))])
    return Y if outputs else Y[:, 0]


@st.composite
def weights(draw: Any, n: int) -> Array | None:
    """None, or weights of which some are zero and some tiny."""
    if draw(st.booleans()):
        return None
    choices = st.sampled_from([0.0, 1e-300, 1e-20, 0.5, 1.0, 3.0, 1e20])
    return np.array(draw(st.lists(choices, min_size=n, max_size=n)))


PENALTIES = st.sampled_from([0.0, 1e-300, 1e-12, 1e-3, 1.0, 1e6, 1e30])


FEATURES: dict[str, Any] = {
    "features": st.sampled_from(["swim", "gaussian", "uniform", "fourier"]),
    "feature_scale": st.sampled_from([1e-6, 0.5, 2.0, 1e6]),
    "pair_sampling": st.sampled_from(["gradient", "uniform"]),
    "activation": st.sampled_from(["tanh", "relu", "sigmoid", "sin", "cos"]),
    "l2_head": PENALTIES,
    "random_state": st.integers(0, 3),
}


BOOSTING: dict[str, Any] = {
    **FEATURES,
    "n_layers": st.integers(0, 3),
    "n_features": st.sampled_from([1, 8, (0, 5), (5, 0), (8, 8)]),
    "initial": st.sampled_from(["identity", "swim", "gaussian", "uniform"]),
    "learning_rate": st.sampled_from([0.1, 0.5, 1.0, (1.0, 0.5)]),
    "l2_step": PENALTIES,
    "normalize": st.booleans(),
    "sample_splitting": st.booleans(),
}


STEPS = st.one_of(
    st.fixed_dictionaries(
        {
            "strategy": st.just("greedy"),
            "step_matrix": st.sampled_from(["dense", "diagonal", "scalar"]),
        }
    ),
    st.fixed_dictionaries(
        {
            "loss": st.sampled_from(["squared_error", "huber", "poisson"]),
        }
    ),
    st.fixed_dictionaries(
        {"loss": st.just("quantile"), "quantile": st.sampled_from([0.01, 0.5, 0.9])}
    ),
)


def boosting_parameters(draw: Any) -> dict[str, Any]:
    params = draw(st.fixed_dictionaries(BOOSTING))
    return params if params["initial"] == "identity" else {**params, "hidden_dim": 7}


def fitted_or_refused(model: Any, X: Array, y: Array, w: Array | None) -> bool:
    """Whether the model took the data; if it did not, it must have said why."""
    try:
        model.fit(X, y, sample_weight=w)
    except ValueError as error:
        refusal = error
    else:
        return True
    assert RIGHTFUL.search(str(refusal)), f"no rightful refusal: {refusal!r}"
    return False


@SEARCH
@given(st.data())
def test_any_regression_is_finite_or_refused(data: st.DataObject) -> None:
    X = data.draw(tables())
    y, w = data.draw(targets(len(X))), data.draw(weights(len(X)))
    params = boosting_parameters(data.draw) | data.draw(STEPS)
    model = RFRBoostRegressor(**params)
    y = in_range(model, y)
    if fitted_or_refused(model, X, y, w):
        assert_sound_regressor(model, X, y)


@SEARCH
@given(st.data())
def test_any_classification_is_finite_or_refused(data: st.DataObject) -> None:
    X = data.draw(tables())
    y = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(X), max_size=len(X))))
    model = RFRBoostClassifier(**boosting_parameters(data.draw))
    if fitted_or_refused(model, X, y, data.draw(weights(len(X)))):
        assert_sound_classifier(model, X, y)


@SEARCH
@given(st.data())
def test_any_single_layer_is_finite_or_refused(data: st.DataObject) -> None:
    X = data.draw(tables(60))
    params = data.draw(st.fixed_dictionaries({**FEATURES, "n_features": st.integers(1, 20)}))
    loss = data.draw(st.sampled_from(["squared_error", "huber", "quantile", "poisson"]))
    model = RFNNRegressor(**params, loss=loss)
    y = in_range(model, data.draw(targets(len(X), 300)))
    if fitted_or_refused(model, X, y, data.draw(weights(len(X)))):
        assert_sound_regressor(model, X, y)


@SEARCH
@given(st.data())
def test_any_transform_is_finite(data: st.DataObject) -> None:
    X = data.draw(tables())
    y = data.draw(st.one_of(st.none(), targets(len(X))))
    model = SWIMFeatures(
        data.draw(st.integers(1, 20)),
        feature_scale=data.draw(FEATURES["feature_scale"]),
        pair_sampling=data.draw(FEATURES["pair_sampling"]),
        activation=data.draw(FEATURES["activation"]),
        random_state=0,
    )
    features = model.fit(X, y).transform(X)
    assert_finite(features, (len(X), model.n_features), "transform")


# No two infinities of opposite sign, nor sums that overflow both ways: scikit-learn's own search
# for NaN adds everything up and would warn of inf − inf.
FLOATS = st.one_of(st.floats(-1e300, 1e300), st.sampled_from([np.nan, np.inf]))


@SEARCH
@given(st.data())
def test_any_floats_at_all_are_fitted_or_refused(data: st.DataObject) -> None:
    """Hypothesis's own floats, fond of subnormals and extremes, with NaN and infinity."""
    n, d = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    X = np.array(data.draw(st.lists(FLOATS, min_size=n * d, max_size=n * d))).reshape(n, d)
    y = np.array(data.draw(st.lists(FLOATS, min_size=n, max_size=n)))
    model = RFRBoostRegressor(**SMALL, **data.draw(STEPS))
    try:
        model.fit(X, y)
    except ValueError as error:
        message = str(error)
        if not (np.isfinite(X).all() and np.isfinite(y).all()):
            assert re.search(r"(X|y) contains (NaN|infinity)", message), message
        else:
            assert RIGHTFUL.search(message), message
        return
    assert_sound_regressor(model, X, y)
