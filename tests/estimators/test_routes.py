"""The two routes: what "auto" means in each, what each refuses, and fits that fail."""

import inspect
import re
from dataclasses import fields

import numpy as np
import pytest
from model_zoo import classification, regression
from small_sizes import with_sizes

from rfrboost import RFNNRegressor, RFRBoostClassifier, RFRBoostRegressor, RowBlocks, load
from rfrboost._estimators.parameters import (
    DEFAULTS,
    ENSEMBLE,
    NO_EFFECT,
    ROUTES,
    SINGLE,
    Parameters,
)
from rfrboost._numerics.sizes import Sizes

#: for every parameter that some route ignores, a legal value other than its default
OTHER = {
    "n_bags": 3,
    "categorical_features": [0],
    "max_seconds": 60.0,
    "scoring": "accuracy",
    "snapshot": "families.rfrboost",
    "strategy": "greedy",
    "step_matrix": "scalar",
    "initial": "swim",
    "initial_scale": 0.3,
    "hidden_dim": 7,
    "normalize": True,
    "sample_splitting": True,
    "warm_start": True,
}
MANY = Sizes(sampled_rows=60)


def fits_of(model):
    """Fits of a model to arrays and to row blocks that are many."""
    X, y = regression(100) if isinstance(model, RFRBoostRegressor) else classification(100, 2)
    with_sizes(model, MANY)
    return [lambda: model.fit(X, y), lambda: model.fit(RowBlocks.from_arrays(X, y))]


def ignored(route):
    return [name for name, by_route in DEFAULTS.items() if by_route[route] is NO_EFFECT]


@pytest.mark.parametrize(("route", "name"), [(r, n) for r in ROUTES for n in ignored(r)])
def test_a_parameter_without_effect_is_refused(route, name):
    n_layers = 3 if route == SINGLE else "auto"
    models = [RFRBoostRegressor(n_layers, **{name: OTHER[name]})]
    if name in inspect.signature(RFRBoostClassifier).parameters:
        models.append(RFRBoostClassifier(n_layers, **{name: OTHER[name]}))
    for model in models:
        for fit in fits_of(model):
            with pytest.raises(ValueError, match=rf"{name}=.* has no effect in .*leave {name}="):
                fit()


def test_several_that_have_no_effect_are_refused_too():
    with pytest.raises(ValueError, match="has no effect in a single network"):
        RFRBoostRegressor(3, max_seconds=1e-9, n_bags=99).fit(*regression())
    with pytest.raises(ValueError, match="has an effect with loss='quantile' only"):
        RFRBoostRegressor(3, quantile=0.9).fit(*regression())
    with pytest.raises(ValueError, match="has an effect with loss='quantile' only"):
        RFNNRegressor(5, quantile=(0.1, 0.9)).fit(*regression())
    with pytest.raises(ValueError, match="no effect with initial='identity'"):
        RFRBoostRegressor(3, initial_scale=0.3).fit(*regression())
    with pytest.raises(ValueError, match="one number or 'auto'"):
        RFRBoostRegressor(learning_rate=(1.0, 0.5)).fit(*regression())


KEPT = [
    {"features": ("swim", "sparse")},
    {"features": ("bumps",)},
    {"features": "sparse", "n_bags": 3},
    {"l2_step": 0.5, "l2_head": 2.0},
]


@pytest.mark.parametrize("kept", KEPT, ids=str)
def test_what_is_set_is_kept_wherever_the_rows_are(kept):
    """The same model from arrays and from row blocks, and another one than without it."""
    X, _ = regression(100)
    predicted = []
    for given in (kept, {}):
        model = RFRBoostRegressor(**{"n_features": (4, 4), "n_bags": 2, **given}, random_state=0)
        predicted += [fit().predict(X) for fit in fits_of(model)]
    np.testing.assert_array_equal(predicted[0], predicted[1])
    np.testing.assert_array_equal(predicted[2], predicted[3])
    assert not np.allclose(predicted[0], predicted[2])


def test_the_table_of_defaults_is_about_parameters_and_complete():
    names = {field.name for field in fields(Parameters)}
    assert set(DEFAULTS) <= names
    assert all(set(by_route) == set(ROUTES) for by_route in DEFAULTS.values())
    automatic = {f.name for f in fields(Parameters) if f.default == "auto"}
    assert automatic <= set(DEFAULTS)
    # Whatever has no effect somewhere is tried above.
    assert set(OTHER) == {name for route in ROUTES for name in ignored(route)}


@pytest.mark.parametrize("cls", [RFRBoostRegressor, RFRBoostClassifier])
def test_estimators_have_the_defaults_of_the_parameters(cls):
    shared = {field.name: field.default for field in fields(Parameters)}
    for name, parameter in inspect.signature(cls).parameters.items():
        assert parameter.default == shared[name], name


