"""Fixtures of the experiments' tests: data folders, and jobs without processes of their own."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from experiment_runs import ENERGY, published_frame

from experiments.data.published import FILE_NAME, read_published
from experiments.data.tables import find_data_folder, known_table
from experiments.requests import UsageError
from experiments.runs import pool


@pytest.fixture
def worker_processes():
    """Asked for by tests of the worker processes themselves, which take seconds to start."""


@pytest.fixture(autouse=True)
def jobs_in_this_process(request, monkeypatch):
    """A thread runs the jobs of a command, unless a test is about worker processes."""
    if "worker_processes" not in request.fixturenames:
        monkeypatch.setattr(pool, "_workers", lambda n, threads: ThreadPoolExecutor(1))


@pytest.fixture
def made_up(tmp_path):
    """A data folder with one table shaped as energy_efficiency, and published ridge runs."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(768, 8)), columns=[f"x{j}" for j in range(8)])
    frame["target"] = frame.sum(axis=1) + rng.normal(size=768)
    path = known_table(ENERGY).path(tmp_path / "data")
    path.parent.mkdir(parents=True)
    frame.to_parquet(path)
    (tmp_path / "paper").mkdir()
    runs = published_frame(
        "regression", ENERGY, "Ridge", [0.3, 0.31, 0.32, 0.33, 0.34], {"l2_reg": 1e-3}
    )
    runs.to_parquet(tmp_path / "paper" / FILE_NAME)
    return tmp_path


@pytest.fixture(scope="session")
def real():
    """The real data folder and the published runs."""
    try:
        folder = find_data_folder(None)
        return folder, read_published(None, folder)
    except UsageError as error:
        pytest.skip(str(error))
