"""The pictures of the packages and the routes say what the code does, and are up to date."""

import importlib.util
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from rfrboost import RFRBoostRegressor, RowBlocks
from rfrboost._numerics.sizes import Sizes

ROOT = Path(__file__).parent.parent.parent


def load_tool():
    """The script, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("architecture", ROOT / "tools/architecture.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["architecture"] = module
    spec.loader.exec_module(module)
    return module


architecture = load_tool()


@pytest.mark.parametrize("name", ["packages.svg", "routes.svg"])
def test_pictures_are_up_to_date(name):
    committed = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert architecture.pictures()[name] == committed, "run: python tools/architecture.py"


def called(fit) -> list[str]:
    """The functions of the library that a fit calls, by name and in order."""
    found: list[str] = []

    def record(frame, event, argument):
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("rfrboost."):
            found.append(f"{module.removeprefix('rfrboost.')}.{frame.f_code.co_qualname}")

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        fit()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


X = np.random.default_rng(0).standard_normal((300, 3))
y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


def fit_single():
    RFRBoostRegressor(n_layers=1, random_state=0).fit(X, y)


def fit_ensemble():
    RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y)


def fit_outside():
    model = RFRBoostRegressor(n_features=8, n_bags=2, random_state=0)
    model._sizes = Sizes(sampled_rows=100)
    model.fit(RowBlocks.from_arrays(X, y))


FITS = {
    "Single network": fit_single,
    "Ensemble": fit_ensemble,
    "Ensemble, rows outside memory": fit_outside,
}


@pytest.mark.parametrize("route", architecture.ROUTES)
def test_a_fit_takes_the_steps_of_its_route(route):
    calls = iter(called(FITS[route]))
    for step in architecture.ROUTES[route]:
        # Consumes calls up to this one, so that the next step has to come later.
        assert step.function in calls, step


def test_routes_are_told_apart():
    steps = {name: {s.function for s in route} for name, route in architecture.ROUTES.items()}
    others = set.union(*steps.values()) - steps["Single network"]
    assert not others & set(called(fit_single))
