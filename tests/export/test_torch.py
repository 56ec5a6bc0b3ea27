"""Modules give the predictions of the models they were made of, and trained ones come back."""

import numpy as np
import pandas as pd
import pytest
from model_zoo import CLASSIFIERS, REGRESSORS, classification, regression
from sklearn.base import clone, is_classifier
from small_forests import codes

import rfrboost
from rfrboost import (
    Huber,
    Loss,
    Poisson,
    Quantile,
    RFNNClassifier,
    RFNNRegressor,
    RFRBoostClassifier,
    RFRBoostRegressor,
    SquaredError,
)
from rfrboost._model.forest import Forest
from rfrboost._model.losses import (
    BUILT_IN,
    BinaryLogLoss,
    LabelsLogLoss,
    Quantiles,
    SoftmaxLogLoss,
)

torch = pytest.importorskip("torch")

from rfrboost._export.torch.losses import LINKS, predicted, value  # noqa: E402
from rfrboost._export.torch.network import NetworkModule, full_rank  # noqa: E402
from rfrboost.torch import fine_tune  # noqa: E402

CLOSE = 1e-5


def answers(model, X):
    """Predictions or probabilities, one row for each row of X."""
    answer = model.predict_proba(X) if is_classifier(model) else model.predict(X)
    return answer.reshape(len(X), -1)


def check(model, X):
    """The module's answers are the model's, and there and back nothing changes."""
    scale = np.std(answers(model, X)) or 1.0
    with torch.no_grad():
        there = model.to_torch()(torch.from_numpy(model.encode(X))).numpy()
    np.testing.assert_allclose(there, answers(model, X), atol=CLOSE * scale, rtol=0)
    back = NetworkModule(model.network_).numpy()
    np.testing.assert_array_equal(back.raw(model.encode(X)), model.network_.raw(model.encode(X)))


@pytest.mark.parametrize("name", REGRESSORS)
def test_every_single_regressor(name):
    X, y = regression(outputs=2)
    check(clone(REGRESSORS[name]).fit(X, y), regression(300, seed=1)[0])


def test_several_labels_per_row_there_and_trained_on():
    X, y = regression(outputs=3)
    model = clone(CLASSIFIERS["rfrboost"]).fit(X, y > 0.2)
    check(model, regression(300, seed=1)[0])
    tuned = fine_tune(model, X, y > 0.2, n_epochs=3, random_state=0)
    assert tuned.predict_proba(X).shape == (120, 3)
    assert len(tuned.fine_tuning_) == 4


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_every_single_classifier(name, classes):
    X, y = classification(classes=classes)
    check(clone(CLASSIFIERS[name]).fit(X, y), regression(300, seed=1)[0])


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid", "sin", "cos"])
def test_every_activation(activation):
    X, y = regression(2000)
    check(RFNNRegressor(600, activation=activation, random_state=0).fit(X, y), X)


def test_automatic_models_of_tables():
    rng = np.random.default_rng(0)
    X, y = regression(400, columns=5)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["f"] = rng.choice(["u", "v", None], 400)
    frame.loc[::9, "a"] = np.nan
    check(RFRBoostRegressor(n_bags=2, random_state=0).fit(frame, y), frame)
    check(RFRBoostClassifier(n_bags=2, random_state=0).fit(frame, y > 0), frame)
    counts = rng.poisson(np.exp(y))
    check(RFRBoostRegressor(2, loss="poisson", random_state=0).fit(X, counts), X)


def test_large_coefficients_of_bumps():
    X = np.random.default_rng(0).integers(0, 4, (500, 3)).astype(float)
    y = np.sin(X @ [1.0, 2.0, 3.0]) + X[:, 0] * X[:, 1]
    check(RFRBoostRegressor(features=("bumps",), n_bags=2, random_state=0).fit(X, y), X)


def test_deep_trees():
    X, y = codes(500, 1)
    model = RFRBoostRegressor(features=("swim", "trees"), n_bags=2, random_state=0).fit(X, y)
    assert isinstance(model.network_.layers[-1].features.from_x, Forest)
    check(model, X)
    module = NetworkModule(model.network_)
    trained = [name for name, p in module.named_parameters() if p.requires_grad]
    assert len([name for name in trained if name.endswith(".values")]) == 1


def test_drawing_anew_changes_every_parameter_but_identities():
    X, y = regression(300)
    module = NetworkModule(RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y).network_)
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    module.reset_parameters()
    after = dict(module.named_parameters())
    unchanged = [name for name, p in before.items() if torch.equal(p, after[name])]
    assert all(name.endswith(".V") for name in unchanged)
    assert len(unchanged) < len(before)


