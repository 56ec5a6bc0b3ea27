"""Model files: what is loaded is what was saved, and what cannot be trusted is refused."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fingerprints import fingerprint
from model_zoo import CLASSIFIERS, REGRESSORS, SMALL, classification, regression
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_friedman1
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

import rfrboost
from rfrboost import (
    DenseFeatures,
    FourierFeatures,
    GaussianFeatures,
    Huber,
    Loss,
    ModelFileError,
    Quantile,
    RFNNRegressor,
    RFRBoostClassifier,
    RFRBoostRegressor,
    SWIMFeatures,
)
from rfrboost._files.io import ESTIMATORS

HERE = Path(__file__).parent.parent

LABELS = {
    "strings": np.array(["no", "yes", "äöü ✓"]),
    "two strings": np.array(["no", "yes"]),
    "objects": np.array(["a", "a longer one\0", "b"], dtype=object),
    "ints": np.array([-3, 0, 7]),
    "bytes": np.array([0, 3, 255], dtype=np.uint8),
    "floats": np.array([-1.0, 0.0, 2.0]),
    "singles": np.array([1.0, 2.0], dtype=np.float32),
    "bools": np.array([False, True]),
}


def regressors():
    """Every kind of regressor, and the corners of the state."""
    X, y = regression()
    for name, model in REGRESSORS.items():
        yield f"regressor {name}", clone(model), X, y
        yield f"two outputs {name}", clone(model), X, np.column_stack([y, 100 * y**2])
    yield "poisson", RFRBoostRegressor(**SMALL, loss="poisson"), X, np.exp(y)
    yield "own huber", RFRBoostRegressor(**SMALL, loss=Huber(2.0)), X, y
    yield "own quantile", RFNNRegressor(9, loss=Quantile(0.1, 0.01), random_state=0), X, y
    yield "no layers", RFRBoostRegressor(0), X, y
    yield "constant", RFRBoostRegressor(**SMALL, strategy="greedy"), X, np.ones(len(X))
    yield "from x only", RFRBoostRegressor(2, n_features=(0, 9), learning_rate=1.0), X, y
    yield "large", RFRBoostRegressor(**SMALL), X, 1e300 * y
    # Enough rows and features for single precision.
    X, y = regression(2200)
    yield "single", RFRBoostRegressor(2, n_features=(256, 256), random_state=0), X, y


def classifiers():
    X, _ = classification()
    for name, model in CLASSIFIERS.items():
        for kind, labels in LABELS.items():
            y = labels[np.searchsorted([-0.4, 0.4], X[:, 0]) % len(labels)]
            yield f"classifier {name} {kind}", clone(model), X, y
        yield f"classifier {name} several labels", clone(model), X, (X > 0.3).astype(int)


def transformers():
    X, y = regression()
    for activation in ("tanh", "relu", "sigmoid", "sin", "cos"):
        yield f"swim {activation}", SWIMFeatures(8, activation=activation, random_state=0), X, y
    yield "gaussian", GaussianFeatures(7), X, y
    yield "fourier", FourierFeatures(6), X, y


@pytest.fixture(scope="module")
def models():
    """Name: fitted model and X."""
    cases = [*regressors(), *classifiers(), *transformers()]
    fitted = {name: (model.fit(X, y), X) for name, model, X, y in cases}
    X, y = classification()
    table = pd.DataFrame(X, columns=["a", "b c", "d\n", "ü"])
    fitted["frame"] = (clone(CLASSIFIERS["rfrboost"]).fit(table, y), X)
    return fitted


@pytest.fixture
def model_file(tmp_path):
    """A small file with several kinds of parts, and what it must answer."""
    X, y = classification(60, 3)
    model = RFRBoostClassifier(2, n_features=(3, 3), normalize=True, random_state=0).fit(X, y)
    model.save(tmp_path / "model.rfrboost")
    return tmp_path / "model.rfrboost", X, model.predict_proba(X)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_new_process_answers_with_the_same_bits(models, tmp_path):
    expected = {}
    for name, (model, X) in models.items():
        model.save(tmp_path / f"{name}.rfrboost")
        np.save(tmp_path / f"{name}.npy", X)
        expected[name] = fingerprint(model, X)
    assert {type(model).__name__ for model, _ in models.values()} == set(ESTIMATORS)
    command = [sys.executable, "-W", "ignore", HERE / "support" / "fingerprints.py", tmp_path]
    done = subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8")
    found = json.loads(done.stdout)
    assert found.keys() == expected.keys()
    for name in expected:
        assert found[name] == expected[name], name


def test_all_public_estimators_can_be_saved():
    public = [getattr(rfrboost, name) for name in rfrboost.__all__]
    estimators = [c for c in public if isinstance(c, type) and issubclass(c, BaseEstimator)]
    assert sorted(estimators, key=str) == sorted(ESTIMATORS.values(), key=str)


def test_single_precision_and_empty_steps_are_among_the_models(models):
    """Or the round trip would not have shown them."""
    assert models["single"][0].network_.layers[0].features.dtype == np.float32
    assert models["constant"][0].network_.layers[0].step.V.shape == (4, 0)


@pytest.mark.parametrize(
    "model",
    [
        RFRBoostRegressor(n_bags=2, n_features=16, random_state=0),
        RFRBoostClassifier(n_bags=2, n_features=16, random_state=0),
        RFRBoostRegressor(2, n_features=16, random_state=0),
        *(
            RFRBoostRegressor(loss=loss, n_bags=2, n_features=8, random_state=0)
            for loss in ("huber", "poisson", "quantile")
        ),
    ],
    ids=["automatic", "classes", "single", "huber", "poisson", "quantile"],
)
def test_two_fits_with_one_seed_write_equal_files(model, tmp_path):
    """Nothing of when or how fast a model was fitted is in its file."""
    X, y = regression()
    X = pd.DataFrame(X).add_prefix("x")
    if not isinstance(model.n_layers, int):
        X["town"] = np.where(X["x0"] > 0, "north", "south")
    if isinstance(model, RFRBoostClassifier):
        y = y > 0
    elif model.loss == "poisson":
        y = np.round(np.exp(y))
    for name in ("a", "b"):
        clone(model).fit(X, y).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("name", ["regressor gradient", "regressor huber", "classifier rfnn ints"])
def test_saving_changes_nothing_and_twice_is_the_same_file(models, tmp_path, name):
    model, X = models[name]
    before = fingerprint(model, X)
    model.save(tmp_path / "a")
    rfrboost.load(tmp_path / "a").save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert fingerprint(model, X) == before


def test_parameters_may_be_numpy_scalars(tmp_path):
    X, y = regression()
    model = RFRBoostRegressor(
        np.int64(2), n_features=(np.int32(3), 4), l2_head=np.float64(0.1), normalize=np.True_
    )
    model.fit(X, y).save(tmp_path / "model")
    loaded = rfrboost.load(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    assert type(loaded.n_layers) is int
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("kind", ["gradient", "huber", "dense", "gradient-normalize"])
def test_a_loaded_model_can_be_fitted_on(tmp_path, kind):
    X, y = regression()
    model = clone(REGRESSORS[kind]).set_params(n_layers=2, warm_start=True).fit(X, y)
    model.save(tmp_path / "model")
    loaded = rfrboost.load(tmp_path / "model")
    for m in (model, loaded):
        m.set_params(n_layers=4).fit(X, y)
    assert len(loaded.history_) == 4
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


class OwnLoss(Loss):
    def value(self, raw, y):
        return 0.5 * np.sum((raw - y) ** 2, axis=1)

    def gradient(self, raw, y):
        return raw - y


class OwnSampler:
    def n_rows(self, n_features):
        return 1

    def sample(self, Z, Y, n_features, rng):
        return DenseFeatures(rng.standard_normal((Z.shape[1] + 1, n_features)), "tanh")


#: another class of the same name as one of rfrboost's
OwnHuber = type("Huber", (Huber,), {})


class OwnRegressor(RFNNRegressor):
    pass


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (RFNNRegressor(4, loss=OwnLoss()), "the parameter loss is an object of the class OwnLoss"),
        (RFNNRegressor(4, loss=OwnHuber(2.0)), "the parameter loss is an object"),
        (RFNNRegressor(4, features=OwnSampler()), "the parameter features"),
        (RFRBoostRegressor(1, n_features=4, features=PCA(2)), "the parameter features .* PCA"),
        (RFNNRegressor(4, random_state=np.random.RandomState(0)), "the parameter random_state"),
        (OwnRegressor(4), "its class is not one of rfrboost's own"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name(tmp_path, model, named):
    X, y = regression()
    with pytest.raises(ModelFileError, match=f"^Cannot save this {type(model).__name__}: {named}"):
        model.fit(X, y).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_not_whole_is_not_saved(tmp_path):
    X, y = regression()
    with pytest.raises(NotFittedError):
        RFNNRegressor(4).save(tmp_path / "model")
    model = RFRBoostRegressor(1, n_features=4, features=PCA(2)).fit(X, y)
    with pytest.raises(ModelFileError, match="TransformerFeatures"):
        model.set_params(features="swim").save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="'l2_head' parameter"):
        RFNNRegressor(4).fit(X, y).set_params(l2_head=-1.0).save(tmp_path / "model")
    model = RFNNRegressor(4).fit(X, y)
    inputs = replace(model._fitted.inputs, n_columns=7)
    model._fitted = replace(model._fitted, inputs=inputs)
    with pytest.raises(ModelFileError, match="do not fit together"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_golden_files_of_format_1():
    """Written by version 0.1.0, and never again: later versions must read them."""
    folder = HERE / "data" / "format-1"
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    X = np.array(expected.pop("X"))
    assert sorted(expected) == sorted(path.name for path in folder.glob("*.rfrboost"))
    for name, answers in expected.items():
        model = rfrboost.load(folder / name)
        assert rfrboost.file_info(folder / name)["format"] == 1
        for method, answer in answers.items():
            found = getattr(model, method)(X)
            if found.dtype.kind == "f":
                # Which neurons are computed in single precision has changed since.
                np.testing.assert_allclose(found, answer, rtol=1e-9, atol=2e-6)
            else:
                assert found.tolist() == answer


def test_info_is_what_the_header_says(model_file):
    path, _, _ = model_file
    info = rfrboost.file_info(path)
    assert info["format"] == 1
    assert info["version"] == rfrboost.__version__
    assert info["estimator"] == "RFRBoostClassifier"
    assert info["parameters"]["n_features"] == [3, 3]
    assert info["fitted"]["classes"]["values"] == ["class 0", "class 1", "class 2"]
    assert info["arrays"]["fitted.network.heads.2.matrix"] == {"dtype": "F64", "shape": [4, 3]}
    assert info["bytes"] == path.stat().st_size


def test_info_counts_the_training_rows_that_are_held(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.sin(X[:, 0]) + X[:, 1]
    for features, held in ((("swim", "bumps"), True), (("swim", "sparse", "trees"), False)):
        model = rfrboost.RFRBoostRegressor(n_bags=2, features=features, random_state=0)
        model.fit(X, y)
        model.save(tmp_path / "m")
        maps = [layer.features.from_x for layer in model.network_.layers]
        centres = sum(len(bumps.centres) for bumps in maps if hasattr(bumps, "centres"))
        assert rfrboost.file_info(tmp_path / "m")["centres"] == centres
        assert (centres > 0) == held


def test_info_does_not_read_arrays(model_file):
    """A terabyte of them, most of which is not on the disk, would fit into no memory."""
    path, _, _ = model_file
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    end = max(entry["data_offsets"][1] for name, entry in header.items() if name[0] != "_")
    header["spare"] = {"dtype": "F64", "shape": [2**37], "data_offsets": [end, end + 2**40]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    os.truncate(path, 8 + len(text) + end + 2**40)
    info = rfrboost.file_info(path)
    assert info["arrays"]["spare"] == {"dtype": "F64", "shape": [2**37]}
    assert info["bytes"] > 2**40


def test_a_file_is_an_ordinary_safetensors_file(model_file):
    from safetensors.numpy import load_file

    path, _, _ = model_file
    head = load_file(path)["fitted.network.heads.2.matrix"]
    np.testing.assert_array_equal(head, rfrboost.load(path).network_.heads[2].matrix)


def test_without_safetensors_files_load_and_one_sentence_names_the_extra(model_file, monkeypatch):
    path, X, expected = model_file
    model = rfrboost.load(path)
    for name in [n for n in sys.modules if n.split(".")[0] == "safetensors"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    message = r"^Model files need the package safetensors: pip install 'rfrboost\[files\]'\.$"
    with pytest.raises(ImportError, match=message):
        model.save(path)
    np.testing.assert_array_equal(rfrboost.load(path).predict_proba(X), expected)
    assert rfrboost.file_info(path)["format"] == 1


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_member_takes_less_than_five_times_its_rows_in_single_precision(tmp_path, task):
    """So that a default model, of five members, takes less than 25 MB for 5,000 rows of 50 columns.

    The member holds out a fifth of the rows, as one of five does; its rest is shared by them.
    """
    X, y = make_friedman1(2500, 50, noise=1.0, random_state=0)
    if task == "regression":
        model = RFRBoostRegressor(n_bags=1, random_state=0).fit(X, y)
    else:
        model = RFRBoostClassifier(n_bags=1, random_state=0).fit(
            X, np.digitize(y, np.quantile(y, [0.2, 0.7]))
        )
    model.save(tmp_path / "model.rfrboost")
    size = (tmp_path / "model.rfrboost").stat().st_size
    rows = X.astype(np.float32).nbytes
    assert rows < size < 5 * rows


def test_a_link_stays_a_link(model_file):
    path, X, expected = model_file
    model, link = rfrboost.load(str(path)), path.parent / "link"
    link.symlink_to(path)
    path.write_bytes(b"old")
    model.save(link)
    assert link.is_symlink()
    np.testing.assert_array_equal(rfrboost.load(path).predict_proba(X), expected)


def test_a_folder_or_file_that_is_not_there(model_file):
    path, _, _ = model_file
    with pytest.raises(FileNotFoundError):
        rfrboost.load(path).save(path.parent / "missing" / "model")
    with pytest.raises(FileNotFoundError):
        rfrboost.load(path.parent / "nothing")
    assert list(path.parent.iterdir()) == [path]


SAVE_WITH_LITTLE_ROOM = """
import resource, signal, sys
import rfrboost
model = rfrboost.load(sys.argv[1])
signal.signal(signal.SIGXFSZ, getattr(signal, sys.argv[2]))
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    model.save(sys.argv[1])
except OSError as error:
    sys.exit(f"OSError {error.errno}")
