"""The runs that the paper published: which files hold them, and how they are read.

``openml_folds.parquet`` has one row for each dataset, model and fold: test score (RMSE or
accuracy, not negated), seconds of the fit, and the chosen hyper-parameters as JSON. The other
experiments have separate files, which their reports read.
"""

import os
from pathlib import Path

import pandas as pd

from experiments.data.tables import DATA_VARIABLE, REPOSITORY
from experiments.requests import UsageError

FILE_NAME = "openml_folds.parquet"
COLUMNS = ["task", "dataset", "model", "fold", "test_score", "fit_seconds", "hyperparameters"]


def read_published(path: Path | None, data_folder: Path) -> pd.DataFrame:
    """The published runs on OpenML tables: from ``path``, or from ``paper/`` beside the data."""
    path = path or data_folder.resolve().parent / "paper" / FILE_NAME
    if not path.is_file():
        raise UsageError(f"No published runs at {path}: pass --published-runs FILE.")
    try:
        return pd.read_parquet(path, columns=COLUMNS)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} does not hold the published runs ({error}).") from error


def paper_file(argument: Path | None, name: str, data: Path | None = None) -> Path | None:
    """A file of published runs: ``argument``, else ``paper/<name>`` beside the data folder.

    None when no file was named and none exists: the report then shows our results alone.
    """
    if argument is not None:
        if not argument.is_file():
            raise UsageError(f"No published runs at {argument}.")
        return argument
    named = data or os.environ.get(DATA_VARIABLE)
    folder = Path(named).resolve().parent if named else REPOSITORY.parent / "shared"
    path = folder / "paper" / name
    return path if path.is_file() else None
