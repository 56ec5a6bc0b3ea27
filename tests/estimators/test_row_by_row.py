"""A prediction depends on its own row alone, whatever else is in the batch."""

import numpy as np
import pytest
from model_zoo import CLASSIFIERS, REGRESSORS, classification, regression
from numpy.random import default_rng
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_moons
from sklearn.preprocessing import StandardScaler
from small_sizes import with_sizes

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost._numerics.sizes import Sizes

# Models that read tables say that such rows are unlike all that they were fitted on.
pytestmark = pytest.mark.filterwarnings("ignore:.* rows hold numbers far outside the range")

#: the largest change, in units of the spread of what is predicted
CLOSE = 1e-7

#: as CLOSE, of exported models, which compute in other orders than the model
CLOSE_EXPORTED = 1e-5

OUTLIERS = [1e5, 1e7, 1e30]

#: leaves of tens of rows, so that small tables have several
SMALL_LEAVES = Sizes(shared_draw_rows=0, most_centres=60, drawn_centres=30, leaf_held_out_rows=2)

AUTOMATIC = {
    "automatic": {},
    "automatic-unprepared": {"preprocess": None},
    "automatic-bumps": {"features": ("bumps",), "preprocess": None},
}


def moons():
    X, y = make_moons(600, noise=0.2, random_state=1)
    return StandardScaler().fit_transform(X), y


def steps():
    X = default_rng(0).uniform(-1, 1, (600, 2))
    return X, np.sign(np.sin(4 * X[:, 0]) * np.sin(4 * X[:, 1]))


def fitted(name):
    """A model by its name, and rows that it can predict."""
    kind, _, which = name.partition(" ")
    if kind == "regressor":
        X, y = regression(outputs=2)
        return clone(REGRESSORS[which]).fit(X, y), X
    if kind == "classifier":
        X, y = classification()
        return clone(CLASSIFIERS[which]).fit(X, y), X
    if kind == "leaves":
        X, y = steps()
        model = RFRBoostRegressor(features=("bumps",), preprocess=None, random_state=0)
        return with_sizes(model, SMALL_LEAVES).fit(X, y), X
    if kind == "moons":
        X, y = moons()
        return RFRBoostClassifier(**AUTOMATIC[which], n_bags=2, random_state=0).fit(X, y), X
    X, y = regression(300)
    return RFRBoostRegressor(**AUTOMATIC[which], n_bags=2, random_state=0).fit(X, y), X


MODELS = [
    *(f"regressor {name}" for name in REGRESSORS),
    *(f"classifier {name}" for name in CLASSIFIERS),
    *(f"{task} {name}" for task in ("numbers", "moons") for name in AUTOMATIC),
    "leaves",
]


@pytest.fixture(scope="module", params=MODELS)
def model_and_rows(request):
    return fitted(request.param)


def answers(model, X):
    """Everything that a model says about rows, by name; the first axis is that of the rows."""
    automatic = model.get_params().get("n_layers") == "auto"
    told = {"predict": model.predict(X), "transform": model.transform(X)}
    told["input_gradient"] = model.input_gradient(X)
    if is_classifier(model):
        told["predict"] = np.searchsorted(model.classes_, told["predict"])
        told["predict_proba"] = model.predict_proba(X)
        told["decision_function"] = model.decision_function(X)
        staged = model.staged_predict_proba(X)
        if automatic:
            told["predict_set"] = model.predict_set(X)
    else:
        staged = model.staged_predict(X)
        if automatic:
            told["return_std"] = model.predict(X, return_std=True)[1]
            told["predict_interval"] = model.predict_interval(X)
    told["staged"] = np.stack(list(staged), axis=1)
    return {name: np.asarray(told[name], dtype=float) for name in told}


def check(alone, among, close=CLOSE):
    for name, expected in alone.items():
        # Standard deviations are in the units of predictions, and may vary little.
        spread = np.std(alone["predict" if name == "return_std" else name]) or 1.0
        np.testing.assert_allclose(among[name], expected, rtol=0, atol=close * spread, err_msg=name)


@pytest.mark.parametrize("outlier", OUTLIERS)
def test_one_row_far_out_changes_no_other(model_and_rows, outlier):
    model, X = model_and_rows
    X = X[:100]
    alone = answers(model, X)
    batch = np.vstack([X[:40], X[:1], X[40:]])
    batch[40] = 0
    batch[40, 0] = outlier
    check(alone, {name: np.delete(a, 40, axis=0) for name, a in answers(model, batch).items()})


def test_a_row_alone_is_predicted_as_among_others(model_and_rows):
    model, X = model_and_rows
    X = X[:60]
    one_by_one = [answers(model, X[[i]]) for i in range(len(X))]
    among = answers(model, X)
    check(among, {name: np.concatenate([a[name] for a in one_by_one]) for name in among})


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_probabilities_of_a_row_do_not_depend_on_the_size_of_the_batch(seed):
    X, y = make_moons(600, noise=0.2, random_state=seed)
    model = RFRBoostClassifier(n_bags=2, random_state=0).fit(X, y)
    among = model.predict_proba(X[:200])
    alone = np.vstack([model.predict_proba(row[None]) for row in X[:200]])
    assert np.abs(among - alone).max() < CLOSE * among.std()


def exported(kind, model, X):
    """Predictions by ONNX or PyTorch."""
    if kind == "torch":
        torch = pytest.importorskip("torch")
        with torch.no_grad():
            return model.to_torch()(torch.from_numpy(model.encode(X))).numpy()
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    session = runtime.InferenceSession(model.to_onnx(dtype="float64").SerializeToString())
    return session.run(None, model.onnx_inputs(X, dtype="float64"))[-1]


@pytest.mark.parametrize("kind", ["onnx", "torch"])
def test_exported_models_predict_rows_among_outliers_as_the_model_does(model_and_rows, kind):
    model, X = model_and_rows
    far = np.zeros((len(OUTLIERS), X.shape[1]))
    far[:, 0] = OUTLIERS
    X = np.vstack([X[:100], far])
    told = model.predict_proba(X) if is_classifier(model) else model.predict(X)
    expected = told.reshape(len(X), -1)
    predicted = exported(kind, model, X)
    spread = np.std(expected[:100])
    ordinary = np.abs(predicted[:100] - expected[:100]).max()
    assert ordinary < CLOSE_EXPORTED * spread
    # Outliers may be predicted far out too.
    relative = np.abs(predicted[100:] - expected[100:]) / (spread + np.abs(expected[100:]))
    assert relative.max() < CLOSE_EXPORTED


def test_an_outlier_leaves_the_accuracy_of_the_moons_as_it_is():
    X, y = moons()
    new, labels = make_moons(600, noise=0.2, random_state=2)
    new = StandardScaler().fit_transform(new)
    model = RFRBoostClassifier(n_bags=2, random_state=0).fit(X, y)
    alone = model.score(new, labels)
    among = model.predict(np.vstack([new, [[1e7, 0.0]]]))[:-1]
    assert alone > 0.95
    assert np.mean(among == labels) == alone
