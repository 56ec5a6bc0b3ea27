"""How far a reader has to walk to follow a fit: through how many modules, and how often across.

A *switch* is a function of one module of the package that another module calls; it counts once,
however often it is called and from wherever in that module. The limits are upper ones: a change
that needs more of either should first look for calls that always come together, and for helpers
that only one other module uses.
"""

import os
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng

import rfrboost
from rfrboost import RFRBoostRegressor
from rfrboost._numerics.threads import threads

PACKAGE = Path(rfrboost.__file__).parent

#: the most modules and the most switches of each call
LIMITS = {
    "fit by default": (32, 140),
    "predict by default": (12, 25),
    "fit with n_layers=3": (18, 90),
    "predict with n_layers=3": (12, 25),
}

# A class of the library inherits from at most this many of its own, itself included.
MOST_OWN_CLASSES = 3


def walk(call: Callable[[], object], root: Path) -> tuple[set[str], set[tuple[str, str, str]]]:
    """The modules below ``root`` that a call enters, and its switches (from, to, function)."""
    prefix = f"{root}{os.sep}"
    modules: set[str] = set()
    switches: set[tuple[str, str, str]] = set()
    entered: list[str] = []

    def note(frame, event, argument):
        code = frame.f_code
        if not code.co_filename.startswith(prefix):
            return
        module = code.co_filename.removeprefix(prefix)
        if event == "call":
            if entered and entered[-1] != module:
                switches.add((entered[-1], module, code.co_name))
            entered.append(module)
            modules.add(module)
        elif event == "return" and entered:
            entered.pop()

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return modules, switches


def loaded(path: Path):
    """A module from a file."""
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_switch_is_a_function_that_another_module_calls(tmp_path):
    (tmp_path / "callee.py").write_text(
        "def inner():\n    pass\n\n\ndef one(then=None):\n    inner()\n    then and then()\n\n\n"
        "def two():\n    pass\n"
    )
    (tmp_path / "caller.py").write_text(
        "def back():\n    pass\n\n\ndef main(callee):\n    callee.one()\n    callee.one()\n"
        "    back()\n    callee.two()\n    callee.one(back)\n"
    )
    caller, callee = (loaded(tmp_path / f"{name}.py") for name in ("caller", "callee"))
    modules, switches = walk(lambda: caller.main(callee), tmp_path)
    assert modules == {"caller.py", "callee.py"}
    there = {("caller.py", "callee.py", name) for name in ("one", "two")}
    assert switches == there | {("callee.py", "caller.py", "back")}


@pytest.fixture(scope="module")
def walks():
    """The walks of all calls, on one thread: what other threads call would not be seen."""
    rng = default_rng(0)
    X = rng.standard_normal((80, 4))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(80)
    table = pd.DataFrame(X, columns=list("abcd")).assign(c=np.where(X[:, 2] > 0, "x", "y"))
    automatic = RFRBoostRegressor(random_state=0)
    single = RFRBoostRegressor(n_layers=3, n_features=32, random_state=0)
    calls = (
        lambda: automatic.fit(table, y),
        lambda: automatic.predict(table),
        lambda: single.fit(X, y),
        lambda: single.predict(X),
    )
    with threads(1):
        found = [walk(call, PACKAGE) for call in calls]
    return dict(zip(LIMITS, found, strict=True))


@pytest.mark.parametrize("call", LIMITS)
def test_the_walk_is_short(walks, call):
    modules, switches = walks[call]
    most_modules, most_switches = LIMITS[call]
    assert len(modules) <= most_modules, "\n".join(sorted(modules))
    listed = [f"{caller} -> {callee}: {name}" for caller, callee, name in sorted(switches)]
    assert len(switches) <= most_switches, "\n".join(listed)


def test_an_estimator_inherits_from_few_classes_of_the_library():
    own = [base for base in RFRBoostRegressor.__mro__ if base.__module__.startswith("rfrboost")]
    assert len(own) <= MOST_OWN_CLASSES, own
