"""Standard deviations, intervals and sets of the estimators: what they mean, and where they end."""

import numpy as np
import pytest
from model_zoo import classification, regression
from numpy.random import default_rng
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import rfrboost
from rfrboost import ModelFileError, RFNNRegressor, RFRBoostClassifier, RFRBoostRegressor
from rfrboost._estimators.intervals import members
from rfrboost._files.io import from_state, to_state

#: small ensembles
QUICK = {"features": "swim", "n_features": 24, "n_bags": 3, "random_state": 0}
REGRESSORS = {
    "one output": RFRBoostRegressor(**QUICK),
    "two outputs": RFRBoostRegressor(**QUICK),
    "one bag": RFRBoostRegressor(**{**QUICK, "n_bags": 1}),
    "poisson": RFRBoostRegressor(**QUICK, loss="poisson"),
    "huber": RFRBoostRegressor(**QUICK, loss="huber"),
    "quantile": RFRBoostRegressor(**QUICK, loss="quantile", quantile=0.8),
    "all families": RFRBoostRegressor(n_bags=3, random_state=0),
}


def data_for(name, n=150, seed=0):
    X, y = regression(n, outputs=2 if name == "two outputs" else 0, seed=seed)
    return X, np.round(np.exp(y)) if name == "poisson" else 100 * y + 7


@pytest.fixture(scope="module")
def fitted():
    return {name: clone(model).fit(*data_for(name)) for name, model in REGRESSORS.items()}


def member_predictions(model, X):
    """(n, members, d), in units of y, from the public representation."""
    d = model.network_.heads[-1].matrix.shape[1]
    phi = model.transform(X)
    flat = model._fitted.loss.predict(phi.reshape(-1, d))
    return model._fitted.targets.scale.grow(flat).reshape(len(X), -1, d)


def as_table(values):
    return values.reshape(len(values), -1)


@pytest.mark.parametrize("name", REGRESSORS)
def test_intervals_are_cv_plus_of_the_out_of_fold_residuals(name, fitted):
    model = fitted[name]
    X, y = data_for(name)
    new, _ = data_for(name, 20, seed=1)
    known = np.isfinite(as_table(model.oof_prediction_)).all(axis=1)
    X, Y, oof = X[known], as_table(y)[known], as_table(model.oof_prediction_)[known]
    here, there = member_predictions(model, X), member_predictions(model, new)
    fold = np.argmin(np.abs(here - oof[:, None]).sum(axis=2), axis=1)
    residuals = np.abs(Y - oof)
    place = int(np.ceil(0.8 * (len(Y) + 1))) - 1
    upper = np.sort(there[:, fold] + residuals, axis=1)[:, place]
    lower = -np.sort(-there[:, fold] + residuals, axis=1)[:, place]
    found = model.predict_interval(new, coverage=0.8)
    assert found.shape == (*np.shape(model.predict(new)), 2)
    unit = np.abs(Y).max()
    np.testing.assert_allclose(as_table(found[..., 0]), lower, rtol=1e-6, atol=1e-6 * unit)
    np.testing.assert_allclose(as_table(found[..., 1]), upper, rtol=1e-6, atol=1e-6 * unit)


@pytest.mark.parametrize("name", REGRESSORS)
def test_std_is_that_of_residuals_and_between_members(name, fitted):
    model = fitted[name]
    _, y = data_for(name)
    new, _ = data_for(name, 30, seed=1)
    prediction, std = model.predict(new, return_std=True)
    np.testing.assert_array_equal(prediction, model.predict(new))
    assert std.shape == prediction.shape
    residuals = as_table(y) - as_table(model.oof_prediction_)
    expected = np.nanmean(residuals**2, axis=0) + member_predictions(model, new).var(axis=1)
    np.testing.assert_allclose(as_table(std), np.sqrt(expected), rtol=1e-6)


