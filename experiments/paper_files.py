"""The published runs of the experiments beside the OpenML tables."""

import os
from pathlib import Path

from experiments.datasets import DATA_VARIABLE, REPOSITORY
from experiments.errors import UsageError


def paper_file(argument: Path | None, name: str, data: Path | None = None) -> Path | None:
    """A file of published runs: the argument, else ``paper/<name>`` beside the data folder.

    None when no file was named and none is there: our results can do without.
    """
    if argument is not None:
        if not argument.is_file():
            raise UsageError(f"No published runs at {argument}.")
        return argument
    named = data or os.environ.get(DATA_VARIABLE)
    folder = Path(named).resolve().parent if named else REPOSITORY.parent / "shared"
    path = folder / "paper" / name
    return path if path.is_file() else None
