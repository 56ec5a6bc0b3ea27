"""Derivatives in the inputs equal differences of predictions, for every kind of model."""

import numpy as np
import pytest
from model_zoo import CLASSIFIERS, REGRESSORS, SMALL, classification, regression
from sklearn.base import clone
from sklearn.preprocessing import SplineTransformer

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost._model.features import ACTIVATIONS
from rfrboost._model.network import GRADIENT_ROWS


def fresh_rows(columns=4):
    """Rows that are not in training, where the features of relu networks would have corners."""
    return regression(n=20, columns=columns, seed=1)[0]


def differences(function, X, step=1e-5):
    """Central differences of a function of rows, column by column."""
    slopes = []
    for column in range(X.shape[1]):
        shift = np.zeros(X.shape[1])
        shift[column] = step
        slopes.append((function(X + shift) - function(X - shift)) / (2 * step))
    return np.stack(slopes, axis=1)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activations_derivative_is_its_slope(name):
    activation = ACTIVATIONS[name]
    z = np.linspace(-3.0, 3.0, 40)  # without 0, where relu has a corner
    slope = (activation.apply(z + 1e-6) - activation.apply(z - 1e-6)) / 2e-6
    np.testing.assert_allclose(activation.derivative(z), slope, atol=1e-8)


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("outputs", [0, 2])
def test_the_input_gradient_of_a_regressor_is_the_slope_of_its_prediction(name, outputs):
    X, y = regression(outputs=outputs)
    model = clone(REGRESSORS[name]).fit(X, 300.0 * y + 7.0)
    rows = fresh_rows()
    expected = differences(model.predict, rows)
    np.testing.assert_allclose(
        model.input_gradient(rows), expected, atol=2e-5 * np.abs(expected).max()
    )


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_input_gradient_of_a_classifier_is_the_slope_of_its_logits(name, classes):
    X, y = classification(classes=classes)
    model = clone(CLASSIFIERS[name]).fit(X, y)
    expected = differences(model.decision_function, X[:20])
    np.testing.assert_allclose(
        model.input_gradient(X[:20]), expected, atol=2e-5 * np.abs(expected).max()
    )


def test_with_the_poisson_loss_it_is_the_slope_of_the_logarithm():
    X, y = regression()
    model = RFRBoostRegressor(**SMALL, loss="poisson").fit(X, np.exp(y))
    expected = differences(lambda Z: np.log(model.predict(Z)), X[:20])
    np.testing.assert_allclose(model.input_gradient(X[:20]), expected, atol=1e-5)


def test_the_gradient_of_a_row_does_not_depend_on_the_other_rows():
    X, y = classification(n=GRADIENT_ROWS + 50)
    model = RFRBoostClassifier(**SMALL).fit(X, y)
    whole = model.input_gradient(X)
    np.testing.assert_allclose(model.input_gradient(X[-30:]), whole[-30:], rtol=1e-10, atol=1e-12)


def test_a_wide_model_in_single_precision_has_the_same_slopes():
    X, y = regression(n=4000)
    model = RFRBoostRegressor(n_layers=2, random_state=0).fit(X, y)
    assert model.network_.layers[0].features.dtype == np.float32
    expected = differences(model.predict, X[:20], step=1e-2)
    np.testing.assert_allclose(model.input_gradient(X[:20]), expected, atol=2e-2)


def test_irrelevant_columns_have_a_small_gradient():
    X, y = regression(n=2000, columns=8)
    model = RFRBoostRegressor(n_layers=4, random_state=0).fit(X, y)
    sizes = np.sqrt((model.input_gradient(X) ** 2).mean(axis=0))
    assert sizes[2:7].max() < 0.5 * sizes[[0, 1, 7]].min()


def test_features_without_a_derivative_are_named():
    X, y = regression()
    model = RFRBoostRegressor(n_layers=1, features=SplineTransformer()).fit(X, y)
    with pytest.raises(TypeError, match="TransformerFeatures have no known derivative"):
        model.input_gradient(X)
