"""``callbacks``: called after every layer, may end the fit; and the ready ones."""

import pickle
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.random import default_rng
from sklearn.base import clone

import rfrboost
from rfrboost import RFRBoostClassifier, RFRBoostRegressor, RowBlocks
from rfrboost._numerics.sizes import Sizes
from rfrboost.callbacks import END_FAMILY, EarlyStopping, LiveCurve, LogRecords

RECORD = {"layer", "loss", "step_length", "gradient_norm", "seconds"}


def wavy(n=160, seed=0):
    rng = default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(n)


def families(records):
    """How many layers each family had, by the records that came."""
    starts = [k for k, record in enumerate(records) if record["layer"] == 1]
    return [b - a for a, b in zip(starts, [*starts[1:], len(records)], strict=True)]


class Remember:
    """Keeps the records and the threads they came in; returns ``answer`` after some layers."""

    def __init__(self, answer=None, after=0):
        self.answer = answer
        self.after = after
        self.records = []
        self.threads = set()

    def __call__(self, record):
        self.records.append(record)
        self.threads.add(threading.current_thread())
        return self.answer if len(self.records) > self.after else None


def single(callbacks, **more):
    return RFRBoostRegressor(5, n_features=16, random_state=0, callbacks=callbacks, **more)


def ensemble(callbacks, **more):
    few = {"n_bags": 2, "n_features": 16, "l2_step": 1e-3, "n_layers": "auto"}
    return RFRBoostRegressor(**few, random_state=0, callbacks=callbacks, **more)


def test_a_single_network_tells_of_its_layers():
    seen = Remember()
    model = single([seen]).fit(*wavy())
    assert seen.records == model.history_
    assert set(seen.records[0]) == RECORD


def test_true_ends_a_single_network_with_the_layers_so_far():
    X, y = wavy()
    model = single([Remember(True, after=1)]).fit(X, y)
    short = single(None).set_params(n_layers=2).fit(X, y)
    assert len(model.network_.layers) == 2
    np.testing.assert_array_equal(model.predict(X), short.predict(X))


def test_an_ensemble_tells_of_every_family_in_the_thread_that_called_fit():
    X, y = wavy()
    seen = Remember()
    model = ensemble([seen], n_jobs=2).fit(X, y)
    assert len(families(seen.records)) == 3
    assert seen.threads == {threading.current_thread()}
    # With one penalty a round is a layer; those after the best are not kept.
    assert all(record in seen.records for record in model.history_)


def test_true_ends_an_ensemble_and_family_ends_a_family():
    X, y = wavy()
    ended, by_family = Remember(True, after=1), Remember(END_FAMILY)
    model = ensemble([ended]).fit(X, y)
    assert families(ended.records) == [2]
    assert np.isfinite(model.predict(X)).all()
    ensemble([by_family]).fit(X, y)
    assert families(by_family.records) == [1, 1, 1]


def test_a_fit_that_is_told_to_go_on_is_the_same_to_the_bit():
    X, y = wavy()
    plain, watched = ensemble(None).fit(X, y), ensemble([Remember("go on")]).fit(X, y)
    np.testing.assert_array_equal(plain.predict(X), watched.predict(X))


def test_fits_of_row_blocks_ask_too():
    X, y = wavy()
    for make, layers in ((single, 2), (ensemble, 1)):
        seen = Remember(True, after=layers - 1)
        make([seen]).fit(RowBlocks([(X[:90], y[:90]), (X[90:], y[90:])]))
        assert len(seen.records) == layers


def test_a_fit_of_row_blocks_asks_too():
    X, y = wavy(600)
    seen = Remember(True, after=1)
    model = ensemble([seen])
    model._sizes = Sizes(sampled_rows=100)
    model.fit(RowBlocks([(X, y)]))
    assert families(seen.records) == [2]
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("make", [single, ensemble])
def test_a_callback_that_raises_leaves_the_estimator_as_it_was(make):
    X, y = wavy()

    def fail(record):
        raise RuntimeError("no disk left")

    model = make(None).fit(X, y)
    before = model.predict(X)
    with pytest.raises(RuntimeError, match="no disk left"):
        model.set_params(callbacks=[fail]).fit(-X, y)
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(RuntimeError, match="no disk left"):
        make([fail]).fit(X, y)


