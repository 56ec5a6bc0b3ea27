"""Real scikit-learn behaviour: its own check suite, its tools, data frames, and clear errors."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from model_zoo import CLASSIFIERS, REGRESSORS, classification, regression
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import StackingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    parametrize_with_checks,
)

from rfrboost import (
    FourierFeatures,
    GaussianFeatures,
    RFNNClassifier,
    RFNNRegressor,
    RFRBoostClassifier,
    RFRBoostRegressor,
    SWIMFeatures,
)

CHECKED = [
    RFRBoostRegressor(n_bags=2, n_features=30),
    RFRBoostClassifier(n_bags=2, n_features=30),
    RFNNRegressor(30),
    RFNNClassifier(30),
    SWIMFeatures(),
    GaussianFeatures(),
    FourierFeatures(),
    RFRBoostRegressor(2, strategy="greedy", n_features=30),
    RFRBoostRegressor(2, strategy="greedy", step_matrix="diagonal", initial="swim", hidden_dim=30),
    RFRBoostRegressor(2, strategy="greedy", step_matrix="scalar", initial="swim", hidden_dim=30),
    RFRBoostRegressor(2, loss="huber", n_features=30),
    RFRBoostRegressor(2, features="fourier", normalize=True, n_features=30),
    RFRBoostClassifier(2, features="gaussian", normalize=True, n_features=30),
]


@parametrize_with_checks(CHECKED)
def test_scikit_learns_own_suite(estimator, check):
    """No expected failures."""
    check(estimator)


@pytest.mark.parametrize("estimator", CHECKED, ids=lambda estimator: type(estimator).__name__)
def test_a_check_outside_the_suite_forbids_columns_in_another_order(estimator, monkeypatch):
    """scikit-learn applies this check to its own estimators only.

    It fails here where the columns of fit come in another order, and nowhere before; the rest that
    it asks for is in test_columns_by_name.py.
    """
    kind = type(estimator)
    # The method that the check calls first.
    method = "predict" if hasattr(kind, "predict") else "transform"
    original = getattr(kind, method)
    orders = []

    def recorded(self, X):
        orders.append(list(getattr(X, "columns", [])))
        return original(self, X)

    monkeypatch.setattr(kind, method, recorded)
    with pytest.raises(AssertionError, match="did not raise"):
        check_dataframe_column_names_consistency(kind.__name__, estimator)
    assert orders[0]
    assert orders[-1] == orders[0][::-1]


def small(estimator):
    return clone(estimator).set_params(random_state=0)


def test_pipelines_and_cross_validation():
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), RFRBoostClassifier(2, n_features=64, random_state=0))
    assert cross_val_score(model, X, y, cv=3).mean() > 0.95


def test_grid_search_picks_what_is_better():
    X, y = regression(300)
    search = GridSearchCV(
        RFRBoostRegressor(2, n_features=64, random_state=0),
        {"n_layers": [0, 3], "l2_step": [1e-3, 1e3]},
        cv=3,
    )
    assert search.fit(X, y).best_params_ == {"n_layers": 3, "l2_step": 1e-3}


def test_stacking_and_calibration():
    X, y = load_diabetes(return_X_y=True)
    stack = StackingRegressor(
        [("rfrboost", small(REGRESSORS["gradient"])), ("ridge", Ridge())], cv=3
    )
    assert stack.fit(X, y).score(X, y) > 0.4
    X, y = load_iris(return_X_y=True)
    calibrated = CalibratedClassifierCV(small(CLASSIFIERS["rfrboost"]), cv=3).fit(X, y)
    assert calibrated.score(X, y) > 0.9


@pytest.mark.parametrize(
    "estimator", [*REGRESSORS.values()][:1] + [*CLASSIFIERS.values()][:1] + [SWIMFeatures(8)]
)
def test_set_output_names_columns(estimator):
    X, y = classification() if hasattr(estimator, "predict_proba") else regression()
    frame = pd.DataFrame(X, columns=list("abcd"))
    transformed = clone(estimator).set_output(transform="pandas").fit(frame, y).transform(frame)
    name = type(estimator).__name__.lower()
    assert list(transformed.columns[:2]) == [f"{name}0", f"{name}1"]
    assert clone(estimator).set_output(transform="polars").fit(frame, y).transform(frame).shape[
        0
    ] == len(X)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames(frame):
    X, y = classification()
    table = frame({name: X[:, j] for j, name in enumerate("abcd")})
    model = small(CLASSIFIERS["rfrboost"]).fit(table, y)
    assert list(model.feature_names_in_) == list("abcd")
    np.testing.assert_allclose(
        model.predict_proba(table),
        small(CLASSIFIERS["rfrboost"]).fit(X, y).predict_proba(X),
        rtol=1e-9,
    )
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame({name: X[:, j] for j, name in enumerate("abce")}))


def test_metadata_routing_carries_weights():
    X, y = regression()
    w = np.linspace(0.1, 2, len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        model = small(REGRESSORS["gradient"]).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, y, sample_weight=w)
    alone = small(REGRESSORS["gradient"]).fit(StandardScaler().fit_transform(X), y, sample_weight=w)
    np.testing.assert_array_equal(
        pipeline[-1].network_.heads[-1].matrix, alone.network_.heads[-1].matrix
    )


@pytest.mark.parametrize(
    "labels", [[True, False], ["no", "yes"], [3, 7], [1.0, 2.0], ["a", "b", "c"]]
)
def test_labels_of_any_type(labels):
    X, _ = classification()
    y = np.array(labels)[np.arange(len(X)) % len(labels)]
    X[np.arange(len(X)), np.arange(len(X)) % len(labels)] += 6
    model = small(CLASSIFIERS["rfrboost"]).fit(X, y)
    assert model.predict(X).dtype == y.dtype
    assert model.score(X, y) > 0.95
    assert model.decision_function(X).shape == ((len(X),) if len(labels) == 2 else (len(X), 3))


def test_it_is_worth_its_layers():
    """On a smooth nonlinear target RFRBoost beats one layer, and one layer beats a line."""
    X, y = regression(1200, columns=5)
    scores = [
        m.fit(X[:800], y[:800]).score(X[800:], y[800:])
        for m in (
            Ridge(),
            RFNNRegressor(64, random_state=0),
            RFRBoostRegressor(6, n_features=128, random_state=0),
        )
    ]
    assert scores[0] < scores[1] < scores[2]
    X, y = classification(1200, columns=5)
    scores = [
        m.fit(X[:800], y[:800]).score(X[800:], y[800:])
        for m in (LogisticRegression(), RFRBoostClassifier(6, n_features=128, random_state=0))
    ]
    assert scores[0] + 0.1 < scores[1]


def test_verbose_shows_progress_and_only_then(capsys):
    X, y = regression()
    small(REGRESSORS["gradient"]).fit(X, y)
    assert capsys.readouterr().err == ""
    small(REGRESSORS["gradient"]).set_params(verbose=1).fit(X, y)
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(r"\[█+\] 100%  fitted, layer 3/3, loss [\d.]+, [\d.]+ s$", line)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_layers": 2, "strategy": "greedy", "loss": "huber"}, "strategy='gradient'"),
        ({"n_layers": 2, "step_matrix": "diagonal"}, "strategy='greedy'"),
        ({"n_layers": 2, "hidden_dim": 7}, "initial='swim'"),
        ({"hidden_dim": 7}, "Set n_layers to a number"),
        ({"strategy": "greedy"}, "Set n_layers to a number"),
        ({"learning_rate": (1.0, 0.5)}, "Set n_layers to a number"),
        ({"n_features": (0, 0)}, "not both 0"),
        ({"n_features": (1, 2, 3)}, "pair"),
        ({"n_layers": 2, "learning_rate": (1.0, -0.5)}, "s >= 0"),
        ({"l2_head": -1.0}, "l2_head"),
        ({"features": "swiim"}, "features"),
        ({"loss": "hubert"}, "loss"),
        ({"n_layers": 1000, "sample_splitting": True}, "fewer layers"),
    ],
)
def test_clashing_parameters_say_what_to_do(params, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        RFRBoostRegressor(**params).fit(*regression())


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_layers": 1}, "only adds layers"),
        ({"n_layers": 3, "sample_splitting": True}, "sample_splitting"),
    ],
)
def test_a_warm_start_that_cannot_go_on_says_why(params, message):
    X, y = regression()
    model = RFRBoostRegressor(2, n_features=8, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.set_params(**params).fit(X, y)
    with pytest.raises(ValueError, match="another number of outputs"):
        model.set_params(n_layers=3, sample_splitting=False).fit(X, np.column_stack([y, y]))
