"""Tables from OpenML's client, for whoever has no data folder.

The client keeps what it downloads in a cache of its own; what we make of it is kept beside,
in the layout of a data folder, so that everything after the download is the same.
"""

import os
from pathlib import Path

import pandas as pd

from experiments.errors import UsageError
from experiments.libraries import require


def openml_folder() -> Path:
    """Where fetched tables are kept."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "rfrboost" / "tables"


def fetch_table(id: int, label: str) -> pd.DataFrame:
    """A table as OpenML has it: nominal columns as categories, its target last, as ``label``."""
    require("openml", "experiments", "Fetching a table, where there is no data folder,")
    import openml

    try:
        dataset = openml.datasets.get_dataset(id, download_data=True)
        inputs, target, nominal, _ = dataset.get_data(target=dataset.default_target_attribute)
    except Exception as error:  # of the network, the server or the file: the client has many
        raise UsageError(
            f"OpenML's table {id} could not be fetched ({type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else 'no message'}); pass --data DIR to "
            "use a folder of tables instead."
        ) from error
    levels = {name: "category" for name, is_level in zip(inputs, nominal, strict=True) if is_level}
    return inputs.astype(levels).assign(**{label: target})
