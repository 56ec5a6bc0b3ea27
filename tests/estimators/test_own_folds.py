"""``groups`` and ``cv``: whole groups and later rows are held out, and scores say so."""

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    PredefinedSplit,
    RepeatedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)

import rfrboost
from rfrboost import RFRBoostClassifier, RFRBoostRegressor, RowBlocks
from rfrboost._numerics.sizes import Sizes

QUICK = {"n_layers": "auto", "random_state": 0, "features": ("swim",)}


def grouped(n_groups=50, size=12, seed=0):
    """Rows that tell their group, of which y is a number drawn at random; a share is not of it."""
    rng = default_rng(seed)
    groups = np.repeat(np.arange(n_groups), size)
    x = rng.standard_normal((n_groups, 4))[groups]
    X = np.c_[x + 0.01 * rng.standard_normal(x.shape), rng.standard_normal((len(x), 2))]
    y = rng.standard_normal(n_groups)[groups] + 0.5 * X[:, 4] + 0.1 * rng.standard_normal(len(x))
    return X, y, groups


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("frame", [False, True])
def test_rows_of_a_group_are_never_on_both_sides(shared, frame):
    """What is known of a group's rows must not raise the score; y has a share of 0.2 of others.

    With ``frame`` the group is a column of text too, whose target encoding must not tell either.
    """
    X, y, groups = grouped()
    if frame:
        X = pd.DataFrame(X, columns=list("abcdef")).assign(who=[f"p{g}" for g in groups])
    leaking, honest = (RFRBoostRegressor(**QUICK) for _ in range(2))
    if shared:
        leaking._sizes = honest._sizes = Sizes(shared_draw_rows=0)
    assert leaking.fit(X, y).oof_score_ > 0.9
    assert honest.fit(X, y, groups=groups).oof_score_ < 0.35


def test_a_splitter_is_given_the_groups_and_equals_groups_alone():
    X, y, groups = grouped(20, 6)
    alone = RFRBoostRegressor(**QUICK).fit(X, y, groups=groups)
    by_splitter = RFRBoostRegressor(**QUICK).fit(X, y, groups=groups, cv=GroupKFold(5))
    pairs = list(GroupKFold(5).split(X, y, groups))
    by_pairs = RFRBoostRegressor(**QUICK).fit(X, y, cv=pairs)
    masks = [(np.isin(np.arange(len(y)), a), np.isin(np.arange(len(y)), b)) for a, b in pairs]
    by_masks = RFRBoostRegressor(**QUICK).fit(X, y, cv=masks)
    for model in (by_splitter, by_pairs, by_masks):
        np.testing.assert_array_equal(model.predict(X), alone.predict(X))
        np.testing.assert_array_equal(model.oof_prediction_, alone.oof_prediction_)


def test_groups_may_be_text_and_their_rows_in_any_order():
    X, y, groups = grouped(20, 6)
    names = np.array([f"g{g:02d}" for g in groups])
    order = default_rng(0).permutation(len(y))
    here = RFRBoostRegressor(**QUICK).fit(X, y, groups=groups)
    there = RFRBoostRegressor(**QUICK).fit(X[order], y[order], groups=names[order])
    np.testing.assert_allclose(there.predict(X), here.predict(X), atol=1e-6)


def test_a_number_of_folds_is_n_bags():
    X, y, groups = grouped(20, 6)
    by_cv = RFRBoostRegressor(**QUICK).fit(X, y, cv=3)
    np.testing.assert_array_equal(
        by_cv.predict(X), RFRBoostRegressor(**QUICK, n_bags=3).fit(X, y).predict(X)
    )
    assert RFRBoostRegressor(**QUICK).fit(X, y, groups=groups, cv=3).transform(X).shape[1] == 3
    one = RFRBoostRegressor(**QUICK, n_bags=1).fit(X, y, groups=groups)
    assert np.isfinite(one.oof_prediction_).sum() == 24


def test_by_time_one_model_of_all_rows_predicts_and_first_rows_have_no_held_out_prediction():
    rng = default_rng(0)
    X = rng.standard_normal((240, 3))
    y = X[:, 0] + 0.3 * rng.standard_normal(240)
    model = RFRBoostRegressor(**QUICK).fit(X, y, cv=TimeSeriesSplit(5))
    assert model.transform(X).shape == (240, 1)
    assert np.isnan(model.oof_prediction_[:40]).all()
    assert np.isfinite(model.oof_prediction_[40:]).all()
    low, high = model.predict_interval(X).T
    assert 0.8 < np.mean((low <= y) & (y <= high)) <= 1.0
    assert high - low == pytest.approx(np.full(240, np.mean(high - low)))


def test_by_time_the_newest_rows_count_although_no_member_of_the_splits_is_fitted_on_them():
    """The predicted mean follows the last block, which weighs a sixth."""
    rng = default_rng(0)
    X = rng.standard_normal((240, 3))
    y = X[:, 0] + 0.3 * rng.standard_normal(240)
    before = RFRBoostRegressor(**QUICK).fit(X, y, cv=TimeSeriesSplit(5)).predict(X).mean()
    y[200:] += 1.0
    after = RFRBoostRegressor(**QUICK).fit(X, y, cv=TimeSeriesSplit(5)).predict(X).mean()
    assert after - before == pytest.approx(1 / 6, abs=0.03)


