"""Predictions are the same bits on any number of threads, and in any process."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from small_bags import ALONE, SHARED
from small_sizes import with_sizes
from threadpoolctl import threadpool_limits

from rfrboost import RFRBoostClassifier, RFRBoostRegressor, load
from rfrboost._model.network import PREDICT_ROWS
from rfrboost._numerics.threads import BLAS, libraries, side_by_side

SCRIPT = """
import sys
from pathlib import Path
import numpy as np
import rfrboost
folder = Path(sys.argv[1])
X = np.load(folder / "X.npy")
for path in folder.glob("*.rfrboost"):
    model = rfrboost.load(path)
    predict = getattr(model, "decision_function", model.predict)
    told = {"all": predict(X), "phi": model.transform(X), "few": predict(X[:300])}
    np.savez(path.with_suffix(".npz"), **told)
"""
#: rows in several batches
X, Y = make_friedman1(3 * PREDICT_ROWS + 17, n_features=30, random_state=0)
CASES = {
    f"{task}-{n_layers}": estimator(n_layers, random_state=0)
    for task, estimator in (
        ("regression", RFRBoostRegressor),
        ("classification", RFRBoostClassifier),
    )
    for n_layers in ("auto", 3)
}


def fitted(name: str) -> RFRBoostRegressor | RFRBoostClassifier:
    model, y = clone(CASES[name]), Y[:300]
    if name.endswith("auto"):
        model.set_params(n_bags=2, max_seconds=2)
    return model.fit(X[:300], np.digitize(y, [10, 18]) if name.startswith("class") else y)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models, and what another process with two BLAS threads predicts by them."""
    folder = tmp_path_factory.mktemp("threads")
    np.save(folder / "X.npy", X)
    for name in CASES:
        fitted(name).save(folder / f"{name}.rfrboost")
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", SCRIPT, str(folder)], check=True, env=env)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_model_predicts_the_same_bits_on_any_number_of_threads(folder, name):
    model = load(folder / f"{name}.rfrboost")
    predict = getattr(model, "decision_function", model.predict)
    with threadpool_limits(1, user_api="blas"):
        here = {"all": predict(X), "phi": model.transform(X), "few": predict(X[:300])}
    with np.load(folder / f"{name}.npz") as there:
        assert all(np.array_equal(here[told], there[told]) for told in here)


def test_results_come_in_order_and_errors_are_raised():
    slices = [slice(i, i + 1) for i in range(7)]
    with threadpool_limits(2, user_api="blas"):
        assert side_by_side(lambda rows: rows.start, slices) == list(range(7))
        with pytest.raises(ZeroDivisionError):
            side_by_side(lambda rows: 1 // rows.start, slices)


def test_callers_that_overlap_leave_the_number_of_threads_as_it_was():
    with threadpool_limits(2, user_api="blas"):
        before = [library.num_threads for library in libraries()]
        seen = []

        def work(rows: slice) -> None:
            with BLAS.entered():
                seen.append({library.num_threads for library in libraries()})

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, [slice(0, 1)] * 200))
        assert seen == [{1}] * 200
        assert [library.num_threads for library in libraries()] == before


@pytest.mark.parametrize("sizes", [ALONE, SHARED], ids=["alone", "shared"])
@pytest.mark.parametrize("estimator", [RFRBoostRegressor, RFRBoostClassifier])
def test_a_fit_is_the_same_on_any_number_of_threads(estimator, sizes):
    """To the bit, whether each member draws its own features or all share them."""
    X, y = make_friedman1(300, n_features=6, random_state=0)
    y = y if estimator is RFRBoostRegressor else np.digitize(y, [10, 18])
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            model = estimator(features=("swim", "bumps"), n_bags=3, random_state=0)
            with_sizes(model, sizes).fit(X, y)
        found.append(getattr(model, "decision_function", model.predict)(X[:200]))
    np.testing.assert_array_equal(*found)
