"""What other packages bring for any model, scikit-learn and shap, on arrays and frames."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost.inspection import shap_explainer

EFFECTS = {"low": -2.0, "middle": 0.0, "high": 3.0}


def rooms(n=240):
    """A frame with a number, holes and a category, whose effects on y are known."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "area": rng.uniform(0, 1, n),
            "floor": rng.choice(list(EFFECTS), n),
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )
    return frame, 4 * frame["area"] + frame["floor"].map(EFFECTS).astype(float)


@pytest.fixture(scope="module")
def on_frame():
    X, y = rooms()
    return RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y), X, y


@pytest.fixture(scope="module")
def on_array():
    X = np.random.default_rng(1).uniform(-1, 1, size=(240, 3))
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.3, "yes", "no")
    return RFRBoostClassifier(n_bags=2, random_state=0).fit(X, y), X, y


def test_partial_dependence_of_a_category_is_its_effect(on_frame):
    model, X, _ = on_frame
    result = partial_dependence(model, X, ["floor"], categorical_features=["floor"])
    heights = dict(zip(result["grid_values"][0], result["average"][0], strict=True))
    assert heights["high"] - heights["low"] == pytest.approx(5.0, abs=0.3)


def test_partial_dependence_of_a_number_is_its_slope(on_frame):
    model, X, _ = on_frame
    result = partial_dependence(model, X, ["area"], grid_resolution=5)
    grid, heights = result["grid_values"][0], result["average"][0]
    assert np.polyfit(grid, heights, 1)[0] == pytest.approx(4.0, abs=0.3)


def test_the_display_draws_frames_with_categories_and_arrays(on_frame, on_array):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib.figure import Figure

    model, X, _ = on_frame
    figure = Figure()
    display = PartialDependenceDisplay.from_estimator(
        model,
        X,
        ["area", "floor"],
        categorical_features=["floor"],
        grid_resolution=5,
        ax=figure.subplots(1, 2),
    )
    assert len(display.pd_results) == 2
    model, X, _ = on_array
    ax = Figure().add_subplot()
    PartialDependenceDisplay.from_estimator(model, X, [(0, 1)], grid_resolution=4, ax=ax)


def test_permutation_importance_finds_what_counts(on_frame, on_array):
    model, X, y = on_frame
    drops = permutation_importance(model, X, y, n_repeats=2, random_state=0).importances_mean
    assert drops[2] < 0.05 < min(drops[:2])
    model, X, y = on_array
    drops = permutation_importance(model, X, y, n_repeats=2, random_state=0).importances_mean
    assert np.argmin(drops) == 2


@pytest.fixture(scope="module")
def shap():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("shap")


def test_shap_adds_up_on_frames_with_categories(on_frame, shap):
    # Of shap's model-agnostic explainers the one that takes text; the others subtract inputs.
    model, X, _ = on_frame
    explainer = shap.KernelExplainer(model.predict, X[:20])
    values = explainer.shap_values(X[20:26], silent=True)
    total = explainer.expected_value + values.sum(axis=1)
    np.testing.assert_allclose(total, model.predict(X[20:26]), atol=1e-5)
    # y is a sum, so what a column adds is its part less its mean over the background.
    effect = X["floor"].map(EFFECTS).astype(float)
    np.testing.assert_allclose(values[:, 1], effect[20:26] - effect[:20].mean(), atol=0.3)


@pytest.mark.parametrize("dtype", ["object", "category"])
def test_shap_explains_frames_with_categories_and_missing_values(dtype, shap):
    X, y = rooms()
    X = X.astype({"floor": dtype})
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y)
    missing = X[X["age"].isna()][:3]
    background = X[:20]
    explained = shap_explainer(model, background)(missing, silent=True)
    assert list(explained.feature_names) == list(X.columns)
    total = explained.base_values + explained.values.sum(axis=1)
    np.testing.assert_allclose(total, model.predict(missing), atol=1e-5)
    effect = X["floor"].map(EFFECTS).astype(float)
    mean = effect[:20].mean()
    np.testing.assert_allclose(explained.values[:, 1], effect[missing.index] - mean, atol=0.3)


def test_shap_explains_probabilities_of_arrays(on_array, shap):
    model, X, _ = on_array
    explained = shap_explainer(model, X)(X[20:23], silent=True)
    assert explained.values.shape == (3, 3, 2)
    total = explained.base_values + explained.values.sum(axis=1)
    np.testing.assert_allclose(total, model.predict_proba(X[20:23]), atol=1e-5)
    # The third column does not matter.
    assert np.abs(explained.values[:, 2]).max() < np.abs(explained.values[:, 0]).max() / 3


@pytest.mark.filterwarnings("ignore")
def test_shaps_own_explainer_takes_numbers_with_missing_values(on_frame, shap):
    _, X, y = on_frame
    X = X.drop(columns="floor")
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y)
    explained = shap.Explainer(model.predict, X[:20])(X[20:26])
    assert X[20:26]["age"].isna().any()
    total = explained.base_values + explained.values.sum(axis=1)
    np.testing.assert_allclose(total, model.predict(X[20:26]), atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_shaps_masker_fails_on_text_before_any_model_is_called(on_frame, shap):
    """Why ``shap_explainer`` exists; if this no longer fails, the guide has to say so."""
    _, X, _ = on_frame
    calls = []
    with pytest.raises(TypeError, match=r"unsupported operand .* 'str' and 'str'"):
        shap.Explainer(lambda rows: calls.append(rows), X[:20])(X[20:26])
    assert not calls


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["Exact", "Permutation"])
def test_shap_adds_up_on_arrays(on_array, shap, name):
    model, X, _ = on_array
    explainer = getattr(shap.explainers, name)(model.predict_proba, X[:20])
    explained = explainer(X[20:24])
    assert explained.values.shape == (4, 3, 2)
    total = explained.base_values + explained.values.sum(axis=1)
    np.testing.assert_allclose(total, model.predict_proba(X[20:24]), atol=1e-5)
