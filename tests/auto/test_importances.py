"""Importances: what each column of a table counts for, whatever it was encoded as."""

import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance

from rfrboost import RFNNRegressor, RFRBoostClassifier, RFRBoostRegressor, load
from rfrboost._auto.importances import (
    FEWEST_ROWS,
    LEAST_PREDICTED,
    column_shares,
    shares_at,
    spread_rows,
)
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
        assert shares[name] == pytest.approx(variance.get(name, 0.0), abs=0.03)


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


def test_a_single_network_is_measured_at_given_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [1.0, 10.0, 1.0]
    y = 2 * X[:, 0] + 0.1 * X[:, 1]
    model = RFRBoostRegressor(n_layers=0, l2_head=0.0, random_state=0).fit(X, y)
    shares = importances(model, X)
    assert list(shares) == ["x0", "x1", "x2"]
    contributions = (np.array([2.0, 0.1, 0.0]) * X.std(axis=0)) ** 2
    np.testing.assert_allclose(
        list(shares.values()), contributions / contributions.sum(), atol=0.05
    )
    assert shares["x2"] < 1e-9


def test_the_fits_own_shares_are_those_of_its_rows_as_a_table(fitted):
    model, frame, _, _ = fitted
    at_rows = importances(model, frame)
    for name, share in importances(model).items():
        assert at_rows[name] == pytest.approx(share, abs=0.05)


class Function:
    """A function of the rows of a table, which counts the rows that it is asked for."""

    def __init__(self, X, function):
        self.X = X
        self.function = function
        self.asked = 0

    def __call__(self, indices):
        self.asked += len(indices)
        return self.function(np.take_along_axis(self.X, indices, axis=0))


def shares_of(X, function, same_unit=True, chances=None):
    known = Function(X, function)
    rng = np.random.default_rng(0)
    return column_shares(known, *X.shape, rng, same_unit, chances), known.asked


def test_a_step_in_a_narrow_range_counts_by_what_it_changes():
    """A derivative would be that of the step alone, and almost everywhere zero."""
    X = np.random.default_rng(0).uniform(size=(2000, 3))
    shares, _ = shares_of(X, lambda x: 0.1 * (x[:, :1] > 0.5) + np.floor(4 * x[:, 1:2]))
    steps = np.array([0.01 / 4, 15 / 12, 0.0])
    np.testing.assert_allclose(shares, steps / steps.sum(), atol=0.01)


def test_columns_count_alone_and_together():
    """Of a product of two columns around 0 each has the whole variance as its total effect."""
    X = np.random.default_rng(0).normal(size=(4000, 3))
    shares, _ = shares_of(X, lambda x: x[:, :1] * x[:, 1:2] + x[:, 2:])
    np.testing.assert_allclose(shares, 1 / 3, atol=0.08)


def test_outputs_in_other_units_count_alike_and_probabilities_as_they_are():
    X = np.random.default_rng(0).normal(size=(4000, 2))
    shares, _ = shares_of(X, lambda x: x * [1.0, 1000.0], same_unit=False)
    np.testing.assert_allclose(shares, 0.5, atol=0.08)
    shares, _ = shares_of(X, lambda x: x * [1.0, 3.0], same_unit=True)
    np.testing.assert_allclose(shares, [0.1, 0.9], atol=0.03)


def test_rows_are_drawn_as_often_as_their_chances_say():
    chances = np.array([0.0, 0.25, 0.05, 0.7])
    counts = np.bincount(spread_rows(4, chances, 40, np.random.default_rng(0)), minlength=4)
    np.testing.assert_allclose(counts, 40 * chances, atol=1)
    even = np.bincount(spread_rows(7, None, 20, np.random.default_rng(0)), minlength=7)
    assert set(even) == {2, 3}


def test_rows_of_no_weight_do_not_count():
    X = np.random.default_rng(0).normal(size=(400, 2))
    light = np.arange(400) < 200
    X[light] *= [100.0, 1.0]
    shares, _ = shares_of(X, lambda x: x.sum(axis=1, keepdims=True), chances=~light / 200)
    np.testing.assert_allclose(shares, 0.5, atol=0.1)


@pytest.mark.parametrize(("n_rows", "n_columns"), [(60, 3), (60, 40), (3000, 9), (3000, 700)])
def test_the_work_is_bounded_by_the_size_of_the_table(n_rows, n_columns):
    X = np.random.default_rng(0).normal(size=(n_rows, n_columns))
    _, asked = shares_of(X, lambda x: x.sum(axis=1, keepdims=True))
    most = max(n_rows, LEAST_PREDICTED, FEWEST_ROWS * n_columns)
    assert asked <= most + most // n_columns + 1


def test_a_fit_does_not_wait_for_them_and_they_are_computed_once(monkeypatch):
    frame, _, y = mixed_table(100)
    asked = []

    def noted(*arguments):
        asked.append(arguments)
        return shares_at(*arguments)

    monkeypatch.setattr("rfrboost._auto.importances.shares_at", noted)
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(frame, y)
    assert not asked
    first = model.feature_importances_
    assert len(asked) == 1
    assert model.feature_importances_ is first
    assert len(asked) == 1


def test_files_and_pickles_hold_them_in_place_of_training_rows(tmp_path):
    pytest.importorskip("safetensors")
    frame, _, y = mixed_table(100)
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(frame, y)
    pickled = pickle.loads(pickle.dumps(model))
    model.save(tmp_path / "model.rfr")
    for other in (pickled, load(tmp_path / "model.rfr")):
        assert other._fitted.shuffled is None
        np.testing.assert_array_equal(other.feature_importances_, model.feature_importances_)


def test_a_model_that_predicts_a_constant_has_no_shares():
    shares, _ = shares_of(np.eye(5), lambda x: np.ones((len(x), 1)))
    assert not shares.any()


def real_table(name, rows=None):
    """X and y of one of the regression tables, or skip."""
    folder = Path(os.environ.get("RFRBOOST_DATA") or "../shared/data") / "regression"
    path = folder / f"{name}.parquet"
    if not path.is_file():
        pytest.skip(f"no table {path}")
    pytest.importorskip("pyarrow")
    frame = pd.read_parquet(path)
    frame = frame.sample(len(frame) if rows is None else rows, random_state=0)
    return frame.drop(columns="target"), frame["target"].to_numpy(float)


@pytest.mark.parametrize("name", ["44959_concrete_compressive_strength", "44994_cars"])
def test_on_real_tables_they_agree_with_permutation_importance_and_between_seeds(name):
    X, y = real_table(name)
    held_out = np.arange(len(y)) % 4 == 0
    rows, others = X[~held_out], X[held_out]
    models = [
        RFRBoostRegressor(n_bags=3, random_state=seed).fit(rows, y[~held_out]) for seed in range(2)
    ]
    first, again = (model.feature_importances_ for model in models)
    # Many columns of cars say the same (makes, kinds, doors), and models choose among them.
    assert spearmanr(first, again).statistic >= (0.9 if name.endswith("cars") else 0.95)
    np.testing.assert_allclose(again, first, atol=0.06)
    drops = permutation_importance(
        models[0], others, y[held_out], n_repeats=3, random_state=0
    ).importances_mean
    assert spearmanr(first, drops).statistic >= 0.9
    np.testing.assert_allclose(first, drops / drops.sum(), atol=0.1)


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
    network = RFNNRegressor(n_features=5).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="pass X"):
        importances(network)
    with pytest.raises(ValueError, match="at least two"):
        importances(network, X[:1])
    with pytest.raises(ValueError, match="1 axes"):
        importances(network, X[0])


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
