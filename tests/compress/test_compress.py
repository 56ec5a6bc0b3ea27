"""Compressed models: smaller, of the same class, within what was asked for, and equal wherever
they are used."""

import numpy as np
import pytest
from numpy.random import default_rng
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss

import rfrboost
from rfrboost import RFNNRegressor, RFRBoostClassifier, RFRBoostRegressor
from rfrboost._compress import imitation
from rfrboost._compress.candidates import candidates_of


@pytest.fixture(autouse=True)
def fewer_rows(monkeypatch):
    monkeypatch.setattr(imitation, "IMITATED_ROWS", 2048)
    monkeypatch.setattr(imitation, "JUDGED_ROWS", 512)
    monkeypatch.setattr(imitation, "MOST_CANDIDATES", 512)


def rows(n=300, seed=0):
    return make_friedman1(n, 6, noise=1.0, random_state=seed)


@pytest.fixture(scope="module")
def regressor():
    return RFRBoostRegressor(n_bags=2, random_state=0).fit(*rows())


@pytest.fixture(scope="module")
def classifier():
    X, y = rows()
    return RFRBoostClassifier(n_bags=2, random_state=0).fit(X, np.digitize(y, [11, 17]))


@pytest.fixture(scope="module")
def two_outputs():
    X, y = rows()
    return RFRBoostRegressor(n_bags=2, random_state=0).fit(
        X, np.column_stack([y, 100 * X[:, 0] + y])
    )


def rmse(model, X, y):
    return np.sqrt(np.mean((model.predict(X) - y) ** 2))


def test_the_tolerance_is_kept_on_new_rows(regressor):
    X, y = rows(2000, seed=1)
    small = regressor.compress(rows()[0], tolerance=0.05)
    assert type(small) is type(regressor)
    assert small.compression_.features < small.compression_.features_before / 5
    assert 0 <= small.compression_.cost <= 0.05
    # The estimate is from 300 rows: on new rows the error may grow by somewhat more.
    assert rmse(small, X, y) <= 1.1 * rmse(regressor, X, y)


def test_the_tolerance_is_kept_on_validation_rows(regressor):
    X_val, y_val = rows(500, seed=2)
    small = regressor.compress(rows()[0], tolerance=0.02, X_val=X_val, y_val=y_val)
    found = small.compression_
    assert found.measured
    np.testing.assert_allclose(found.error, rmse(small, X_val, y_val), rtol=1e-6)
    np.testing.assert_allclose(found.error_before, rmse(regressor, X_val, y_val), rtol=1e-6)
    assert found.error <= 1.02 * found.error_before


def test_log_loss_of_classes(classifier):
    X, y = rows(1000, seed=1)
    y = np.digitize(y, [11, 17])
    small = classifier.compress(rows()[0], tolerance=0.05, X_val=X, y_val=y)
    losses = [log_loss(y, model.predict_proba(X)) for model in (classifier, small)]
    np.testing.assert_allclose(losses[1], small.compression_.error, rtol=1e-6)
    assert losses[1] <= 1.05 * losses[0]
    assert small.compression_.metric == "log loss"
    estimated = classifier.compress(rows()[0], size=50).compression_
    assert not estimated.measured
    assert estimated.error > estimated.error_before


@pytest.mark.parametrize("size", [0, 1, 7, 40])
def test_a_size_is_kept(regressor, size):
    small = regressor.compress(rows()[0], size=size)
    assert small.compression_.features == size
    kept = sum(part.size for part, _ in candidates_of(small.network_))
    assert kept == size


def test_more_features_cost_less(regressor):
    X = rows()[0]
    costs = [regressor.compress(X, size=size).compression_.cost for size in (0, 20, 200)]
    assert costs[0] > costs[1] > costs[2]


def test_a_size_that_the_model_has_leaves_it_as_it_is(regressor):
    X = rows()[0]
    same = regressor.compress(X, size=10**6)
    assert same.compression_.cost == 0
    np.testing.assert_array_equal(same.predict(X), regressor.predict(X))


def test_no_model_is_within_a_tiny_tolerance(regressor):
    X = rows()[0]
    same = regressor.compress(X, tolerance=1e-12)
    assert same.compression_.features == same.compression_.features_before
    np.testing.assert_array_equal(same.predict(X), regressor.predict(X))