def test_a_row_held_out_often_has_the_mean_of_its_predictions():
    X, y, _ = grouped(10, 8)
    twice = RepeatedKFold(n_splits=4, n_repeats=2, random_state=0)
    model = RFRBoostRegressor(**QUICK).fit(X, y, cv=twice)
    assert model.transform(X).shape[1] == 8
    assert np.isfinite(model.oof_prediction_).all()
    assert np.isfinite(model.predict_interval(X)).all()


def test_classes_by_group_and_by_time():
    X, y, groups = grouped(30, 6)
    labels = np.where(y + X[:, 4] > 0, "yes", "no")
    model = RFRBoostClassifier(**QUICK).fit(X, labels, groups=groups)
    assert model.oof_prediction_.shape == (180, 2)
    assert model.predict_set(X).any(axis=1).all()
    late = RFRBoostClassifier(**QUICK).fit(X, labels, cv=TimeSeriesSplit(3))
    assert late.transform(X).shape[1] == 1
    assert late.predict_proba(X).sum(axis=1) == pytest.approx(1.0)


def test_rows_of_weight_zero_are_in_no_split():
    X, y, groups = grouped(20, 6)
    w = np.ones(len(y))
    w[groups == 3] = 0.0
    here = RFRBoostRegressor(**QUICK).fit(X, y, sample_weight=w, groups=groups)
    kept = groups != 3
    assert np.isnan(here.oof_prediction_[~kept]).all()
    assert np.isfinite(here.oof_prediction_[kept]).all()


def test_a_model_with_a_splitter_is_saved_without_it(tmp_path):
    pytest.importorskip("safetensors")
    X, y, _ = grouped(20, 6)
    model = RFRBoostRegressor(**QUICK).fit(X, y, cv=TimeSeriesSplit(3))
    model.save(tmp_path / "model.rfrboost")
    loaded = rfrboost.load(tmp_path / "model.rfrboost")
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))


def test_cross_validation_around_a_fit_by_time():
    X, y, _ = grouped(20, 6)
    by_time = {"cv": TimeSeriesSplit(3)}
    model = RFRBoostRegressor(**QUICK)
    assert np.isfinite(cross_val_predict(model, X, y, cv=KFold(2), params=by_time)).all()


REFUSED = {
    "one group": ({}, {"groups": np.zeros(120)}, "one group only"),
    "missing": ({}, {"groups": np.r_[np.nan, np.arange(119)]}, "groups has missing values"),
    "short": ({}, {"groups": np.arange(7)}, "inconsistent numbers"),
    "validation": ({}, {"groups": np.arange(120), "X_val": 1, "y_val": 1}, "Pass either"),
    "single": ({"n_layers": 3}, {"groups": np.arange(120)}, "holds out none"),
    "single cv": (
        {"n_layers": 3},
        {"cv": KFold(2)},
        "groups and cv say which rows are held out, but this fit holds out none",
    ),
    "bags too": ({"n_bags": 4}, {"cv": KFold(2)}, "n_bags=4 has no effect"),
    "same row": ({}, {"cv": [(np.arange(60), np.arange(59, 90))]}, "holds out the same row 59"),
    "nothing held": ({}, {"cv": [(np.arange(60), [])]}, "no rows to hold out"),
    "nothing fitted": ({}, {"cv": [([], np.arange(60))]}, "no rows to fit"),
    "no row": ({}, {"cv": [(np.arange(60), [200])]}, "from 0 to 119"),
    "not indices": ({}, {"cv": [(np.arange(60), [0.5])]}, "from 0 to 119"),
    "mask": ({}, {"cv": [(np.ones(3, bool), np.arange(60))]}, "mask of shape"),
    "no splits": ({}, {"cv": []}, "0 splits"),
    "groups cut": ({}, {"cv": KFold(3), "groups": np.arange(120) // 7}, "such as GroupKFold"),
}


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored by KFold")
@pytest.mark.parametrize("name", REFUSED)
def test_folds_that_mean_nothing_are_refused_with_the_reason(name):
    parameters, arguments, words = REFUSED[name]
    X, y, _ = grouped(20, 6)
    if "X_val" in arguments:
        arguments = {**arguments, "X_val": X, "y_val": y}
    model = RFRBoostRegressor(**{**QUICK, "features": "auto", **parameters})
    with pytest.raises(ValueError, match=words):
        model.fit(X, y, **arguments)


def test_splits_that_lack_a_class_are_refused():
    X, *_ = grouped(20, 6)
    labels = np.repeat(["a", "b"], 60)
    with pytest.raises(ValueError, match="Split 0 of cv has no row to fit of the class 'b'"):
        RFRBoostClassifier(**QUICK).fit(X, labels, cv=TimeSeriesSplit(3))
    fold = np.where(labels == "b", -1, np.arange(120) % 2)
    with pytest.raises(ValueError, match="cv holds out no row of the class 'b'"):
        RFRBoostClassifier(**QUICK).fit(X, labels, cv=PredefinedSplit(fold))


def test_blocks_have_no_groups():
    X, y, groups = grouped(20, 6)
    with pytest.raises(ValueError, match="y_val, groups or cv"):
        RFRBoostRegressor().fit(RowBlocks([(X, y)]), groups=groups)


def test_held_out_groups_by_another_splitter():
    X, y, groups = grouped(20, 6)
    cv = GroupShuffleSplit(3, test_size=0.3, random_state=0)
    model = RFRBoostRegressor(**QUICK).fit(X, y, groups=groups, cv=cv)
    held = np.isfinite(model.oof_prediction_)
    for g in np.unique(groups):
        assert held[groups == g].all() or not held[groups == g].any()
