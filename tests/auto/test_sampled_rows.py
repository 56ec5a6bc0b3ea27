"""Many rows: kernel members are fitted on all of them, all other families on a sample."""

import numpy as np
import pytest
from numpy.random import default_rng
from sklearn.model_selection import TimeSeriesSplit
from small_bags import table
from small_sizes import with_sizes

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost._auto.bags import Bags
from rfrboost._auto.fit import sampled_rows
from rfrboost._model.leaves import LocalSums
from rfrboost._numerics.sizes import Sizes

ALL = Sizes(most_centres=300, leaf_held_out_rows=5, shared_draw_rows=100)
SAMPLED = Sizes(most_centres=300, leaf_held_out_rows=5, shared_draw_rows=100, boosted_rows=400)
QUICK = {"n_features": 32, "n_bags": 3, "random_state": 0}


def rows(n=1200, seed=0):
    X = default_rng(seed).uniform(-2, 2, (n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_out_of_fold_predictions_are_those_of_members_that_hold_rows_out(
    classes, weighted, monkeypatch
):
    """Every row is held out by one member, whose prediction is among those of the network.

    That is so before kernel members are moved to a fit of all rows.
    """
    monkeypatch.setattr(Bags, "together", False)
    X, y = rows()
    w = default_rng(1).uniform(0.5, 2, len(y)) if weighted else None
    cls = RFRBoostClassifier if classes else RFRBoostRegressor
    target = np.digitize(y, [0.0, 0.8][: classes - 1]) if classes else y
    model = with_sizes(cls(**QUICK), SAMPLED).fit(X, target, w)
    fitted = model._fitted
    members = model.transform(X).reshape(len(y), 3, -1)
    targets = [fitted.targets.predictions(fitted.loss, members[:, k]) for k in range(3)]
    ours = model.oof_prediction_
    away = np.min([np.abs(t - ours).reshape(len(y), -1).max(axis=1) for t in targets], axis=0)
    assert away.max() < 1e-3
    assert model.oof_score_ > 0.85


def test_kernel_members_know_all_rows_and_others_a_sample():
    X, y = rows()
    model = with_sizes(RFRBoostRegressor(**QUICK), SAMPLED).fit(X, y)
    local = [layer.features.from_x for layer in model.network_.layers]
    leaves = [leaf for own in local if isinstance(own, LocalSums) for leaf in own.leaves]
    assert sum(len(leaf.bumps.centres) for leaf in leaves) == len(y)
    other, truth = rows(1000, seed=1)
    every = with_sizes(RFRBoostRegressor(**QUICK), ALL).fit(X, y)
    assert not np.array_equal(model.predict(other), every.predict(other))
    assert model.score(other, truth) > every.score(other, truth) - 0.01


def test_the_order_of_rows_changes_nothing():
    X, y = rows()
    order = default_rng(5).permutation(len(y))
    here, there = (
        with_sizes(RFRBoostRegressor(**QUICK), SAMPLED).fit(X[some], y[some])
        for some in (np.arange(len(y)), order)
    )
    np.testing.assert_array_equal(here.oof_prediction_[order], there.oof_prediction_)
    np.testing.assert_array_equal(here.predict(X), there.predict(X))


def test_members_that_only_judge_predict_the_rows_they_hold_out():
    """Under splits by time one more member is fitted on all rows, and alone predicts new ones."""
    X, y = rows()
    model = with_sizes(RFRBoostRegressor(n_features=32, random_state=0), SAMPLED)
    model.fit(X, y, cv=TimeSeriesSplit(3))
    known = np.isfinite(model.oof_prediction_)
    assert known.sum() == 900
    assert model.oof_score_ > 0.8
    assert model.score(*rows(500, seed=2)) > 0.9


def test_without_time_for_all_rows_those_of_the_sample_are_predicted(monkeypatch):
    X, y = rows()
    monkeypatch.setattr("rfrboost._auto.assemble.PREDICTING_SHARE", 0.0)
    model = with_sizes(RFRBoostRegressor(**QUICK, max_seconds=1e6), SAMPLED).fit(X, y)
    assert np.isfinite(model.oof_prediction_).sum() == 400
    assert model.oof_score_ > 0.85
    low, high = model.predict_interval(X).T
    assert ((low < y) & (y < high)).mean() > 0.85


def test_a_fold_that_the_sample_would_miss_keeps_all_rows():
    many = table(600, sizes=Sizes(boosted_rows=60, shared_draw_rows=100))
    assert sampled_rows(many) is None
    few = table(600, sizes=Sizes(boosted_rows=300, shared_draw_rows=100))
    assert len(sampled_rows(few)) == 300
    assert sampled_rows(table(600, sizes=Sizes(shared_draw_rows=100))) is None
