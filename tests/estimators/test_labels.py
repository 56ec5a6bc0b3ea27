"""Several labels per row: conventions, laws, and what is refused."""

from time import process_time

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import accuracy_score, get_scorer, log_loss, roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict, cross_val_score
from sklearn.multioutput import MultiOutputClassifier

import rfrboost
from rfrboost import RFNNClassifier, RFRBoostClassifier, RowBlocks

SINGLE = RFRBoostClassifier(3, n_features=(12, 10), l2_step=1e-3, random_state=0)
QUICK = RFRBoostClassifier(n_bags=2, features=("swim", "trees"), random_state=0)
MODELS = {
    "automatic": QUICK,
    "single": SINGLE,
    "rfnn": RFNNClassifier(20, random_state=0),
    "few rows": RFRBoostClassifier(random_state=0),
}
ROWS = {"few rows": 40}


def problem(n=120, seed=0):
    """Three labels of four columns: linear, by an interaction, and a rare one."""
    rng = default_rng(seed)
    X = rng.standard_normal((n, 4))
    z = np.column_stack([X[:, 0], X[:, 1] * X[:, 2], X[:, 0] + X[:, 3] - 1.5])
    return X, (z + 0.3 * rng.standard_normal(z.shape) > 0).astype(int)


def macro_log_loss(Y, P):
    return np.mean([log_loss(y, p, labels=[0, 1]) for y, p in zip(Y.T, P.T, strict=True)])


@pytest.fixture(scope="module")
def fitted():
    X, Y = problem()
    return {
        name: clone(m).fit(X[: ROWS.get(name)], Y[: ROWS.get(name)]) for name, m in MODELS.items()
    }


@pytest.mark.parametrize("name", MODELS)
def test_conventions_are_those_of_scikit_learn(fitted, name):
    model = fitted[name]
    X, Y = problem(200, seed=1)
    p = model.predict_proba(X)
    assert p.shape == Y.shape
    np.testing.assert_array_equal(p, expit(model.decision_function(X)))
    labels = model.predict(X)
    assert labels.dtype.kind == "i"
    np.testing.assert_array_equal(labels, p > 0.5)
    np.testing.assert_array_equal(model.classes_, [[0, 1]] * 3)
    assert model.score(X, Y) == accuracy_score(Y, labels)
    assert roc_auc_score(Y, p) > (0.6 if name == "few rows" else 0.75)
    assert model.__sklearn_tags__().classifier_tags.multi_label
    *_, last = model.staged_predict(X)
    np.testing.assert_array_equal(last, labels)
    assert model.input_gradient(X).shape == (200, 4, 3)
    np.testing.assert_array_equal(np.log(p), model.predict_log_proba(X))


def test_out_of_fold_predictions_are_scored_by_subset_accuracy(fitted):
    _, Y = problem()
    model = fitted["automatic"]
    assert model.oof_prediction_.shape == Y.shape
    assert model.oof_score_ == accuracy_score(Y, model.oof_prediction_ > 0.5)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert not hasattr(fitted["single"], "oof_score_")


@pytest.mark.parametrize("name", ["automatic", "single"])
def test_a_matrix_of_labels_may_come_in_any_form(fitted, name):
    X, Y = problem()
    expected = fitted[name].predict_proba(X)
    frame = pd.DataFrame(Y, columns=["news", "sport", "rare"])
    mixed = frame.astype({"news": bool, "rare": float})
    forms = [Y.astype(bool), Y.astype(float), Y.tolist(), frame, mixed, sparse.csr_array(Y)]
    for form in forms:
        np.testing.assert_array_equal(clone(fitted[name]).fit(X, form).predict_proba(X), expected)
    assert fitted[name].score(X, sparse.csr_array(Y)) == fitted[name].score(X, Y)


def test_one_column_is_one_label_per_row():
    X, Y = problem()
    with pytest.warns(match="column-vector"):
        model = clone(SINGLE).fit(X, Y[:, :1])
    assert model.predict_proba(X).shape == (120, 2)
    assert model.predict(X).shape == (120,)


@pytest.mark.parametrize("name", ["automatic", "single"])
def test_permuted_labels_have_permuted_predictions(fitted, name):
    X, Y = problem()
    order = [2, 0, 1]
    permuted = clone(fitted[name]).fit(X, Y[:, order])
    expected = fitted[name].predict_proba(X)[:, order]
    np.testing.assert_allclose(permuted.predict_proba(X), expected, atol=2e-3)


