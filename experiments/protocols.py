"""From a table to the folds a model is fitted and scored on.

A protocol is a function of a table and its task that returns its rows, ready to be cut into
folds. ``paper`` repeats the published preparation, including its small leak: holes, scales and
clipping are decided on all rows, before the split. Use it to compare with the published
figures and for nothing else. ``strict`` learns everything from the training part of each fold,
inner ones too, and clips nothing; both cut the same rows in the same places.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.datasets import LABEL, known_table, load_table

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

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


@dataclass(frozen=True)
class Rows:
    """The rows of one experiment: how many, and how to cut (training, test) rows from them.

    Preparing belongs to the cut, because what may be learnt from all rows and what from the
    training rows only is what tells one protocol from another.
    """

    n: int
    cut: Callable[[NDArray[np.intp], NDArray[np.intp]], Fold]

    def fold(self, k: int) -> Fold:
        """One of the five published folds."""
        return self.cut(*_positions(self.n, N_FOLDS)[k])

    def inner_folds(self, k: int, n_folds: int) -> list[Fold]:
        """The training rows of one fold, themselves cut into folds, for choosing parameters."""
        rows, _ = _positions(self.n, N_FOLDS)[k]
        return [self.cut(rows[a], rows[b]) for a, b in _positions(len(rows), n_folds)]


Protocol = Callable[[pd.DataFrame, str], Rows]


def _positions(n_rows: int, n_folds: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    from sklearn.model_selection import KFold

    return list(KFold(n_folds, shuffle=True, random_state=SEED).split(np.empty(n_rows)))


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


def paper(frame: pd.DataFrame, task: str) -> Rows:
    """The published preparation: X is float32; y is standardised (regression) or codes."""
    rows = kept_rows(len(frame))
    X = clip(standardise(one_hot(fill_holes(frame.drop(columns=LABEL)))[rows]))
    if task == "regression":
        y = clip(standardise(frame[LABEL].to_numpy(dtype=np.float64)[rows]))
    else:
        y = label_codes(frame[LABEL])[rows]
    return Rows(len(rows), lambda train, test: Fold(X[train], y[train], X[test], y[test]))


def strict(frame: pd.DataFrame, task: str) -> Rows:
    """The same rows, unprepared; each cut prepares them by its training part alone."""
    kept = frame.iloc[kept_rows(len(frame))]
    inputs = kept.drop(columns=LABEL)
    if task == "regression":
        y = kept[LABEL].to_numpy(dtype=np.float64)
        return Rows(len(y), functools.partial(_strict_regression_fold, inputs, y))
    y = label_codes(kept[LABEL])
    return Rows(len(y), functools.partial(_strict_fold, inputs, y))


def _strict_fold(inputs: pd.DataFrame, y: NDArray, train: NDArray, test: NDArray) -> Fold:
    preparation = strict_preparation(inputs)
    # Rounded last, where all columns are of size one; models get float32 as in ``paper``.
    X_train = preparation.fit_transform(inputs.iloc[train]).astype(np.float32)
    X_test = preparation.transform(inputs.iloc[test]).astype(np.float32)
    return Fold(X_train, y[train], X_test, y[test])


def _strict_regression_fold(
    inputs: pd.DataFrame, y: NDArray, train: NDArray, test: NDArray
) -> Fold:
    mean, deviation = y[train].mean(), y[train].std()
    # A constant label has nothing to scale by.
    return _strict_fold(inputs, (y - mean) / (deviation or 1.0), train, test)


def strict_preparation(inputs: pd.DataFrame) -> "Pipeline":
    """Fill holes, one-hot, standardise; levels that training never saw become zeros."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    nominal = list(inputs.select_dtypes("category").columns)
    numeric = [name for name in inputs.columns if name not in set(nominal)]
    # A column may be empty in one training part and not in another.
    numbers = SimpleImputer(strategy="median", keep_empty_features=True)
    levels = make_pipeline(
        SimpleImputer(strategy="most_frequent", keep_empty_features=True),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    )
    columns = ColumnTransformer([("numbers", numbers, numeric), ("levels", levels, nominal)])
    return make_pipeline(columns, StandardScaler())


PROTOCOLS: dict[str, Protocol] = {"paper": paper, "strict": strict}


# Jobs come grouped by dataset: one table in use, and the next one at the change-over.
@functools.lru_cache(maxsize=2)
def load_rows(protocol: str, dataset: int, data: Path) -> Rows:
    """The rows of a table, kept for the next job of the same process."""
    table = known_table(dataset)
    return PROTOCOLS[protocol](load_table(table, data), table.task)
