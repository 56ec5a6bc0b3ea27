"""Progress of a fit: it fills once, guesses what is left, and is shown where people look."""

import io
import re
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.random import default_rng

from rfrboost import RFRBoostRegressor
from rfrboost._estimators.options import progress as module
from rfrboost._estimators.options.progress import Progress
from rfrboost._model.history import LayerRecord


def rows(n=120):
    X = default_rng(0).uniform(-2, 2, (n, 3))
    return X, np.sin(2 * X[:, 0]) * X[:, 1]


def layer(number):
    return LayerRecord(number, 1.0 / number, 1.0, 1.0, 0.1)


class Screen(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self):
        return True


def shares_in(text):
    return [int(share) for share in re.findall(r"(\d+)%", text)]


def test_a_fit_fills_its_bar_once(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Screen())
    model = RFRBoostRegressor(n_bags=2, n_features=16, verbose=1, random_state=0)
    model.fit(*rows())
    lines = sys.stderr.getvalue().split("\r")[1:]
    shares = [shares_in(line)[0] for line in lines]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == 100
    assert len(set(shares)) > 10
    phases = [re.search(r"%  ([a-z ]+?)[ \d]*,", line)[1] for line in lines]
    order = list(dict.fromkeys(phases))
    assert order == [
        "reading the table",
        "linear members",
        "trees",
        "random features",
        "kernel members",
        "weights",
        "fitted",
    ]
    assert lines[-1].endswith("\n")


def test_a_fit_with_fewer_families_fills_it_too(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Screen())
    model = RFRBoostRegressor(features=("swim",), loss="huber", n_bags=2, verbose=1)
    model.set_params(n_features=16, random_state=0).fit(*rows())
    text = sys.stderr.getvalue()
    assert "kernel" not in text
    assert "trees" not in text
    assert shares_in(text)[-1] == 100


def test_the_seconds_left_are_those_at_the_speed_so_far(monkeypatch):
    now = SimpleNamespace(time=100.0)
    monkeypatch.setattr(module, "perf_counter", lambda: now.time)
    progress = Progress("fit", deadline=np.inf)
    progress.plan({module.READING: 1.0, "b": 3.0})
    assert progress.seconds_left is None
    now.time = 110.0
    progress.begin("b")
    assert progress.share == 0.25
    assert progress.seconds_left == pytest.approx(30.0)
    progress.layer(layer(1), 3)
    assert progress.share == pytest.approx(0.5)
    assert "b, layer 1/3, loss 1, 10.0 s, about 10.0 s left" in progress.line()
    limited = Progress("fit", deadline=115.0)
    limited.began = 100.0
    limited.plan({module.READING: 1.0, "b": 3.0})
    limited.begin("b")
    assert limited.seconds_left == pytest.approx(5.0)


def test_layers_that_end_early_never_fill_a_phase_nor_go_back():
    progress = Progress("fit", deadline=np.inf)
    progress.plan({module.READING: 0.0, "a": 1.0, "b": 1.0})
    progress.begin("a")
    shares = []
    for number in (1, 5, 40, 2):
        progress.layer(layer(number), None)
        shares.append(progress.share)
    assert shares == sorted(shares)
    assert shares[-1] < 0.5


def test_off_a_terminal_there_is_a_line_every_while(monkeypatch, capsys):
    monkeypatch.setattr(module, "LINE_SECONDS", 0.02)
    said = ""
    with Progress("fit", deadline=np.inf) as progress:
        progress.plan({module.READING: 1.0, "b": 1.0})
        progress.begin("b")
        while " 50%  b" not in said:  # for as long as a busy machine needs
            time.sleep(0.01)
            said += capsys.readouterr().err
    assert "100%  fitted" in capsys.readouterr().err
    time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_a_fit_that_fails_leaves_no_thread_and_does_not_say_fitted(capsys):
    X, y = rows()

    def fail(record):
        raise RuntimeError

    model = RFRBoostRegressor(2, n_features=16, verbose=1, callbacks=[fail])
    with pytest.raises(RuntimeError):
        model.fit(X, y)
    said = capsys.readouterr().err
    assert "layer 1/2" in said
    assert "fitted" not in said


def test_in_a_notebook_it_is_an_element_that_changes(monkeypatch):
    shown = []

    def display(data, raw, display_id):
        shown.append(data)
        return SimpleNamespace(update=lambda data, raw: shown.append(data))

    shell = SimpleNamespace(kernel=object())
    ipython = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    RFRBoostRegressor(3, n_features=16, verbose=1, random_state=0).fit(*rows())
    values = [float(re.search(r'value="([\d.]+)"', data["text/html"])[1]) for data in shown]
    assert values == sorted(values)
    assert values[-1] == 1.0
    assert len(values) == 5  # at the start, after each of three layers, at the end
    assert shown[-1]["text/plain"].startswith("RFRBoostRegressor [█")
