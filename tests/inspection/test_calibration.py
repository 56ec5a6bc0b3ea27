"""Calibration: the error by hand, and the curve that it is of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost.inspection import expected_calibration_error, plot_calibration

PROBABILITIES = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def by_hand(happened, p, n_bins):
    """The definition, bin by bin."""
    total = 0.0
    for b in range(n_bins):
        last = b == n_bins - 1
        rows = [i for i, v in enumerate(p) if int(v * n_bins) == b or (last and v == 1)]
        if rows:
            gap = np.mean([p[i] for i in rows]) - np.mean([happened[i] for i in rows])
            total += len(rows) / len(p) * abs(gap)
    return total


@given(p=PROBABILITIES, n_bins=st.integers(1, 20), data=st.data())
def test_two_classes_by_hand(p, n_bins, data):
    y = data.draw(st.lists(st.booleans(), min_size=len(p), max_size=len(p)))
    error = expected_calibration_error(y, p, classes=[False, True], n_bins=n_bins)
    assert error == pytest.approx(by_hand(y, p, n_bins), abs=1e-12)
    assert 0 <= error <= 1
    both = np.column_stack([1 - np.array(p), p])
    assert expected_calibration_error(y, both, classes=[False, True], n_bins=n_bins) == error


@given(seed=st.integers(0, 1000), k=st.integers(3, 6))
def test_more_classes_are_judged_by_the_class_that_is_predicted(seed, k):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), size=30)
    labels = np.array(list("abcdef")[:k])
    y = labels[rng.integers(0, k, 30)]
    right = labels[p.argmax(axis=1)] == y
    error = expected_calibration_error(y, p, classes=labels)
    assert error == pytest.approx(by_hand(right, p.max(axis=1), 10))


def test_probabilities_that_come_true_have_none_and_certain_mistakes_have_all():
    rng = np.random.default_rng(0)
    p = rng.random(200_000)
    assert expected_calibration_error(rng.random(len(p)) < p, p) < 0.005
    assert expected_calibration_error([0, 1], [1.0, 0.0]) == 1.0


@pytest.mark.parametrize(
    ("y", "p", "sentence"),
    [
        ([0, 1], [0.5, 1.5], "from 0 to 1"),
        ([0, 1], [0.5, np.nan], "from 0 to 1"),
        ([0, 0], [0.5, 0.5], "pass classes"),
        ([0, 1], [[0.1, 0.2, 0.7]] * 2, "pass classes"),
        ([0, 1, 1], [0.5, 0.5], "inconsistent"),
    ],
)
def test_what_are_no_probabilities_of_these_labels_is_refused(y, p, sentence):
    with pytest.raises(ValueError, match=sentence):
        expected_calibration_error(y, p)


@pytest.fixture
def ax():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib.figure import Figure

    return Figure().add_subplot()


def test_the_curve_of_out_of_fold_predictions(ax):
    X, y = load_breast_cancer(return_X_y=True)
    model = RFRBoostClassifier(n_bags=2, random_state=0).fit(X, y)
    curve = plot_calibration(model, y=y, ax=ax)
    p = model.oof_prediction_[:, 1]
    assert curve.error == expected_calibration_error(y, p)
    assert curve.counts.sum() == len(y)
    assert curve.counts @ curve.predicted == pytest.approx(p.sum())
    assert curve.counts @ curve.observed == pytest.approx(y.sum())
    assert ((curve.low <= curve.observed) & (curve.observed <= curve.high)).all()
    points = curve.ax_[0].collections[-2].get_offsets()
    np.testing.assert_allclose(points, np.column_stack([curve.predicted, curve.observed]))
    assert [bar.get_height() for bar in curve.ax_[1].patches] == list(curve.counts)


def test_the_curve_of_given_rows_and_of_any_classifier(ax):
    X, y = load_wine(return_X_y=True)
    names = np.array(["barolo", "grignolino", "barbera"])[y]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = LogisticRegression().fit(X[::2], names[::2])
    curve = plot_calibration(model, X[1::2], names[1::2], n_bins=5, ax=ax)
    p = model.predict_proba(X[1::2])
    expected = expected_calibration_error(names[1::2], p, classes=model.classes_, n_bins=5)
    assert curve.error == expected
    assert len(curve.edges) == 6


def test_the_curve_of_several_labels_is_that_of_all_of_them(ax):
    X = np.random.default_rng(0).normal(size=(80, 2))
    Y = (X > [0.0, 1.0]).astype(int)
    model = RFRBoostClassifier(n_layers=1, random_state=0).fit(X, Y)
    curve = plot_calibration(model, X, Y, n_bins=5, ax=ax)
    p = model.predict_proba(X)
    assert curve.error == expected_calibration_error(Y.ravel(), p.ravel(), n_bins=5)
    assert curve.counts.sum() == 160


def test_regressors_have_no_calibration_curve(ax):
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(TypeError, match="predict_proba"):
        plot_calibration(RFRBoostRegressor(n_layers=0).fit(X, X[:, 0]), X, X[:, 0], ax=ax)
    automatic = RFRBoostRegressor(n_bags=2, random_state=0).fit(X, X[:, 0])
    with pytest.raises(TypeError, match="classifiers"):
        plot_calibration(automatic, y=X[:, 0], ax=ax)