@pytest.mark.parametrize("name", ["one output", "two outputs", "poisson"])
def test_answers_are_saved(name, fitted, tmp_path):
    model = fitted[name]
    X, _ = data_for(name, 30, seed=1)
    model.save(tmp_path / "model")
    loaded = rfrboost.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))
    for found, expected in zip(
        loaded.predict(X, return_std=True), model.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_intervals_cover_new_rows_on_average():
    """Over many tables: 12 × 400 test rows, and what a table's own draw adds."""
    inside, squares = [], []
    for seed in range(12):
        X, y = regression(520, seed=seed)
        y = y + 0.5 * default_rng(seed).standard_t(4, 520)
        model = RFRBoostRegressor(**QUICK).fit(X[:120], y[:120])
        low, high = model.predict_interval(X[120:]).T
        inside.append(np.mean((low <= y[120:]) & (y[120:] <= high)))
        prediction, std = model.predict(X[120:], return_std=True)
        squares.append(np.mean(((y[120:] - prediction) / std) ** 2))
    error = np.std(inside, ddof=1) / np.sqrt(len(inside))
    assert 0.9 - 4 * error < np.mean(inside) < 0.96
    assert 0.6 < np.mean(squares) < 1.4


def test_sets_cover_new_rows_and_are_never_empty():
    inside = []
    for seed in range(8):
        X, y = classification(520, classes=4, seed=seed)
        lost = default_rng(seed).random(520) < 0.25
        y = np.where(lost, default_rng(seed + 1).permutation(y), y)
        model = RFRBoostClassifier(**QUICK).fit(X[:120], y[:120])
        sets = model.predict_set(X[120:])
        assert sets.shape == (400, 4)
        assert sets.dtype == bool
        assert sets.any(axis=1).all()
        best = np.argmax(model.predict_proba(X[120:]), axis=1)
        assert sets[np.arange(400), best].all()
        inside.append(sets[np.arange(400), np.searchsorted(model.classes_, y[120:])].mean())
        assert (sets <= model.predict_set(X[120:], coverage=0.97)).all()
    error = np.std(inside, ddof=1) / np.sqrt(len(inside))
    assert 0.9 - 4 * error < np.mean(inside) < 0.96


@pytest.mark.parametrize("classes", [2, 3])
def test_sets_are_cross_conformal_in_the_probability_of_the_right_class(classes, tmp_path):
    X, y = classification(150, classes=classes)
    new, _ = classification(40, classes=classes, seed=1)
    model = RFRBoostClassifier(**QUICK).fit(X, y)
    d = 1 if classes == 2 else classes

    def probabilities(rows):
        phi = model.transform(rows)
        return model._fitted.loss.predict(phi.reshape(-1, d)).reshape(len(rows), -1, classes)

    here, there, codes = probabilities(X), probabilities(new), np.searchsorted(model.classes_, y)
    fold = np.argmin(np.abs(here - model.oof_prediction_[:, None]).sum(axis=2), axis=1)
    right = model.oof_prediction_[np.arange(150), codes]
    # As many held-out rows gave their own class more, as the member that held them out says.
    above = (right[None, :, None] > there[:, fold] + 1e-12).sum(axis=1)
    expected = above < 0.8 * 151
    expected[np.arange(40), np.argmax(model.predict_proba(new), axis=1)] = True
    np.testing.assert_array_equal(model.predict_set(new, coverage=0.8), expected)
    model.save(tmp_path / "model")
    loaded = rfrboost.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_set(new), model.predict_set(new))


def test_validation_rows_are_what_intervals_and_sets_go_by():
    X, y = regression(400)
    model = RFRBoostRegressor(**QUICK).fit(X[:100], y[:100], X_val=X[100:200], y_val=y[100:200])
    residuals = np.sort(np.abs(y[100:200] - model.predict(X[100:200])))
    half = residuals[int(np.ceil(0.9 * 101)) - 1]
    found = model.predict_interval(X[200:])
    centre = model.predict(X[200:])
    expected = np.column_stack([centre - half, centre + half])
    # Ends beyond the range of y and its margin are cut off there.
    inside = (found > found.min()) & (found < found.max())
    assert inside.mean() > 0.9
    np.testing.assert_allclose(found[inside], expected[inside], atol=1e-5)
    labels = np.where(y > 0, "up", "down")
    sorter = RFRBoostClassifier(**QUICK)
    sorter.fit(X[:100], labels[:100], X_val=X[100:200], y_val=labels[100:200])
    at_right = (labels[100:200, None] == sorter.classes_).astype(bool)
    right = np.sort(sorter.predict_proba(X[100:200])[at_right])[::-1]
    p = sorter.predict_proba(X[200:])
    expected = p >= right[int(np.ceil(0.9 * 101)) - 1] - 1e-9
    expected[np.arange(200), np.argmax(p, axis=1)] = True
    assert np.mean(expected != sorter.predict_set(X[200:])) < 0.01