def test_copies_of_a_label_are_predicted_as_the_label_alone():
    X, Y = problem(300)
    new, _ = problem(300, seed=1)
    alone = RFRBoostClassifier(random_state=0).fit(X, Y[:, 1]).predict_proba(new)[:, 1]
    both = RFRBoostClassifier(random_state=0).fit(X, Y[:, [1, 1]]).predict_proba(new)
    np.testing.assert_allclose(both[:, 0], both[:, 1], atol=1e-6)
    # The folds are others, nothing else is.
    assert np.abs(both[:, 0] - alone).mean() < 0.05


@pytest.mark.parametrize("name", MODELS)
def test_labels_that_all_rows_or_none_have_are_predicted_so(fitted, name):
    X, Y = problem(ROWS.get(name, 120))
    constant = np.column_stack([np.zeros(len(Y)), Y, np.ones(len(Y))])
    model = clone(MODELS[name]).fit(X, constant)
    new, actual = problem(200, seed=1)
    p = model.predict_proba(new)
    assert np.isfinite(p).all()
    assert (p[:, 0] < 0.05).all()
    assert (p[:, -1] > 0.95).all()
    alone = macro_log_loss(actual, fitted[name].predict_proba(new))
    assert macro_log_loss(actual, p[:, 1:-1]) < alone + 0.05


def test_a_label_of_a_single_row_does_not_disturb_the_others():
    X, Y = problem()
    rare = np.zeros(len(Y))
    rare[7] = 1
    new, actual = problem(300, seed=1)
    with_it, without = (
        clone(QUICK).fit(X, labels).predict_proba(new) for labels in (np.c_[Y, rare], Y)
    )
    assert (with_it[:, 3] < 0.5).mean() > 0.95
    assert macro_log_loss(actual, with_it[:, :3]) < macro_log_loss(actual, without) + 0.03


def test_as_good_as_a_model_for_each_label_in_less_time():
    X, Y = make_multilabel_classification(600, n_features=12, n_classes=4, random_state=0)
    new, actual = X[300:], Y[300:]
    X, Y = X[:300], Y[:300]
    began = process_time()
    together = RFRBoostClassifier(n_bags=2, random_state=0).fit(X, Y)
    between = process_time()
    apart = [RFRBoostClassifier(n_bags=2, random_state=0).fit(X, y) for y in Y.T]
    ended = process_time()
    found = macro_log_loss(actual, together.predict_proba(new))
    expected = macro_log_loss(actual, np.column_stack([m.predict_proba(new)[:, 1] for m in apart]))
    assert found < 1.03 * expected
    assert between - began < 0.7 * (ended - between)


def test_weights_are_repeated_rows():
    X, Y = problem()
    w = default_rng(0).integers(0, 4, len(X))
    weighted = clone(SINGLE).set_params(features="gaussian").fit(X, Y, w)
    repeated = clone(weighted).fit(np.repeat(X, w, axis=0), np.repeat(Y, w, axis=0))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-5)
    some = w > 0
    here, there = clone(QUICK).fit(X, Y, some), clone(QUICK).fit(X[some], Y[some])
    np.testing.assert_allclose(here.predict_proba(X), there.predict_proba(X), atol=1e-6)


def test_warm_starts_add_layers_to_the_same_labels():
    X, Y = problem()
    model = clone(SINGLE).set_params(n_layers=1, warm_start=True).fit(X, Y)
    model.set_params(n_layers=3).fit(X, Y)
    expected = clone(SINGLE).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-6)
    classes = np.argmax(np.c_[Y[:, :2], np.full(len(Y), 0.5)], axis=1)
    with pytest.raises(ValueError, match="other classes than in the last fit"):
        model.fit(X, classes)
    three = clone(model).fit(X, classes)
    with pytest.raises(ValueError, match="other classes than in the last fit"):
        three.fit(X, Y)


def test_categories_and_missing_values():
    rng = default_rng(0)
    town = rng.choice(["Bern", "Oslo", "Rome", "Riga"], 200)
    X = pd.DataFrame({"town": town, "x": rng.standard_normal(200)})
    Y = np.column_stack([np.isin(town, ["Bern", "Oslo"]), (town == "Oslo") ^ (X.x > 0)])
    X.loc[::7, "x"] = np.nan
    model = RFRBoostClassifier(n_bags=2, random_state=0).fit(X, Y)
    assert (model.predict(X)[:, 0] == Y[:, 0]).all()
    assert (model.predict(X)[:, 1] == Y[:, 1])[X.x.notna()].mean() > 0.9


