"""Models in processes that share a machine, and threads that share a model.

Each part is a program of its own, with a limit that only a deadlock reaches.
"""

import json
import os
import subprocess
import sys
from multiprocessing import get_all_start_methods
from pathlib import Path

import pytest
import shared_processes
from shared_processes import N_BLAS, N_CALLERS

PLACES = [Path(shared_processes.__file__).parent, Path(__file__).parents[2] / "src"]
#: seconds; parts take a few on an idle machine, and minutes where others keep all cores busy
PATIENCE = 1800


def run(*parts: str) -> list:
    """What parts return, in a process whose BLAS uses all cores, as it does for most users."""
    limits = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    env = {name: value for name, value in os.environ.items() if name not in limits}
    env["PYTHONPATH"] = os.pathsep.join(map(str, PLACES))
    command = [sys.executable, shared_processes.__file__, *parts]
    return json.loads(subprocess.check_output(command, env=env, timeout=PATIENCE))


@pytest.fixture(scope="module")
def joblib():
    """Fits in the workers of joblib, the same fits without workers, and a grid search."""
    return run("joblib_workers", "alone", "grid_search")


def test_sixteen_threads_predict_with_one_model():
    (found,) = run("threads")
    assert found["same"]
    # The callers, and a team for one of them; each with a team would be four times as many.
    assert N_CALLERS <= found["more"] <= N_CALLERS + N_BLAS


@pytest.mark.parametrize("workers", ["joblib_workers", "dask_workers"])
def test_fits_in_workers_are_the_same_and_keep_to_their_share_of_cores(workers, joblib):
    found, alone, _ = joblib
    if workers == "dask_workers":
        pytest.importorskip("distributed")
        (found,) = run(workers)
    digests, allowed, more = zip(*found, strict=True)
    assert list(digests) == alone
    assert 2 * max(allowed) <= max(os.cpu_count(), 2)
    assert all(added <= most for added, most in zip(more, allowed, strict=True))


@pytest.mark.skipif("fork" not in get_all_start_methods(), reason="this system has no fork")
def test_forked_children_fit_and_predict():
    assert run("forks") == [{"after": True, "during": True}]


def test_a_grid_search_in_two_processes_is_the_one_in_one(joblib):
    _, _, found = joblib
    assert found["difference"] < 1e-12
    assert found["best"]
