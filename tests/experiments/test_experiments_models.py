"""Models of the experiments: scores, penalties, published and searched parameters."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from experiment_runs import job, variant
from sklearn.linear_model import LogisticRegression

from experiments.commands import replay
from experiments.data import protocols, tables
from experiments.models import variants
from experiments.models.baselines import SOURCES, baseline
from experiments.models.coded import CodedClassifier
from experiments.models.recipes import Recipe, build
from experiments.models.scoring import accuracy, fit_and_score, rmse
from experiments.requests import UsageError


def test_scores_are_rmse_and_accuracy():
    assert rmse(np.array([0.0, 0.0]), np.array([3.0, 4.0])) == pytest.approx(np.sqrt(12.5))
    assert accuracy(np.array([0, 1, 2, 1]), np.array([0, 1, 1, 1])) == 0.75


@pytest.mark.parametrize("metric", [rmse, accuracy])
def test_a_column_of_predictions_is_refused_and_not_broadcast(metric):
    with pytest.raises(ValueError, match=r"shape \(3, 1\)"):
        metric(np.zeros(3), np.zeros((3, 1)))


def test_ridge_penalty_weighs_the_mean_squared_error():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 3)).astype(np.float32), rng.normal(size=60)
    l2 = 0.3
    model = build(Recipe("Ridge", {"l2_head": l2}), len(y), random_state=0).fit(X, y)
    Xc = X.astype(float) - X.astype(float).mean(axis=0)
    # The gradient of mean squared error + l2 * |w|^2 vanishes at the solution.
    w = model[-1].coef_
    np.testing.assert_allclose(Xc.T @ (Xc @ w - (y - y.mean())) / len(y) + l2 * w, 0, atol=1e-10)


def test_logistic_penalty_has_no_half():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(80, 2)), rng.integers(0, 2, 80)
    l2 = 0.05
    model = build(Recipe("LogisticRegression", {"l2_head": l2}), len(y), random_state=0).fit(X, y)
    w, p = model[-1].coef_[0], model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(X.T @ (p - y) / len(y) + 2 * l2 * w, 0, atol=1e-4)


def test_a_score_that_is_not_a_number_is_an_error():
    class Diverged:
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.full(len(X), np.nan)

    fold = protocols.Fold(np.zeros((2, 1)), np.zeros(2), np.zeros((1, 1)), np.zeros(1))
    with pytest.raises(ArithmeticError, match="not finite"):
        fit_and_score(Diverged(), fold, "regression")


BOOSTED = {
    "in_dim": 8, "out_dim": 1, "feature_type": "SWIM", "upscale_type": "identity",
    "randfeat_xt_dim": 512, "randfeat_x0_dim": 256, "activation": "tanh", "use_batchnorm": False,
    "add_features": False, "n_layers": 4, "l2_reg": 0.01, "l2_ghat": 0.2, "boost_lr": 0.25,
    "hidden_dim": 72, "SWIM_scale": 1.5,
}  # fmt: skip
COMMON = {
    "n_layers": 4, "features": "swim", "feature_scale": 1.5, "activation": "tanh",
    "learning_rate": 0.25, "l2_step": 0.2, "l2_head": 0.01,
}  # fmt: skip
IID = {"feature_type": "iid", "iid_scale": 3.0}


def without(settings: dict, key: str) -> dict:
    return {name: value for name, value in settings.items() if name != key}


def test_gradient_and_dense_start_from_the_inputs_with_two_widths():
    wide = {"initial": "identity", "n_features": (512, 256)}
    gradient = variant("gradient-swim").recipe(BOOSTED)
    assert gradient == Recipe("RFRBoostRegressor", COMMON | wide | {"strategy": "gradient"})
    dense = variant("dense-iid").recipe(without(BOOSTED, "SWIM_scale") | IID)
    greedy = {
        "strategy": "greedy",
        "step_matrix": "dense",
        "features": "uniform",
        "feature_scale": 3.0,
    }
    assert dense == Recipe("RFRBoostRegressor", COMMON | wide | greedy)


@pytest.mark.parametrize("step_matrix", ["diagonal", "scalar"])
def test_diagonal_and_scalar_start_from_a_layer_of_the_common_width(step_matrix):
    expected = COMMON | {
        "strategy": "greedy",
        "step_matrix": step_matrix,
        "initial": "swim",
        "hidden_dim": 72,
    }
    swim = variant(f"{step_matrix}-swim").recipe(BOOSTED | {"upscale_type": "SWIM"})
    assert swim == Recipe("RFRBoostRegressor", expected)
    # With i.i.d. features the first layer is SWIM still, at the published code's default scale.
    iid = variant(f"{step_matrix}-iid").recipe(
        without(BOOSTED, "SWIM_scale") | IID | {"upscale_type": "SWIM"}
    )
    different = {"features": "uniform", "feature_scale": 3.0, "initial_scale": 0.5}
    assert iid == Recipe("RFRBoostRegressor", expected | different)


def test_random_feature_networks_and_baselines():
    layer = {
        "upscale_type": "iid",
        "hidden_dim": 90,
        "iid_scale": 2.0,
        "n_layers": 0,
        "activation": "tanh",
    }
    expected = {"features": "uniform", "n_features": 90, "feature_scale": 2.0, "l2_head": 0.5}
    assert variant("rfnn-iid").recipe(layer | {"l2_reg": 0.5}) == Recipe("RFNNRegressor", expected)
    assert variant("rfnn-iid", "classification").recipe(layer | {"l2_cls": 0.5}) == Recipe(
        "RFNNClassifier", expected
    )
    assert variant("ridge").recipe({"l2_reg": 0.5}) == Recipe("Ridge", {"l2_head": 0.5})
    logistic = variant("logistic", "classification").recipe({"l2_lambda": 0.5, "n_classes": 3})
    assert logistic == Recipe("LogisticRegression", {"l2_head": 0.5})


def test_classifier_takes_its_own_head_penalty():
    settings = without(BOOSTED, "l2_reg") | {"l2_cls": 0.07, "do_linesearch": True}
    recipe = variant("rfrboost-swim", "classification").recipe(settings)
    assert recipe.estimator == "RFRBoostClassifier"
    assert recipe.parameters["l2_head"] == 0.07


@pytest.mark.parametrize(
    "setting", [{"use_batchnorm": True}, {"activation": "relu"}, {"do_linesearch": False}]
)
def test_a_published_setting_we_cannot_repeat_is_refused(setting):
    with pytest.raises(UsageError, match=next(iter(setting))):
        variant("gradient-swim").recipe(BOOSTED | setting)


def test_our_estimators_get_the_recipe_and_the_fold_as_seed(made_up, monkeypatch):
    built = []

    class RFNNRegressor:
        def __init__(self, *, n_features, random_state):
            built.append((n_features, random_state))

        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.zeros(len(X))

    monkeypatch.setitem(sys.modules, "rfrboost", SimpleNamespace(RFNNRegressor=RFNNRegressor))
    scores = replay.refit(job(3, Recipe("RFNNRegressor", {"n_features": 90})), made_up / "data")
    assert built == [(90, 3)]
    assert scores.test_score == pytest.approx(1, abs=0.2), (
        "zero is the mean of a standardised label"
    )


@pytest.mark.parametrize(
    "name", [v.name for v in variants.VARIANTS if v.task == "regression" and v.name != "ridge"]
)
def test_our_estimators_fit_what_is_translated(made_up, name):
    settings = BOOSTED | {
        "feature_type": "iid" if name.endswith("iid") else "SWIM",
        "upscale_type": "iid" if name == "rfnn-iid" else "SWIM",
        "iid_scale": 0.5,
        "randfeat_xt_dim": 32,
        "randfeat_x0_dim": 32,
    }
    scores = replay.refit(job(0, variant(name).recipe(settings)), made_up / "data")
    # A linear label of variance 9 with unit noise: a third is the floor, one is the mean's score.
    assert 0.25 < scores.test_score < 0.6


def test_every_published_run_of_our_variants_translates(real):
    folder, runs = real
    plan = replay.plan(runs, tables.listed_tables(tables.FACTS), variants.VARIANTS, list(range(5)))
    n_models = {"regression": 11, "classification": 5}
    assert len(plan) == 5 * sum(
        n_models[table.task] for table in tables.listed_tables(tables.FACTS)
    )
    assert len({j.result_path(folder) for j in plan}) == len(plan)
    for j in plan:
        build(j.recipe, n_train=100, random_state=0)  # an unknown parameter would raise


def test_labels_with_gaps_keep_their_names_and_their_probabilities():
    X = np.repeat(np.eye(2), 20, axis=0)
    y = np.repeat([2, 5], 20)
    model = CodedClassifier(LogisticRegression()).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    np.testing.assert_array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def frame_with_levels(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of a category that decides y, with a missing value and a name that LightGBM refuses."""
    levels = pd.Categorical.from_codes(np.arange(n) % 3, ["a", "b", "c"])
    frame = pd.DataFrame({"level {1}": levels, "number": np.linspace(0, 1, n)})
    frame.iloc[0, 0] = None
    return frame, (np.arange(n) % 3 == 1).astype(np.intp)


@pytest.mark.parametrize("ending", ["Regressor", "Classifier"])
@pytest.mark.parametrize("library", ["CatBoost", "LGBM", "XGB"])
def test_libraries_of_trees_read_categories_of_frames(library, ending):
    pytest.importorskip(SOURCES[library + ending].module)
    X, y = frame_with_levels(90)
    model = baseline(library + ending, {}, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X.iloc[1:]), y[1:], atol=0.2)
    if library == "CatBoost":
        reader = getattr(model, "classifier", model)
        assert reader.model.get_cat_feature_indices() == [0]
    arrays = X[["number"]].to_numpy()
    alone = baseline(library + ending, {}, random_state=0).fit(arrays, y)
    assert alone.predict(arrays).shape == (90,)