def test_steps_of_full_rank_predict_the_same():
    X, y = regression(outputs=2)
    for name in ("gradient", "dense", "diagonal"):
        model = clone(REGRESSORS[name]).fit(X, y)
        np.testing.assert_allclose(full_rank(model.network_).raw(X), model.network_.raw(X))


def test_fine_tuning_lowers_the_held_out_loss_and_leaves_the_model_alone():
    X, y = regression(900)
    model = RFRBoostRegressor(2, n_features=20, random_state=0).fit(X[:600], y[:600])
    before = model.predict(X)
    tuned = fine_tune(
        model, X[:600], y[:600], X_val=X[600:], y_val=y[600:], n_epochs=15, random_state=0
    )
    assert np.array_equal(model.predict(X), before)
    assert min(tuned.fine_tuning_) < 0.9 * tuned.fine_tuning_[0]
    assert tuned.score(X[600:], y[600:]) > model.score(X[600:], y[600:])


@pytest.mark.parametrize("full", [False, True])
def test_what_comes_back_is_an_ordinary_model(tmp_path, full):
    X, y = classification(400)
    model = RFRBoostClassifier(2, n_features=20, random_state=0).fit(X[:300], y[:300])
    tuned = fine_tune(
        model,
        X[:300],
        y[:300],
        X_val=X[300:],
        y_val=y[300:],
        full_rank_steps=full,
        n_epochs=5,
        random_state=0,
    )
    assert not np.array_equal(tuned.predict_proba(X), model.predict_proba(X))
    tuned.save(tmp_path / "tuned.rfrboost")
    again = rfrboost.load(tmp_path / "tuned.rfrboost")
    assert np.array_equal(again.predict_proba(X), tuned.predict_proba(X))
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(tuned.to_onnx().SerializeToString())
    probabilities = session.run(["probabilities"], tuned.onnx_inputs(X))[0]
    np.testing.assert_allclose(probabilities, tuned.predict_proba(X), atol=CLOSE)
    check(tuned, X)


def test_where_nothing_helps_the_model_stays_what_it_was():
    X, y = regression(200)
    model = RFNNRegressor(30, random_state=0).fit(X, y)
    tuned = fine_tune(model, X, y, learning_rate=1e3, n_epochs=2, random_state=0)
    assert tuned.fine_tuning_[0] == min(tuned.fine_tuning_)
    assert tuned.network_ is model.network_


def test_only_the_chosen_parts_are_trained():
    X, y = regression(200)
    model = RFRBoostRegressor(1, n_features=10, random_state=0).fit(X, y)
    tuned = fine_tune(model, X, y, train_parts=("head",), n_epochs=3, random_state=0)
    old, new = model.network_, tuned.network_
    weights = [n.layers[0].features.from_x.weights for n in (old, new)]
    np.testing.assert_allclose(*weights, rtol=1e-6)
    assert new is old or not np.allclose(old.heads[-1].matrix, new.heads[-1].matrix)


LOSSES = (
    (SquaredError(), 2),
    (Huber(0.7), 1),
    (Huber(np.array([0.5, 2.0])), 2),
    (Quantile(0.8, 0.3), 1),
    (Quantiles(np.array([0.1, 0.5, 0.9]), np.array([0.3])), 3),
    (Poisson(), 1),
    (BinaryLogLoss(), 1),
    (LabelsLogLoss(), 3),
    (SoftmaxLogLoss(), 3),
)


def targets(loss, d):
    """50 targets that a loss with d outputs allows."""
    rng = np.random.default_rng(1)
    if isinstance(loss, SoftmaxLogLoss):
        return np.eye(d)[rng.integers(0, d, 50)]
    if isinstance(loss, BinaryLogLoss):
        return rng.integers(0, 2, (50, d)).astype(float)
    if isinstance(loss, Quantiles):
        return rng.normal(size=(50, 1))
    return rng.poisson(2.0, (50, d)).astype(float)


