"""``scoring``: held-out rows decide by a score of the user's choice."""

import numpy as np
import pytest
from numpy.random import default_rng
from sklearn.base import clone
from sklearn.metrics import (
    balanced_accuracy_score,
    fbeta_score,
    log_loss,
    make_scorer,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
)
from sklearn.model_selection import TimeSeriesSplit
from small_sizes import with_sizes

import rfrboost
from rfrboost import RFRBoostClassifier, RFRBoostRegressor, RowBlocks
from rfrboost._numerics.sizes import Sizes

FEW = {"n_bags": 2, "n_features": 16, "l2_step": 1e-3, "random_state": 0}


def wavy(n=160, seed=0):
    rng = default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    return X, 50 + 10 * np.sin(2 * X[:, 0]) * X[:, 1] + rng.standard_normal(n)


def labelled(n=200, seed=0):
    X, y = wavy(n, seed)
    return X, np.array(["no", "yes", "so"])[np.digitize(y, [46.0, 54.0])]


def test_the_out_of_fold_score_of_numbers_is_in_units_of_y():
    X, y = wavy()
    model = RFRBoostRegressor(**FEW, scoring="neg_mean_absolute_error").fit(X, y)
    assert model.oof_score_ == pytest.approx(-mean_absolute_error(y, model.oof_prediction_))


def test_scorers_of_labels_see_labels_probabilities_and_logits():
    X, labels = labelled()
    two = np.where(labels == "yes", "yes", "no")
    model = RFRBoostClassifier(**FEW, scoring="roc_auc").fit(X, two)
    probability = model.oof_prediction_[:, 1]
    assert model.oof_score_ == pytest.approx(roc_auc_score(two == "yes", probability))
    model.set_params(scoring=make_scorer(fbeta_score, beta=2, pos_label="yes")).fit(X, two)
    guessed = np.where(model.oof_prediction_[:, 1] > 0.5, "yes", "no")
    assert model.oof_score_ == pytest.approx(fbeta_score(two, guessed, beta=2, pos_label="yes"))
    model.set_params(scoring="neg_log_loss").fit(X, labels)
    assert model.oof_score_ == pytest.approx(-log_loss(labels, model.oof_prediction_))


def test_weights_are_passed_to_the_scorers_of_scikit_learn():
    X, labels = labelled()
    w = default_rng(1).uniform(0.1, 3.0, len(X))
    model = RFRBoostClassifier(**FEW, scoring="balanced_accuracy").fit(X, labels, w)
    guessed = model.classes_[np.argmax(model.oof_prediction_, axis=1)]
    wanted = balanced_accuracy_score(labels, guessed, sample_weight=w)
    assert model.oof_score_ == pytest.approx(wanted)
    assert wanted != pytest.approx(balanced_accuracy_score(labels, guessed))


def test_a_score_decides_how_many_layers_are_kept():
    X, y = wavy()

    def flat(estimator, X, y):
        return -np.ptp(estimator.predict(X))

    assert len(RFRBoostRegressor(**FEW).fit(X, y).history_) > 3
    model = RFRBoostRegressor(**FEW, scoring=flat).fit(X, y)
    assert model.history_ == []


def test_a_score_that_says_nothing_leaves_the_loss_to_decide():
    X, y = wavy()
    plain = RFRBoostRegressor(**FEW).fit(X, y)
    other = RFRBoostRegressor(**FEW, scoring=lambda estimator, X, y: 0.5).fit(X, y)
    np.testing.assert_array_equal(other.predict(X), plain.predict(X))
    assert other.oof_score_ == 0.5
    assert plain.oof_score_ == pytest.approx(r2_score(y, plain.oof_prediction_))


def test_validation_rows_and_rows_that_no_member_held_out():
    X, y = wavy(240)
    seen = []

    def error(estimator, rows, y):
        seen.append((len(rows), y.mean()))
        return -mean_absolute_error(y, estimator.predict(rows))

    model = RFRBoostRegressor(**FEW, scoring=error)
    model.fit(X[:160], y[:160], X_val=X[160:], y_val=y[160:])
    assert {n for n, _ in seen} == {80}
    np.testing.assert_allclose([mean for _, mean in seen], y[160:].mean())
    seen.clear()
    in_time = clone(model).set_params(n_bags=5).fit(X, y, cv=TimeSeriesSplit(2))
    known = ~np.isnan(in_time.oof_prediction_)
    assert {n for n, _ in seen} == {known.sum()}
    wanted = -mean_absolute_error(y[known], in_time.oof_prediction_[known])
    assert in_time.oof_score_ == pytest.approx(wanted)


def test_a_score_of_a_sample_of_many_rows_is_given_the_right_rows():
    X, y = wavy(600)
    sampled = Sizes(most_centres=200, leaf_held_out_rows=5, shared_draw_rows=100, boosted_rows=200)
    seen = []

    def agreement(estimator, rows, y):
        seen.append(len(rows))
        return np.corrcoef(estimator.predict(rows), y)[0, 1] if len(seen) > 3 else -1.0

    model = RFRBoostRegressor(**FEW, features=("swim", "bumps"), scoring=agreement)
    with_sizes(model, sampled).fit(X, y)
    assert seen == [200] * (len(seen) - 1) + [600]
    # If rows and predictions were not of each other, it would be about 0.
    assert model.oof_score_ > 0.8


def test_what_is_no_score_is_refused():
    X, y = wavy()
    with pytest.raises(ValueError, match="scoring"):
        RFRBoostRegressor(**FEW, scoring="as good as it gets").fit(X, y)
    with pytest.raises(ValueError, match="must be a finite number"):
        RFRBoostRegressor(**FEW, scoring=lambda estimator, X, y: np.nan).fit(X, y)
    with pytest.raises(ValueError, match="scoring='roc_auc' cannot score this fit: the model has"):
        RFRBoostRegressor(**FEW, scoring="roc_auc").fit(X, y)
    with pytest.raises(ValueError, match="scoring='r2' has no effect in a single network"):
        RFRBoostRegressor(2, scoring="r2").fit(X, y)


@pytest.mark.parametrize("rows", [{}, {"boosted_rows": 110}], ids=["all rows", "a sample"])
def test_a_score_decides_wherever_the_rows_are(rows):
    X, y = wavy()
    sizes = Sizes(sampled_rows=100, shared_draw_rows=100, leaf_held_out_rows=5, **rows)
    models = [RFRBoostRegressor(**FEW, scoring="neg_mean_absolute_error") for _ in range(2)]
    for model in models:
        model._sizes = sizes
    models[0].fit(X, y)
    models[1].fit(RowBlocks.from_arrays(X, y, block_rows=30))
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))
    assert models[1].oof_score_ == pytest.approx(-mean_absolute_error(y, models[1].oof_prediction_))


def test_a_model_with_a_scorer_is_saved(tmp_path):
    pytest.importorskip("safetensors")
    X, y = wavy()
    scorer = make_scorer(mean_absolute_error, greater_is_better=False)
    for scoring, kept in ((scorer, None), ("r2", "r2")):
        model = RFRBoostRegressor(**FEW, scoring=scoring).fit(X, y)
        model.save(tmp_path / "m")
        assert rfrboost.load(tmp_path / "m").scoring == kept
