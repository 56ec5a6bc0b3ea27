"""Predictions are the same bits on any number of threads, and in any process."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from small_bags import ALONE, SHARED
from small_sizes import with_sizes
from threadpoolctl import threadpool_limits

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost._model.network import PREDICT_ROWS
from rfrboost._numerics.threads import BLAS, libraries, side_by_side

SCRIPT = """
import sys
import numpy as np
import rfrboost
model = rfrboost.load(sys.argv[1])
predict = getattr(model, "decision_function", model.predict)
X = np.load(sys.argv[2])
np.savez(sys.argv[3], all=predict(X), phi=model.transform(X), few=predict(X[:300]))
"""


def predicted(folder, threads: int) -> dict[str, np.ndarray]:
    """What another process with this number of BLAS threads predicts by the saved model."""
    out = folder / f"{threads}.npz"
    paths = [folder / "model.rfrboost", folder / "X.npy", out]
    env = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    subprocess.run([sys.executable, "-c", SCRIPT, *map(str, paths)], check=True, env=env)
    with np.load(out) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("n_layers", ["auto", 3])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_loaded_model_predicts_the_same_bits_on_any_number_of_threads(tmp_path, task, n_layers):
    X, y = make_friedman1(3 * PREDICT_ROWS + 17, n_features=30, random_state=0)
    if task == "regression":
        model = RFRBoostRegressor(n_layers, random_state=0)
    else:
        model = RFRBoostClassifier(n_layers, random_state=0)
        y = np.digitize(y, [10, 18])
    if n_layers == "auto":
        model.set_params(n_bags=2, max_seconds=2)
    model.fit(X[:300], y[:300])
    model.save(tmp_path / "model.rfrboost")
    np.save(tmp_path / "X.npy", X)
    predict = getattr(model, "decision_function", model.predict)
    with threadpool_limits(1, user_api="blas"):
        here = {"all": predict(X), "phi": model.transform(X), "few": predict(X[:300])}
    there = predicted(tmp_path, threads=2)
    assert all(np.array_equal(here[name], there[name]) for name in here)


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