@pytest.mark.parametrize(("loss", "d"), LOSSES, ids=lambda case: type(case).__name__)
def test_every_loss_is_the_models_own_up_to_a_constant(loss, d):
    raw, y = np.random.default_rng(0).normal(size=(50, d)), targets(loss, d)
    before, after = (value(loss, torch.tensor(r), torch.tensor(y)) for r in (raw, raw + 0.3))
    expected = loss.value(raw + 0.3, y) - loss.value(raw, y)
    np.testing.assert_allclose((after - before).numpy(), expected, atol=1e-12)
    found = predicted(loss, torch.tensor(raw)).numpy()
    np.testing.assert_allclose(found, loss.predict(raw), rtol=1e-12)


def test_every_built_in_loss_and_link_is_among_those_tested():
    assert {type(loss) for loss, _ in LOSSES} == set(BUILT_IN)
    assert set(LINKS) == {loss.link for loss in BUILT_IN}


class Absolute(Loss):
    """A loss that a user defines."""

    def value(self, raw, y):
        return np.sqrt(1 + (raw - y) ** 2).sum(axis=1)

    def gradient(self, raw, y):
        return (raw - y) / np.sqrt(1 + (raw - y) ** 2)


def test_losses_of_users_are_refused_in_a_sentence():
    X, y = regression(100)
    model = RFNNRegressor(10, loss=Absolute(), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="loss Absolute cannot be used in PyTorch"):
        model.to_torch()
    with pytest.raises(ValueError, match="loss Absolute cannot be used in PyTorch"):
        fine_tune(model, X, y, random_state=0)


def test_mistakes_are_refused_in_a_sentence():
    X, y = classification()
    model = RFNNClassifier(10, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="'class 9'"):
        fine_tune(model, X, np.full(len(X), "class 9"))
    with pytest.raises(ValueError, match="train_parts should be some of"):
        fine_tune(model, X, y, train_parts=("everything",))
    with pytest.raises(ValueError, match="rows"):
        fine_tune(model, X, y[:-1])


def test_automatic_models_are_trained_too_centres_and_all():
    X, y = regression(600)
    model = RFRBoostRegressor(features=("bumps",), n_bags=2, random_state=0)
    model.fit(X[:300], y[:300])
    tuned = fine_tune(
        model,
        X[:300],
        y[:300],
        X_val=X[300:],
        y_val=y[300:],
        train_parts=("features", "steps", "head", "centres"),
        learning_rate=1e-4,
        n_epochs=5,
        random_state=0,
    )
    assert min(tuned.fine_tuning_) <= tuned.fine_tuning_[0]
    module = NetworkModule(model.network_)
    total = module(torch.from_numpy(model.encode(X[:20]))).sum()
    gradients = torch.autograd.grad(total, list(module.parameters()))
    assert all(torch.isfinite(g).all() for g in gradients)
    assert any(name.endswith("centres") for name, _ in module.named_parameters())
    # Away from the centres: where rows nearly meet them, the model rounds distances to 0.
    check(tuned, regression(300, seed=1)[0])


def test_training_discards_what_the_fit_measured_on_its_rows():
    X, y = regression(200)
    model = RFRBoostRegressor(features=("swim",), n_bags=2, random_state=0).fit(X, y)
    tuned = fine_tune(model, X, y - 2 * X[:, 0], n_epochs=3, random_state=0)
    assert tuned.network_ is not model.network_
    assert not hasattr(tuned, "oof_score_")
    with pytest.raises(ValueError, match="trained in PyTorch since"):
        tuned.predict_interval(X)
    assert model.predict_interval(X).shape == (200, 2)


def test_weights_and_targets_are_checked_as_in_a_fit():
    X, y = regression(100)
    model = RFNNRegressor(10, random_state=0).fit(X, y)
    w = np.where(np.arange(100) < 80, 0.0, 1.0)
    kept = {"n_epochs": 2, "batch_size": 4, "X_val": X, "y_val": y, "random_state": 0}
    losses = fine_tune(model, X, y, w, **kept).fine_tuning_
    assert np.isfinite(losses).all()
    assert losses == fine_tune(model, X[80:], y[80:], **kept).fine_tuning_
    with pytest.raises(ValueError, match="NaN"):
        fine_tune(model, X, np.where(w > 0, np.nan, y))
    with pytest.raises(ValueError, match="negative"):
        fine_tune(model, X, y, -np.ones(100))


def test_rows_far_from_training_stay_within_bounds():
    X, _ = regression()
    y = 3 * X[:, 0]
    model = RFRBoostRegressor(features=("swim",), n_bags=2, random_state=0, preprocess=None)
    model.fit(X, y)
    check(model, 50 * X)
    assert model.predict(50 * X).max() == pytest.approx(y.max() + 0.25 * np.ptp(y))