def test_rows_of_great_weight_decide():
    """Noise is large in half of the rows; intervals are as wide as those that weigh say."""
    rng = default_rng(0)
    X = rng.standard_normal((300, 2))
    loud = np.arange(300) % 2 == 0
    y = X[:, 0] + np.where(loud, 5.0, 0.05) * rng.standard_normal(300)
    widths = {}
    for name, of in (("loud", loud), ("quiet", ~loud)):
        model = RFRBoostRegressor(**QUICK).fit(X, y, sample_weight=np.where(of, 1.0, 1e-4))
        widths[name] = np.diff(model.predict_interval(X)).mean()
    assert widths["loud"] > 10 * widths["quiet"]


def test_the_unit_of_y_is_the_unit_of_the_answers():
    X, y = regression(120)
    small, large = (RFRBoostRegressor(**QUICK).fit(X, c * y) for c in (1.0, 2.0**40))
    np.testing.assert_array_equal(large.predict_interval(X), 2.0**40 * small.predict_interval(X))
    std = small.predict(X, return_std=True)[1]
    np.testing.assert_array_equal(large.predict(X, return_std=True)[1], 2.0**40 * std)


def test_rows_come_in_batches_that_change_nothing(fitted):
    X, _ = data_for("two outputs", 50, seed=2)
    model = fitted["two outputs"]
    encoded = model.encode(X)
    ((raw, predictions),) = members(model._fitted, encoded)
    batches = list(members(model._fitted, encoded, batch_rows=7))
    assert [len(batch[0]) for batch in batches] == [7] * 7 + [1]
    np.testing.assert_allclose(np.vstack([b[0] for b in batches]), raw, rtol=1e-9)
    np.testing.assert_allclose(np.vstack([b[1] for b in batches]), predictions, rtol=1e-9)


@pytest.mark.parametrize("coverage", [0, 1, 1.5, -0.1, np.nan, "0.9", None])
def test_coverage_is_a_share(coverage, fitted):
    X, _ = data_for("one output")
    with pytest.raises(ValueError, match=r"^coverage is the share of rows"):
        fitted["one output"].predict_interval(X, coverage=coverage)


def test_what_holds_no_rows_out_says_so():
    X, y = regression(60)
    single = RFRBoostRegressor(2, n_features=8).fit(X, y)
    with pytest.raises(ValueError, match="Fit with n_layers='auto'"):
        single.predict_interval(X)
    with pytest.raises(ValueError, match=r"^return_std needs .* Fit with n_layers='auto'"):
        single.predict(X, return_std=True)
    few = RFRBoostRegressor().fit(X[:30], y[:30])
    with pytest.raises(ValueError, match="at least 50 rows"):
        few.predict_interval(X)
    sorter = RFRBoostClassifier(2, n_features=8).fit(X, y > 0)
    with pytest.raises(ValueError, match="Fit with n_layers='auto'"):
        sorter.predict_set(X)
    levels = RFRBoostRegressor(2, n_features=8, loss="quantile", quantile=(0.1, 0.9)).fit(X, y)
    with pytest.raises(ValueError, match="predicts several quantile levels"):
        levels.predict_interval(X)
    for method in (RFRBoostRegressor().predict_interval, RFRBoostClassifier().predict_set):
        with pytest.raises(NotFittedError):
            method(X)
    assert not hasattr(RFNNRegressor(), "predict_interval")


def test_fitting_again_forgets_the_residuals_of_before():
    X, y = regression(60)
    model = RFRBoostRegressor(**QUICK).fit(X, y)
    model.set_params(n_layers=2, n_bags=5).fit(X, y)
    with pytest.raises(ValueError, match="Fit with n_layers='auto'"):
        model.predict_interval(X)


def test_files_from_before_residuals_were_kept_still_predict(fitted):
    model = fitted["one output"]
    X, _ = data_for("one output")
    state = to_state(model)
    del state["fitted"]["calibration"]
    older = from_state(state)
    np.testing.assert_array_equal(older.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="its file was written before they were kept"):
        older.predict_interval(X)


@pytest.mark.parametrize("damage", ["order", "weights", "members", "outputs", "empty"])
def test_residuals_that_do_not_fit_are_refused(damage, fitted):
    state = to_state(fitted["one output"])
    kept = state["fitted"]["calibration"]
    if damage == "order":
        kept["scores"][0] = kept["scores"][0][::-1]
    elif damage == "weights":
        kept["weights"][1] = -kept["weights"][1]
    elif damage == "members":
        kept["scores"].pop()
    elif damage == "outputs":
        kept["scores"][0] = np.hstack([kept["scores"][0]] * 2)
    else:
        kept["scores"][0], kept["weights"][0] = np.empty((0, 1)), np.empty((0, 1))
    with pytest.raises(ModelFileError, match="do not fit together"):
        from_state(state)