@pytest.mark.parametrize("callbacks", [[1], [print, None]])
def test_what_cannot_be_called_is_refused(callbacks):
    with pytest.raises(TypeError, match="callbacks must be a list of functions"):
        single(callbacks).fit(*wavy())


def test_cloned_pickled_and_saved_with_callbacks(tmp_path):
    X, y = wavy()
    curve = LiveCurve()
    curve.figure_ = lambda: None  # as little to be pickled as a figure with a window
    model = single([EarlyStopping(3), LogRecords(print), curve, print])
    for other in (clone(model), pickle.loads(pickle.dumps(model))):
        assert other.get_params()["callbacks"][0].patience == 3
        assert other.callbacks[2].figure_ is None
    pytest.importorskip("safetensors")
    model.set_params(callbacks=[print]).fit(X, y).save(tmp_path / "m")
    loaded = rfrboost.load(tmp_path / "m")
    assert loaded.callbacks is None
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def told(stopping, losses):
    """After how many layers of one family it said so, or None."""
    for layer, loss in enumerate(losses, start=1):
        if stopping({"layer": layer, "loss": loss}) == END_FAMILY:
            return layer
    return None


def test_early_stopping_knows_a_plateau():
    stopping = EarlyStopping(patience=2, min_gain=0.1)
    assert told(stopping, [1.0, 0.8, 0.6, 0.4]) is None
    assert told(stopping, [1.0, 0.95, 0.9, 0.5]) == 3
    assert told(stopping, [1.0, 0.95, 0.8, 0.79, 0.78]) == 5
    assert told(EarlyStopping(1, 0.1), [-1.0, -1.2, -1.25]) == 3
    for wrong in ({"patience": 0}, {"min_gain": -0.1}, {"min_gain": 1.0}):
        with pytest.raises(ValueError, match="patience must be"):
            EarlyStopping(**wrong)


def test_early_stopping_shortens_each_family():
    X, y = wavy()
    seen, fewer = Remember(), Remember()
    ensemble([seen]).fit(X, y)
    ensemble([fewer, EarlyStopping(1, 0.2)]).fit(X, y)
    lengths = zip(families(seen.records), families(fewer.records), strict=True)
    assert all(short <= long for long, short in lengths)
    assert len(fewer.records) < len(seen.records)


def test_records_are_logged_with_rising_steps():
    calls = []
    X, y = wavy()
    labels = np.where(y > 0, "up", "down")
    log = LogRecords(lambda name, value, step: calls.append((name, value, step)))
    model = RFRBoostClassifier(3, n_features=16, random_state=0, callbacks=[log]).fit(X, labels)
    losses = [(value, step) for name, value, step in calls if name == "loss"]
    assert losses == [(r["loss"], k) for k, r in enumerate(model.history_, start=1)]
    assert {name for name, _, _ in calls} == {"loss", "gradient_norm"}


def test_a_live_curve_has_a_line_for_each_family(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    curve, seen = LiveCurve(), Remember()
    ensemble([curve, seen]).fit(*wavy())
    curve.draw()
    assert [len(losses) for losses in curve.curves] == families(seen.records)
    lines = curve.figure_.axes[0].get_lines()
    assert [list(line.get_ydata()) for line in lines] == curve.curves


def test_a_live_curve_is_updated_below_a_cell(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    # Before there is a stand-in for IPython, which pyplot looks for.
    pytest.importorskip("matplotlib.pyplot")
    shown, updates = [], []

    def display(figure, display_id):
        shown.append(figure)
        return SimpleNamespace(update=updates.append)

    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    curve = LiveCurve()
    curve({"layer": 1, "loss": 2.0})
    curve.draw()
    assert shown == [curve.figure_]
    assert updates == [curve.figure_]
