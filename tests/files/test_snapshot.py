"""``snapshot``: a fit that was killed goes on where it was, to the same bits."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from numpy.random import default_rng
from sklearn.base import clone
from sklearn.preprocessing import PolynomialFeatures

import rfrboost
from rfrboost import ModelFileError, RFRBoostClassifier, RFRBoostRegressor
from rfrboost._files import snapshot as module

pytest.importorskip("safetensors")

#: a fit that kills itself, as ``kill -9`` does, at the first layer of a family
KILLED = """
import os, signal, sys
import test_snapshot

families = 0

def kill(record):
    global families
    families += record["layer"] == 1
    if families == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

make, X, y = test_snapshot.TABLES[sys.argv[3]]()
make.set_params(snapshot=sys.argv[1], callbacks=[kill]).fit(X, y)
"""


def regression(n=150):
    rng = default_rng(0)
    X = rng.uniform(-2, 2, (n, 3))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(n)
    return RFRBoostRegressor(n_bags=2, n_features=16, random_state=0), X, y


def classification():
    _, X, y = regression(160)
    labels = np.array(["low", "mid", "high"])[np.digitize(y, [-0.5, 0.5])]
    return RFRBoostClassifier(n_bags=3, n_features=16, random_state=1), X, labels


TABLES = {"numbers": regression, "classes": classification}


def killed(path, families, table):
    """Begin a fit in another process, which dies in the given family."""
    here = os.path.dirname(__file__)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([here, *sys.path])}
    words = [sys.executable, "-c", KILLED, str(path), str(families), table]
    ran = subprocess.run(words, env=environment, check=False, capture_output=True)
    assert ran.returncode == -signal.SIGKILL, ran.stderr.decode()


def outputs(model, X):
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X), model.oof_prediction_, model.feature_importances_
    return model.predict(X), model.oof_prediction_, model.feature_importances_


class Families:
    """Counts the families that are fitted, and stops with an error in one of them."""

    def __init__(self, fails_in=None):
        self.count = 0
        self.fails_in = fails_in

    def __call__(self, record):
        self.count += record["layer"] == 1
        if self.count == self.fails_in:
            raise InterruptedError


def interrupted(model, X, y, path, family):
    with pytest.raises(InterruptedError):
        clone(model).set_params(snapshot=path, callbacks=[Families(family)]).fit(X, y)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
@pytest.mark.parametrize(("table", "family"), [("numbers", 3), ("classes", 2)])
def test_a_fit_that_was_killed_goes_on_to_the_same_bits(tmp_path, table, family):
    path = tmp_path / "fit.snapshot"
    killed(path, family, table)
    assert path.exists()
    model, X, y = TABLES[table]()
    whole = clone(model).fit(X, y)
    seen = Families()
    model.set_params(snapshot=path, callbacks=[seen]).fit(X, y)
    assert seen.count == 3 - (family - 1)
    for went_on, at_once in zip(outputs(model, X), outputs(whole, X), strict=True):
        np.testing.assert_array_equal(went_on, at_once)
    assert len(model.history_) == len(whole.history_)
    assert os.listdir(tmp_path) == []


def test_kernel_members_are_kept_too(tmp_path, monkeypatch):
    """A fit that ends after its last family fits none of them again."""
    model, X, y = regression()
    path = tmp_path / "fit.snapshot"
    whole = clone(model).fit(X, y)
    monkeypatch.setattr(module.SnapshotFile, "remove", lambda self: None)
    first = clone(model).set_params(snapshot=path).fit(X, y)
    seen = Families()
    monkeypatch.setattr("rfrboost._auto.fit.fit_kernel", lambda *arguments: 1 / 0)
    again = clone(model).set_params(snapshot=path, callbacks=[seen]).fit(X, y)
    assert seen.count == 0
    for fitted in (first, again):
        np.testing.assert_array_equal(fitted.predict(X), whole.predict(X))
    # Layers under both penalties are still one layer on the features that they share.
    assert len(again.network_.layers) == len(whole.network_.layers)


def test_a_family_without_members_is_remembered(tmp_path):
    """Trees are of no use here, and are not tried again."""
    rng = default_rng(0)
    X, y = rng.standard_normal((80, 2)), rng.standard_normal(80)
    model = RFRBoostRegressor(n_bags=2, n_features=16, random_state=0)
    interrupted(model, X, y, tmp_path / "s", 2)
    whole = clone(model).fit(X, y)
    seen = Families()
    model.set_params(snapshot=tmp_path / "s", callbacks=[seen]).fit(X, y)
    assert seen.count == 2
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def other_rows(model, X, y):
    return model, X + 1e-9, y


def other_targets(model, X, y):
    return model, X, -y


def other_seed(model, X, y):
    return model.set_params(random_state=7), X, y


def other_penalty(model, X, y):
    return model.set_params(l2_step=1e-2), X, y


def other_score(model, X, y):
    return model.set_params(scoring="r2"), X, y


@pytest.mark.parametrize(
    "changed", [other_rows, other_targets, other_seed, other_penalty, other_score]
)
def test_another_fit_refuses_it_and_leaves_it_alone(tmp_path, changed):
    model, X, y = regression()
    path = tmp_path / "s"
    interrupted(model, X, y, path, 2)
    before = path.read_bytes()
    other, X_other, y_other = changed(clone(model).set_params(snapshot=path), X, y)
    with pytest.raises(ModelFileError, match="snapshot of another fit"):
        other.fit(X_other, y_other)
    assert path.read_bytes() == before


def test_another_version_or_a_damaged_file_is_refused(tmp_path, monkeypatch):
    model, X, y = regression()
    path = tmp_path / "s"
    interrupted(model, X, y, path, 2)
    model.set_params(snapshot=path)
    with monkeypatch.context() as patch:
        patch.setattr(module, "__version__", "99.0")
        with pytest.raises(ModelFileError, match="another version"):
            model.fit(X, y)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(ModelFileError, match="remove it, or name another file"):
        model.fit(X, y)
    path.write_bytes(whole)
    with pytest.raises(ModelFileError, match="unknown estimator"):
        rfrboost.load(path)
    clone(model).set_params(snapshot=None).fit(X, y).save(path)
    with pytest.raises(ModelFileError, match="is a model, not a snapshot"):
        model.fit(X, y)


def test_what_changes_no_bit_may_change(tmp_path):
    model, X, y = regression()
    path = tmp_path / "s"
    interrupted(model, X, y, path, 3)
    seen = Families()
    model.set_params(snapshot=str(path), n_jobs=2, callbacks=[seen]).fit(X, y)
    assert seen.count == 1
    model.save(tmp_path / "m")
    assert rfrboost.load(tmp_path / "m").snapshot is None


def test_where_it_has_no_effect_it_is_refused(tmp_path):
    model, X, y = regression()
    with pytest.raises(ValueError, match="whole number as random_state"):
        model.set_params(snapshot=tmp_path / "s", random_state=None).fit(X, y)
    with pytest.raises(ValueError, match="the library's own features only"):
        model.set_params(random_state=0, features=PolynomialFeatures()).fit(X, y)
    model.set_params(features="auto")
    with pytest.raises(ValueError, match="has no effect in a single network"):
        model.set_params(random_state=0, n_layers=2, n_bags=5).fit(X, y)