"""


@pytest.mark.parametrize("death", ["SIG_IGN", "SIG_DFL"], ids=["disk full", "killed"])
def test_a_write_that_fails_leaves_the_old_file(model_file, death):
    """A limit on file sizes makes the write fail, or has the system kill the writer in it."""
    path, X, expected = model_file
    before = path.read_bytes()
    command = [sys.executable, "-c", SAVE_WITH_LITTLE_ROOM, path, death]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if death == "SIG_IGN":
        assert "OSError 27" in done.stderr
        assert list(path.parent.iterdir()) == [path]
    else:
        assert done.returncode == -signal.SIGXFSZ
    assert path.read_bytes() == before
    model = rfrboost.load(path)
    model.save(path)
    np.testing.assert_array_equal(rfrboost.load(path).predict_proba(X), expected)


SAVE_OFTEN = """
import sys
import rfrboost
model = rfrboost.load(sys.argv[1])
for _ in range(15):
    model.save(sys.argv[2])
"""


def test_writers_at_the_same_time(tmp_path):
    """A reader always finds one model or the other, whole."""
    X, y = regression()
    answers = []
    for k in range(2):
        model = RFNNRegressor(5 + 40 * k, random_state=k).fit(X, y)
        model.save(tmp_path / f"{k}")
        answers.append(model.predict(X))
    model.save(tmp_path / "shared")
    command = [sys.executable, "-c", SAVE_OFTEN]
    writers = [subprocess.Popen([*command, tmp_path / str(k), tmp_path / "shared"]) for k in (0, 1)]
    seen = set()
    while any(w.poll() is None for w in writers):
        found = rfrboost.load(tmp_path / "shared").predict(X)
        seen |= {k for k in (0, 1) if np.array_equal(found, answers[k])}
        assert any(np.array_equal(found, answer) for answer in answers)
    assert [w.returncode for w in writers] == [0, 0]
    assert seen == {0, 1}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0", "1", "shared"]


def test_what_is_no_file_is_not_replaced(tmp_path):
    model = RFNNRegressor(5).fit(np.eye(4), np.arange(4.0))
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ValueError, match="not a file that could be replaced"):
            model.save(path)
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize(
    "model",
    [
        RFRBoostRegressor(n_bags=2, random_state=3),
        RFRBoostClassifier(n_bags=2, random_state=3),
        RFRBoostRegressor(**SMALL),
        RFRBoostClassifier(**SMALL),
        RFNNRegressor(9, random_state=3),
    ],
    ids=lambda model: f"{type(model).__name__} {model.get_params().get('n_layers')}",
)
def test_two_equal_fits_write_equal_files(model, tmp_path):
    X, y = classification(60) if isinstance(model, RFRBoostClassifier) else regression(60)
    files = []
    for name in ("first", "second"):
        again = clone(model).fit(X, y)
        again.save(tmp_path / name)
        files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1]
    assert all(record["seconds"] > 0 for record in again.history_)
    loaded = rfrboost.load(tmp_path / "second")
    assert loaded.history_ == [{**record, "seconds": 0.0} for record in again.history_]