def test_groups_validation_rows_and_scores():
    X, Y = problem(200)
    groups = np.arange(200) % 10
    assert clone(QUICK).fit(X, Y, groups=groups).oof_score_ > 0.4
    model = clone(QUICK).set_params(n_bags=5)
    assert model.fit(X, Y, groups=groups, cv=GroupKFold(4)).oof_score_ > 0.4
    model = clone(QUICK).fit(X[:150], Y[:150], X_val=X[150:], y_val=Y[150:])
    assert roc_auc_score(Y[150:], model.predict_proba(X[150:])) > 0.8
    model = clone(QUICK).set_params(scoring="roc_auc").fit(X, Y)
    assert model.oof_score_ == pytest.approx(roc_auc_score(Y, model.oof_prediction_))
    model = clone(QUICK).set_params(scoring="f1_macro").fit(X, Y)
    assert 0.5 < model.oof_score_ <= 1


def test_scikit_learns_tools_take_the_model():
    X, Y = problem(200)
    p = cross_val_predict(clone(SINGLE), X, Y, cv=3, method="predict_proba")
    assert p.shape == Y.shape
    for metric in ("roc_auc", "average_precision", "f1_macro"):
        assert cross_val_score(clone(SINGLE), X, Y, cv=3, scoring=metric).mean() > 0.5
    # Two labels: classes_ must not be taken for those of one label.
    two = clone(SINGLE).fit(X, Y[:, :2])
    expected = roc_auc_score(Y[:, :2], two.predict_proba(X))
    assert get_scorer("roc_auc")(two, X, Y[:, :2]) == expected


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_predicts_the_same_bits(fitted, name, tmp_path):
    X, _ = problem()
    fitted[name].save(tmp_path / "model")
    loaded = rfrboost.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted[name].predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), fitted[name].predict(X))
    assert len(loaded.classes_) == 3


# What is refused


@pytest.mark.parametrize(
    "columns",
    [
        lambda Y: Y + np.arange(3) % 2,
        lambda Y: 2 * Y - 1,
        lambda Y: np.where(Y, "yes", "no"),
        lambda Y: Y.astype(str),
        lambda Y: pd.DataFrame({"a": Y[:, 0], "b": np.where(Y[:, 1], "x", "y")}),
    ],
    ids=["three classes", "minus one", "words", "digits", "mixed"],
)
@pytest.mark.parametrize("model", [QUICK, SINGLE], ids=["automatic", "single"])
def test_columns_of_classes_are_refused_with_what_to_do_instead(model, columns):
    X, Y = problem()
    with pytest.raises(ValueError, match=r"MultiOutputClassifier\(RFRBoostClassifier\(\)\)"):
        clone(model).fit(X, columns(Y))


def test_columns_of_classes_have_a_model_each():
    X, Y = problem()
    Y = Y + 2 * (X[:, [3]] > 0)
    model = MultiOutputClassifier(clone(SINGLE)).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert (model.predict(X) == Y).mean() > 0.8
    assert [p.shape for p in model.predict_proba(X)] == [(120, 4)] * 3


def test_missing_labels_are_refused():
    X, Y = problem()
    with pytest.raises(ValueError, match="NaN"):
        clone(SINGLE).fit(X, np.where(np.arange(120)[:, None] == 5, np.nan, Y))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clone(SINGLE).fit(X, Y[:-1])


def test_class_weights_and_sets_are_refused(fitted):
    X, Y = problem()
    with pytest.raises(ValueError, match="class_weight is for one label per row"):
        clone(QUICK).set_params(class_weight="balanced").fit(X, Y)
    with pytest.raises(ValueError, match="several labels per row: use predict_proba"):
        fitted["automatic"].predict_set(X)


def test_validation_rows_must_have_and_lack_each_label():
    X, Y = problem()
    lacking = np.where([True, True, False], Y[100:], 0)
    with pytest.raises(ValueError, match="rows without the label of column 2"):
        clone(QUICK).fit(X[:100], Y[:100], X_val=X[100:], y_val=lacking)
    with pytest.raises(ValueError, match="y_val has 2 labels, but y has 3"):
        clone(QUICK).fit(X[:100], Y[:100], X_val=X[100:], y_val=Y[100:, :2])
    # A label that no row of y has need not be in y_val either.
    never = np.c_[Y, np.zeros(len(Y))]
    clone(QUICK).fit(X[:100], never[:100], X_val=X[100:], y_val=never[100:])


@pytest.mark.parametrize("model", [QUICK, SINGLE], ids=["automatic", "single"])
def test_row_blocks_are_refused(model):
    with pytest.raises(ValueError, match="Several labels per row are fitted to rows in memory"):
        clone(model).fit(RowBlocks([problem()]))