def documented(cls, section: str) -> list[str]:
    """The names below a heading of a docstring, in order."""
    text = inspect.getdoc(cls).partition(f"\n{section}\n{'-' * len(section)}\n")[2]
    entries = re.split(r"\n\n\w[\w ]*\n-+\n", text)[0]
    lines = re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", entries, re.MULTILINE)
    return [name for line in lines for name in line.split(", ")]


@pytest.mark.parametrize("cls", [RFRBoostRegressor, RFRBoostClassifier])
def test_parameters_of_single_networks_are_documented_apart(cls):
    names = list(inspect.signature(cls).parameters)
    apart = documented(cls, "Other Parameters")
    assert sorted(apart) == sorted(set(ignored(ENSEMBLE)) & set(names))
    assert sorted(documented(cls, "Parameters") + apart) == sorted(names)


def test_no_parameter_of_the_classifier_has_a_single_legal_value():
    names = inspect.signature(RFRBoostClassifier).parameters
    assert not {"strategy", "step_matrix", "loss", "quantile"} & set(names)


def single_defaults():
    return {name: by_route[SINGLE] for name, by_route in DEFAULTS.items()}


def test_auto_in_a_single_network_is_what_the_table_says():
    X, y = regression(80)
    table = single_defaults()
    given = {n: table[n] for n in ("features", "feature_scale", "l2_head", "l2_step", "metric")}
    given |= {"n_features": (10, 10), "learning_rate": table["learning_rate"]}
    implied = RFRBoostRegressor(2, n_features=(10, 10), random_state=0).fit(X, y)
    said = RFRBoostRegressor(2, random_state=0, **given).fit(X, y)
    assert np.array_equal(implied.predict(X), said.predict(X))


@pytest.mark.parametrize("classes", [0, 3], ids=["regression", "classification"])
def test_auto_in_the_ensemble_is_what_the_table_says(classes):
    X, y = classification(90, classes) if classes else regression(90)
    cls = RFRBoostClassifier if classes else RFRBoostRegressor
    table = {name: by_route[ENSEMBLE] for name, by_route in DEFAULTS.items()}
    said = {n: table[n] for n in ("features", "learning_rate", "metric", "preprocess", "n_bags")}
    said["n_features"] = table["n_features"].of(len(y))
    implied = cls(random_state=0).fit(X, y)
    assert np.array_equal(
        implied.oof_prediction_, cls(random_state=0, **said).fit(X, y).oof_prediction_
    )


FAILURES = {
    "missing value in y": lambda model, X, y: model.fit(
        X, np.where(np.arange(len(y)) == 3, np.nan, y)
    ),
    "another length": lambda model, X, y: model.fit(X[:-1], y),
    "negative weights": lambda model, X, y: model.fit(X, y, -np.ones(len(y))),
    "validation rows of other columns": lambda model, X, y: model.fit(
        X, y, X_val=X[:, :2], y_val=y
    ),
    "parameters that clash": lambda model, X, y: model.set_params(n_layers=2, n_bags=9).fit(X, y),
    "words": lambda model, X, y: model.fit(np.full(X.shape, "a", object), np.full(len(y), "b")),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_fit_that_fails_leaves_the_model_as_it_was(failure, tmp_path):
    X, y = regression(80)
    X = X * np.array([1.0, 100.0, 1e-3] + [1.0] * (X.shape[1] - 3))
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y)
    before = model.predict(X), model.oof_score_, model.n_features_in_
    with pytest.raises(ValueError, match=r"."):
        FAILURES[failure](model, X, y)
    model.set_params(n_layers="auto", n_bags=2)
    assert np.array_equal(model.predict(X), before[0])
    assert (model.oof_score_, model.n_features_in_) == before[1:]
    model.save(tmp_path / "model.rfrboost")
    assert np.array_equal(load(tmp_path / "model.rfrboost").predict(X), before[0])


class Interrupting:
    """Features that are never drawn: the user presses Ctrl-C."""

    def n_rows(self, n_features):
        return 2

    def sample(self, Z, Y, n_features, rng):
        raise KeyboardInterrupt


@pytest.mark.parametrize("n_layers", [2, "auto"])
def test_an_interrupted_fit_leaves_the_model_as_it_was(n_layers):
    X, y = regression(80)
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y)
    before = model.predict(X)
    other = model.get_params() | {"n_layers": n_layers, "features": Interrupting()}
    if n_layers != "auto":
        other["n_bags"] = 5
    model.set_params(**other)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :3], 2 * y)
    assert np.array_equal(model.predict(X), before)


def test_a_new_fit_forgets_what_only_the_last_one_knew():
    X, y = regression(80)
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y)
    assert hasattr(model, "oof_score_")
    model.set_params(n_layers=1, n_bags=5).fit(X, y)
    for name in ("oof_score_", "oof_prediction_", "feature_importances_", "feature_names_in_"):
        assert not hasattr(model, name)