def test_the_model_itself_stays_as_it_was(regressor):
    X = rows()[0]
    before = regressor.predict(X)
    regressor.compress(X, size=5)
    np.testing.assert_array_equal(regressor.predict(X), before)
    assert not hasattr(regressor, "compression_")


@pytest.mark.parametrize("model", ["regressor", "classifier", "two_outputs"])
def test_files_and_single_rows(model, request, tmp_path):
    X = rows()[0]
    small = request.getfixturevalue(model).compress(X, size=60)
    small.save(tmp_path / "small.rfrboost")
    loaded = rfrboost.load(tmp_path / "small.rfrboost")
    answer = getattr(small, "predict_proba", small.predict)(X)
    np.testing.assert_array_equal(getattr(loaded, "predict_proba", loaded.predict)(X), answer)
    one_by_one = [getattr(small, "predict_proba", small.predict)(X[i : i + 1]) for i in range(20)]
    np.testing.assert_allclose(np.concatenate(one_by_one), answer[:20], rtol=1e-12)
    assert loaded.compression_ == small.compression_
    # Versions that do not know compressed models know that they do not know this format.
    assert rfrboost.file_info(tmp_path / "small.rfrboost")["format"] == 2
    np.testing.assert_allclose(small.transform(X), small.network_.raw(small.encode(X)), rtol=1e-9)


@pytest.mark.parametrize("model", ["regressor", "classifier", "two_outputs"])
def test_onnx(model, request):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    X = rows()[0]
    small = request.getfixturevalue(model).compress(X, size=60)
    data = small.to_onnx(dtype="float64").SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    output = "probabilities" if model == "classifier" else "variable"
    (found,) = session.run([output], small.onnx_inputs(X, dtype="float64"))
    answer = getattr(small, "predict_proba", small.predict)(X)
    np.testing.assert_allclose(found.reshape(answer.shape), answer, rtol=1e-4, atol=1e-4)


def test_torch(regressor):
    torch = pytest.importorskip("torch")
    X = rows()[0]
    small = regressor.compress(X, size=60)
    found = small.to_torch()(torch.from_numpy(small.encode(X))).detach().numpy()
    np.testing.assert_allclose(found[:, 0], small.predict(X), rtol=1e-5, atol=1e-5)


def test_input_gradients(regressor):
    X = rows()[0][:20]
    small = regressor.compress(rows()[0], size=60, training_rows=False)
    # Encoded columns that are not clipped: differences are those of the network.
    gradient = small.input_gradient(X)
    step = 1e-5
    for j in range(X.shape[1]):
        ahead, behind = X.copy(), X.copy()
        ahead[:, j] += step
        behind[:, j] -= step
        slopes = (small.predict(ahead) - small.predict(behind)) / (2 * step)
        # Trees jump, and single precision rounds; most rows are on no jump.
        assert np.median(np.abs(slopes - gradient[:, j])) < 0.05 * (1 + np.abs(slopes).max())


def test_intervals_cover_as_many_rows_as_they_should(regressor):
    X, y = rows(2000, seed=3)
    small = regressor.compress(rows()[0], size=60)
    low, high = small.predict_interval(X, coverage=0.8).T
    assert 0.75 < np.mean((low <= y) & (y <= high)) < 0.95
    prediction, std = small.predict(X, return_std=True)
    np.testing.assert_array_equal(prediction, small.predict(X))
    assert (std > 0).all()


def test_sets_of_classes(classifier):
    X, y = rows(1000, seed=3)
    y = np.digitize(y, [11, 17])
    sets = classifier.compress(rows()[0], size=60).predict_set(X, coverage=0.9)
    assert 0.85 < np.mean(sets[np.arange(len(y)), y]) <= 1


def test_no_training_rows(regressor, tmp_path):
    X = rows()[0]
    small = regressor.compress(X, size=60, training_rows=False)
    small.save(tmp_path / "small.rfrboost")
    assert rfrboost.file_info(tmp_path / "small.rfrboost")["centres"] == 0
    with pytest.warns(UserWarning, match="No model without training rows keeps the tolerance"):
        strict = regressor.compress(X, tolerance=1e-9, training_rows=False)
    strict.save(tmp_path / "strict.rfrboost")
    assert rfrboost.file_info(tmp_path / "strict.rfrboost")["centres"] == 0
    assert strict.compression_.cost > 1e-9


