"""Fits and predictions that share a process or a machine, as a program that a test can end.

    python shared_processes.py NAME ...

runs the functions of these names and prints a list of what they return as JSON.
"""

import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import make_friedman1
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info, threadpool_limits

from rfrboost import RFRBoostRegressor

X, Y = make_friedman1(1_000, n_features=6, random_state=0)
N_TRAIN = 80
SEEDS = [0, 1]
N_CALLERS = 16
# Of BLAS, in one process; more than most machines that run the tests have cores.
N_BLAS = 4


def fitted(seed: int) -> RFRBoostRegressor:
    """A small automatic fit with every kind of member."""
    return RFRBoostRegressor(n_bags=2, random_state=seed).fit(X[:N_TRAIN], Y[:N_TRAIN])


def digest(values: np.ndarray) -> str:
    """Equal for equal bits."""
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def fitted_digest(seed: int) -> str:
    return digest(fitted(seed).predict(X))


def n_threads() -> int:
    """Threads of this process, those of BLAS included where the system lists them."""
    listed = Path("/proc/self/task")
    return len(os.listdir(listed)) if listed.exists() else threading.active_count()


class MostThreads:
    """How many threads ``work`` adds to the process at most, by looking every millisecond."""

    def __init__(self) -> None:
        self.more = 0

    def during(self, work: Callable[[], object]) -> object:
        ended = threading.Event()
        before = n_threads() + 1  # the one that looks

        def look() -> None:
            while not ended.wait(0.001):
                self.more = max(self.more, n_threads() - before)

        looking = threading.Thread(target=look)
        looking.start()
        try:
            return work()
        finally:
            ended.set()
            looking.join()


def measured_fit(seed: int) -> tuple[str, int, int]:
    """A fit's digest, the threads that it may use, and how many it added to the process."""
    allowed = max(i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas")
    most = MostThreads()
    found = most.during(lambda: fitted_digest(seed))
    return found, allowed, most.more


def alone() -> list[str]:
    """What the fits give one after the other, without anybody beside them."""
    return [fitted_digest(seed) for seed in SEEDS]


def threads() -> dict[str, object]:
    """Many threads predict with one model."""
    with threadpool_limits(N_BLAS, user_api="blas"):
        model = fitted(0)
        right = digest(model.predict(X))
        most = MostThreads()

        together = threading.Barrier(N_CALLERS)

        def predict(_: int) -> str:
            together.wait()
            return digest(model.predict(X))

        def predict_all() -> set[str]:
            with ThreadPoolExecutor(N_CALLERS) as pool:
                return set(pool.map(predict, range(2 * N_CALLERS)))

        found = most.during(predict_all)
    return {"same": found == {right}, "more": most.more}


def joblib_workers() -> list[tuple[str, int, int]]:
    return Parallel(n_jobs=2)(delayed(measured_fit)(seed) for seed in SEEDS)


def dask_workers() -> list[tuple[str, int, int]]:
    from dask_workers import two_workers

    with two_workers() as client:
        return client.gather(client.map(measured_fit, SEEDS))


def forks() -> dict[str, object]:
    """Children that are forked after a fit, and while another thread fits."""
    context = get_context("fork")
    with threadpool_limits(N_BLAS, user_api="blas"):
        right = [fitted_digest(seed) for seed in SEEDS]
        with context.Pool(2) as pool:
            after = pool.map(fitted_digest, SEEDS)
        during = []
        with ThreadPoolExecutor(1) as beside:
            running = beside.submit(fitted_digest, SEEDS[0])
            with context.Pool(2) as pool:
                during.append(pool.map(fitted_digest, SEEDS))
            during.append([running.result(), *right[1:]])
    return {"after": after == right, "during": all(found == right for found in during)}


def grid_search() -> dict[str, object]:
    """The same search with one process and with two."""
    grid = {"n_layers": [1, 2]}
    searches = [
        GridSearchCV(
            RFRBoostRegressor(n_features=32, random_state=0), grid, cv=2, n_jobs=n_jobs
        ).fit(X[:N_TRAIN], Y[:N_TRAIN])
        for n_jobs in (1, 2)
    ]
    one, two = (search.cv_results_["mean_test_score"] for search in searches)
    return {
        # BLAS with one thread and with several may round differently.
        "difference": float(np.abs(one - two).max()),
        "best": searches[0].best_params_ == searches[1].best_params_,
    }


if __name__ == "__main__":
    # Workers find the functions in this module under its own name.
    import shared_processes

    print(json.dumps([getattr(shared_processes, name)() for name in sys.argv[1:]]))
