"""Partial dependence and interactions: their values against known ones and scikit-learn's."""

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import partial_dependence

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost.inspection import interactions, plot_dependence, plot_interactions

pytest.importorskip("matplotlib").use("Agg")

from matplotlib.figure import Figure  # noqa: E402


@pytest.fixture
def ax():
    return Figure(layout="constrained").add_subplot()


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    n = 200
    X = pd.DataFrame(
        {
            "area": rng.uniform(0, 1, n),
            "floor": rng.choice(["low", "high"], n),
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )
    y = 4 * X["area"] * (X["floor"] == "high") + 0.1 * X["age"].fillna(0)
    return RFRBoostRegressor(n_bags=2, features=("swim",), random_state=0).fit(X, y), X, y


def test_curves_are_those_of_scikit_learn_at_the_same_values(fitted, ax):
    pytest.importorskip("sklearn", "1.7", reason="scikit-learn takes values from 1.7 on")
    model, X, _ = fitted
    grid, mean, _, _ = plot_dependence(model, X, ["area"], ax=ax).curves["area"]
    theirs = partial_dependence(
        model, X, ["area"], custom_values={"area": grid}, method="brute", kind="average"
    )
    np.testing.assert_allclose(mean, theirs["average"][0], atol=1e-6)


def test_curves_are_means_of_predictions_with_one_column_replaced(fitted, ax):
    model, X, _ = fitted
    display = plot_dependence(model, X, ["area", "floor"], ax=ax)
    grid, mean, low, high = display.curves["area"]
    assert ((low <= mean + 1e-9) & (mean <= high + 1e-9)).mean() > 0.9
    by_value = [model.predict(X.assign(area=value)).mean() for value in grid]
    np.testing.assert_allclose(mean, by_value, atol=1e-6)
    levels, mean, _, _ = display.curves["floor"]
    assert list(levels) == ["high", "low"]
    by_level = [model.predict(X.assign(floor=level)).mean() for level in levels]
    np.testing.assert_allclose(mean, by_level, atol=1e-6)
    drawn = display.ax_[0].lines[0].get_xydata()
    np.testing.assert_allclose(drawn[:, 0], grid)


def test_missing_values_and_dates_need_no_care(fitted, ax):
    model, X, _ = fitted
    curves = plot_dependence(model, X, ["age", "day"], ax=ax).curves
    assert np.isfinite(curves["age"][0]).all()
    assert curves["day"][0].dtype.kind == "M"
    assert all(np.isfinite(values).all() for values in curves["day"][1:])


def test_the_most_important_columns_are_drawn_by_default(fitted, ax):
    model, X, _ = fitted
    assert set(plot_dependence(model, X, top=2, ax=ax).curves) == {"area", "floor"}
    with pytest.raises(ValueError, match="no column 'rooms'"):
        plot_dependence(model, X, ["rooms"], ax=ax)


def test_of_classes_it_is_a_probability(ax):
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = RFRBoostClassifier(n_layers=1, random_state=0).fit(X, y)
    display = plot_dependence(model, X, [0], ax=ax)
    _, mean, _, _ = display.curves["x0"]
    assert mean[-1] - mean[0] > 0.5
    assert display.ax_[0].get_ylabel() == "probability of “yes”"


def test_of_several_labels_it_is_the_probability_of_the_commonest(ax):
    X = np.random.default_rng(0).normal(size=(80, 2))
    Y = np.column_stack([X[:, 1] > 1, X[:, 0] > -0.5])
    model = RFRBoostClassifier(n_layers=1, random_state=0).fit(X, Y)
    display = plot_dependence(model, X, [0], ax=ax)
    _, mean, _, _ = display.curves["x0"]
    assert mean[-1] - mean[0] > 0.5
    assert display.ax_[0].get_ylabel() == "probability of label 1"


def test_the_pair_that_acts_together_comes_first(fitted, ax):
    model, X, _ = fitted
    display = plot_interactions(model, X, ["area", "floor", "age"], ax=ax)
    (first, strength), *others = display.strengths.items()
    assert set(first) == {"area", "floor"}
    assert strength > 0.2
    assert all(value < strength / 3 for _, value in others)
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert widths == pytest.approx(list(display.strengths.values()))


def test_effects_that_add_up_do_not_interact():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = RFRBoostRegressor(n_layers=0, random_state=0).fit(X, X.sum(axis=1))
    strengths = interactions(model, X, [0, 1, 2]).strengths
    assert max(strengths.values()) < 1e-9
