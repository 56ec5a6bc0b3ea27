"""Fixtures of the experiments' tests: a small data folder, and the real one where it exists."""

import numpy as np
import pandas as pd
import pytest
from experiment_runs import ENERGY, published_frame

from experiments.data.published import FILE_NAME, read_published
from experiments.data.tables import find_data_folder, known_table
from experiments.requests import UsageError


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
