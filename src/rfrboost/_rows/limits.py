"""The largest inputs that can be fitted: beyond them squared distances between rows overflow."""

import numpy as np

from rfrboost._numerics.sizes import LARGEST_INPUT
from rfrboost._typing import Array

# Weights below this share of the largest one count as zero.
NEGLIGIBLE_WEIGHT = 1e-60


def check_inputs(X: Array, names: list[str] | None = None) -> None:
    """Refuse columns so large that their squares cannot be summed."""
    check_extent(np.maximum(X.max(axis=0), -X.min(axis=0)).astype(float), names)


def check_extent(largest: Array, names: list[str] | None) -> None:
    """The same, given the largest value of every column."""
    if (largest > LARGEST_INPUT).any():
        j = int(np.argmax(largest))
        raise ValueError(
            f"Column {j if names is None else repr(names[j])} of X holds values as large as "
            f"{largest[j]:.3g}; beyond {LARGEST_INPUT:g} distances between rows overflow. "
            "Rescale it, for example with sklearn.preprocessing.StandardScaler."
        )