def test_rows_without_weight_do_not_count(regressor):
    X = rows()[0]
    w = np.ones(len(X))
    w[200:] = 0
    elsewhere = X.copy()
    elsewhere[200:] = default_rng(0).uniform(size=(100, 6))
    one, other = (regressor.compress(A, w, size=40).predict(X) for A in (X, elsewhere))
    np.testing.assert_array_equal(one, other)
    half = regressor.compress(X, 0.5 * w, size=40).predict(X)
    np.testing.assert_array_equal(one, half)
    assert not np.array_equal(one, regressor.compress(X, size=40).predict(X))


def test_two_calls_give_the_same_model(regressor):
    X = rows()[0]
    one, other = (regressor.compress(X, size=40).predict(X) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_outputs_of_any_units(two_outputs):
    X, y = rows(1000, seed=1)
    Y = np.column_stack([y, 100 * X[:, 0] + y])
    small = two_outputs.compress(rows()[0], size=200)
    for j in range(2):
        errors = [
            np.sqrt(np.mean((model.predict(X)[:, j] - Y[:, j]) ** 2))
            for model in (two_outputs, small)
        ]
        assert errors[1] < 1.3 * errors[0]


def test_several_quantile_levels_need_validation_rows():
    X, y = rows()
    model = RFRBoostRegressor(loss="quantile", quantile=(0.1, 0.9), n_bags=2, random_state=0).fit(
        X, y
    )
    with pytest.raises(ValueError, match="pass X_val and y_val"):
        model.compress(X)
    small = model.compress(X, size=60, X_val=X, y_val=y)
    assert (np.diff(small.predict(X), axis=1) >= 0).all()
    assert small.compression_.metric == "loss"


def test_several_labels_need_validation_rows():
    X, y = rows()
    labels = np.column_stack([y > 11, y > 17, X[:, 3] > 0.5])
    model = RFRBoostClassifier(n_bags=2, random_state=0).fit(X[:200], labels[:200])
    with pytest.raises(ValueError, match="pass X_val and y_val"):
        model.compress(X[:200])
    small = model.compress(X[:200], size=60, X_val=X[200:], y_val=labels[200:])
    assert small.compression_.metric == "log loss"
    assert small.compression_.features <= 60
    log_losses = [
        sum(
            log_loss(own, p)
            for own, p in zip(labels[200:].T, m.predict_proba(X[200:]).T, strict=True)
        )
        for m in (model, small)
    ]
    found = (small.compression_.error_before, small.compression_.error)
    assert found == pytest.approx(log_losses, rel=1e-6)
    assert np.abs(small.predict_proba(X) - model.predict_proba(X)).mean() < 0.1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"tolerance": 0.01, "size": 5}, "not both"),
        ({"tolerance": 0}, "above 0"),
        ({"tolerance": np.nan}, "above 0"),
        ({"tolerance": "1 %"}, "above 0"),
        ({"size": -1}, "whole number"),
        ({"size": 0.5}, "whole number"),
        ({"size": True}, "whole number"),
        ({"X_val": np.zeros((5, 6))}, "go together"),
        ({"X_val": np.zeros((5, 6)), "y_val": np.zeros(4)}, "5 rows, but y_val has 4"),
        ({"sample_weight": -np.ones(300)}, "negative"),
    ],
)
def test_what_makes_no_sense_is_refused(regressor, arguments, words):
    with pytest.raises(ValueError, match=words):
        regressor.compress(rows()[0], **arguments)


def test_what_cannot_be_compressed(regressor):
    X, y = rows()
    with pytest.raises(NotFittedError):
        RFRBoostRegressor().compress(X)
    with pytest.raises(ValueError, match="5 features"):
        regressor.compress(X[:, :5])
    with pytest.raises(ValueError, match="at least 50"):
        regressor.compress(X[:20])
    with pytest.raises(ValueError, match="for ensembles"):
        RFRBoostRegressor(n_layers=2, random_state=0).fit(X, y).compress(X)
    bumps = RFRBoostRegressor(features=("bumps",), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="All features of this model are radial"):
        bumps.compress(X, training_rows=False)
    assert not hasattr(RFNNRegressor(), "compress")
