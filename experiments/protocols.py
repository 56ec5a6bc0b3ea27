"""From a table to the five folds a model is fitted and scored on.

A protocol is a function of a table and its task that returns the folds, ready to fit.
``paper`` repeats the published preparation, including its small leak: holes, scales and
clipping are decided on all rows, before the split. Use it to compare with the published
figures and for nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from experiments.datasets import LABEL

N_FOLDS = 5
SEED = 42
ROW_LIMIT = 5000
CLIP = 3.0
# Added to a standard deviation, as published, so that a constant column becomes zeros.
STD_OFFSET = 1e-5


@dataclass(frozen=True)
class Fold:
    """One split: what a model is fitted on and what it is scored on."""

    X_train: NDArray
    y_train: NDArray
    X_test: NDArray
    y_test: NDArray


Protocol = Callable[[pd.DataFrame, str], list[Fold]]


def fill_holes(inputs: pd.DataFrame) -> pd.DataFrame:
    """Missing numbers become their column's median, missing levels its most frequent one.

    A numeric column without a single value (``sick`` has one) becomes zeros: any constant
    standardises to zero, and the column still counts in the width, as it did in the paper.
    """
    nominal = inputs.select_dtypes("category")
    numeric = inputs[inputs.columns.difference(nominal.columns, sort=False)]
    fillers: dict[str, object] = numeric.median().fillna(0.0).to_dict()
    fillers |= {name: column.mode().iloc[0] for name, column in nominal.items() if column.hasnans}
    return inputs.fillna(fillers)


def one_hot(inputs: pd.DataFrame) -> NDArray[np.float32]:
    """Nominal columns as indicators, one for each declared level, also of unused ones.

    The rounding to float32 comes here, before standardising: on columns that are large
    against their spread it moves the standardised values, and with them the scores.
    """
    return pd.get_dummies(inputs).to_numpy(dtype=np.float32)


def kept_rows(n_rows: int) -> NDArray[np.intp]:
    """The rows of the experiment in their order: a fixed shuffle, cut at ``ROW_LIMIT``."""
    return np.random.RandomState(SEED).permutation(n_rows)[:ROW_LIMIT]


def standardise(values: NDArray) -> NDArray:
    """Zero mean and unit population standard deviation, column by column."""
    return (values - values.mean(axis=0)) / (values.std(axis=0) + STD_OFFSET)


def clip(values: NDArray) -> NDArray:
    """Standardised values, cut to three standard deviations."""
    return np.clip(values, -CLIP, CLIP)


def label_codes(labels: pd.Series) -> NDArray[np.intp]:
    """Labels as 0, 1, ... in the sorted order of their names."""
    return np.unique(labels.astype(str).to_numpy(dtype=object), return_inverse=True)[1]


def split(X: NDArray, y: NDArray) -> list[Fold]:
    """The five published folds."""
    folds = KFold(N_FOLDS, shuffle=True, random_state=SEED).split(X)
    return [Fold(X[train], y[train], X[test], y[test]) for train, test in folds]


def paper(frame: pd.DataFrame, task: str) -> list[Fold]:
    """The published preparation: X is float32; y is standardised (regression) or codes."""
    rows = kept_rows(len(frame))
    X = one_hot(fill_holes(frame.drop(columns=LABEL)))[rows]
    if task == "regression":
        y = clip(standardise(frame[LABEL].to_numpy(dtype=np.float64)[rows]))
    else:
        y = label_codes(frame[LABEL])[rows]
    return split(clip(standardise(X)), y)


PROTOCOLS: dict[str, Protocol] = {"paper": paper}
