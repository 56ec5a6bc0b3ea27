"""Importances: what each column of a table counts for, whatever it was encoded as."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance

from rfrboost import RFNNRegressor, RFRBoostClassifier, RFRBoostRegressor
from rfrboost._auto.importances import gradient_shares
from rfrboost.inspection import importances, plot_importances

EFFECTS = {"a": 0.0, "b": 2.0, "c": -1.0, "d": 0.5}


def mixed_table(n=500):
    """A table with every kind of column, the parts that y is the sum of, and y."""
    rng = np.random.default_rng(0)
    days = rng.integers(0, 1000, n)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "town": rng.choice(list("abcd"), n),
            "street": rng.choice([f"s{i}" for i in range(30)], n),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D"),
            "noise": rng.normal(size=n),
            "flag": rng.random(n) < 0.3,
        }
    )
    parts = pd.DataFrame(
        {
            "size": frame["size"].fillna(1.5),
            "town": frame["town"].map(EFFECTS).astype(float),
            "day": np.sin(2 * np.pi * days / 365.2425),
            "flag": frame["flag"].astype(float),
        }
    )
    return frame, parts, parts.sum(axis=1) + 0.2 * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    frame, parts, y = mixed_table()
    return RFRBoostRegressor(random_state=0).fit(frame, y), frame, parts, y


def test_of_a_sum_they_are_the_shares_of_its_variance_whatever_a_column_is(fitted):
    model, frame, parts, _ = fitted
    shares = importances(model)
    variance = parts.var() / parts.var().sum()
    assert set(shares) == set(frame.columns)
    assert sum(shares.values()) == pytest.approx(1.0)
    for name in frame.columns:
        assert shares[name] == pytest.approx(variance.get(name, 0.0), abs=0.02)


def test_largest_first_and_one_number_for_each_original_column(fitted):
    model, frame, _, _ = fitted
    shares = importances(model)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert model.feature_importances_.shape == (frame.shape[1],)
    by_name = dict(zip(frame.columns, model.feature_importances_, strict=True))
    assert shares == by_name
    assert list(pd.Series(shares).index) == list(shares)


def test_permutation_importance_agrees(fitted):
    model, frame, _, y = fitted
    drops = permutation_importance(model, frame, y, n_repeats=3, random_state=0).importances_mean
    np.testing.assert_allclose(model.feature_importances_, drops / drops.sum(), atol=0.03)


def test_numbers_in_other_units_and_levels_of_other_names_change_nothing(fitted):
    model, frame, _, y = fitted
    other = frame.assign(size=1000 * frame["size"] + 7, town=frame["town"].str.upper())
    again = RFRBoostRegressor(random_state=0).fit(other, y)
    np.testing.assert_allclose(again.feature_importances_, model.feature_importances_, atol=0.01)


def test_constant_columns_count_for_nothing():
    frame, _, y = mixed_table(200)
    model = RFRBoostRegressor(random_state=0).fit(frame.assign(town="a", noise=1.0), y)
    shares = importances(model)
    assert shares["town"] == shares["noise"] == 0.0


def test_a_single_network_takes_its_gradients_at_given_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [1.0, 10.0, 1.0]
    y = 2 * X[:, 0] + 0.1 * X[:, 1]
    model = RFRBoostRegressor(n_layers=0, l2_head=0.0, random_state=0).fit(X, y)
    shares = importances(model, X)
    assert list(shares) == ["x0", "x1", "x2"]
    contributions = (np.array([2.0, 0.1, 0.0]) * X.std(axis=0)) ** 2
    np.testing.assert_allclose(
        list(shares.values()), contributions / contributions.sum(), atol=1e-9
    )


def test_columns_of_one_source_count_the_variance_of_their_linear_part():
    """Two encoded columns of one source and one alone, of a linear function of two outputs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    X[:, 1] += 0.8 * X[:, 0]
    slopes = np.array([[1.0, 0.5], [-2.0, 0.3], [0.7, 0.0]])
    own, correlation = np.array([0, 1]), np.corrcoef(X[:, :2].T)
    shares = gradient_shares(np.tile(slopes, (4, 1, 1)), X.std(axis=0), [(own, correlation)])
    together = (X[:, :2] @ slopes[:2]).var(axis=0).sum()
    alone = (X[:, 2:] @ slopes[2:]).var(axis=0).sum()
    assert shares.sum() == pytest.approx(1.0)
    assert shares[:2].sum() == pytest.approx(together / (together + alone))


def test_a_model_without_gradients_has_no_shares():
    assert not gradient_shares(np.zeros((4, 3, 1)), np.ones(3)).any()


def test_a_single_network_of_several_classes_has_them_too():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = RFRBoostClassifier(n_layers=1, random_state=0).fit(X, y)
    shares = importances(model, X)
    assert set(shares) == set(X.columns)
    assert sum(shares.values()) == pytest.approx(1.0)


def test_what_cannot_be_told_is_refused():
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(NotFittedError):
        importances(RFRBoostRegressor())
    with pytest.raises(ValueError, match="pass X"):
        importances(RFNNRegressor(n_features=5).fit(X, X[:, 0]))


def test_the_bars_are_the_shares_and_the_rest_is_summed(fitted):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib.figure import Figure

    model = fitted[0]
    display = plot_importances(model, top=3, ax=Figure().add_subplot())
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    widths = [bar.get_width() / 100 for bar in display.ax_.patches]
    shares = importances(model)
    assert names == list(shares)[:3]
    assert widths == pytest.approx(list(shares.values())[:3])
    said = [text.get_text() for text in display.ax_.texts]
    assert f"all others (3) together: {100 * (1 - sum(widths)):.1f} %" in said
