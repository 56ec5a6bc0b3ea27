"""From a table to the folds a model is fitted and scored on.

A protocol is a function of a table and its task that returns its rows, ready to be cut into
folds. ``paper`` repeats the published preparation, including its small leak: missing values,
scales and clipping are decided on all rows, before the split. Use it only to compare with the
published figures. ``strict`` learns everything from the training rows of each fold, inner folds
too, and clips nothing. ``raw`` prepares nothing but the label: X is a data frame, missing values
and categories included, which the model has to read itself. All use the same rows and the same
folds.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.data.tables import LABEL, known_table, load_table

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

N_FOLDS = 5
# As published: the seed of the shuffle and of the folds, the largest number of rows of a table, and
# the limit of standardised values.
SEED = 42
ROW_LIMIT = 5000
CLIP = 3.0
# Added to a standard deviation, as published, so that a constant column becomes zeros.
STD_OFFSET = 1e-5


@dataclass(frozen=True)
class Fold:
    """One split: training rows X (n, p) and y (n), and test rows; X may be a data frame."""

    X_train: NDArray | pd.DataFrame
    y_train: NDArray
    X_test: NDArray | pd.DataFrame
    y_test: NDArray


@dataclass(frozen=True)
class Rows:
    """The rows of one table: their number, and the function that prepares a split of them.

    ``cut`` takes the positions of training and of test rows and returns them prepared. Preparation
    is part of the cut because protocols differ in what they learn from all rows and what from the
    training rows alone.
    """

    n: int
    cut: Callable[[NDArray[np.intp], NDArray[np.intp]], Fold]

    def fold(self, k: int) -> Fold:
        """One of the five published folds."""
        return self.cut(*_positions(self.n, N_FOLDS)[k])

    def halves(self) -> list[Fold]:
        """Two folds: each half of the rows is fitted once and tested once."""
        return [self.cut(train, test) for train, test in _positions(self.n, 2)]

    def inner_folds(self, k: int, n_folds: int) -> list[Fold]:
        """Folds of the training rows of fold ``k``, for choosing parameters."""
        rows, _ = _positions(self.n, N_FOLDS)[k]
        return [self.cut(rows[a], rows[b]) for a, b in _positions(len(rows), n_folds)]


Protocol = Callable[[pd.DataFrame, str], Rows]


def _positions(n_rows: int, n_folds: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    from sklearn.model_selection import KFold

    return list(KFold(n_folds, shuffle=True, random_state=SEED).split(np.empty(n_rows)))


def fill_missing(inputs: pd.DataFrame) -> pd.DataFrame:
    """Missing numbers become the median of their column, missing levels its most frequent level.

    A numeric column without a single value (``sick`` has one) becomes zeros: any constant
    standardises to zero, and the column still counts in the width, as it did in the paper.
    """
    nominal = inputs.select_dtypes("category")
    numeric = inputs[inputs.columns.difference(nominal.columns, sort=False)]
    fillers: dict[str, object] = numeric.median().fillna(0.0).to_dict()
    fillers |= {name: column.mode().iloc[0] for name, column in nominal.items() if column.hasnans}
    return inputs.fillna(fillers)


def one_hot(inputs: pd.DataFrame) -> NDArray[np.float32]:
    """Nominal columns as indicators, one for each declared level, unused levels included.

    Values are rounded to float32 here, before standardising, as published: in columns that are
    large compared with their spread this changes the standardised values and the scores.
    """
    return pd.get_dummies(inputs).to_numpy(dtype=np.float32)


def kept_rows(n_rows: int) -> NDArray[np.intp]:
    """The positions of the first ``ROW_LIMIT`` rows after a fixed shuffle."""
    return np.random.RandomState(SEED).permutation(n_rows)[:ROW_LIMIT]


def standardise(values: NDArray) -> NDArray:
    """Zero mean and unit population standard deviation, column by column."""
    return (values - values.mean(axis=0)) / (values.std(axis=0) + STD_OFFSET)


def clip(values: NDArray) -> NDArray:
    """Standardised values, limited to three standard deviations."""
    return np.clip(values, -CLIP, CLIP)


def label_codes(labels: pd.Series) -> NDArray[np.intp]:
    """Labels as codes 0, 1, …, in the sorted order of their names."""
    return np.unique(labels.astype(str).to_numpy(dtype=object), return_inverse=True)[1]


def paper(frame: pd.DataFrame, task: str) -> Rows:
    """The published preparation: X is float32; y is standardised (regression) or codes."""
    rows = kept_rows(len(frame))
    X = clip(standardise(one_hot(fill_missing(frame.drop(columns=LABEL)))[rows]))
    if task == "regression":
        y = clip(standardise(frame[LABEL].to_numpy(dtype=np.float64)[rows]))
    else:
        y = label_codes(frame[LABEL])[rows]
    return Rows(len(rows), lambda train, test: Fold(X[train], y[train], X[test], y[test]))


Cut = Callable[[pd.DataFrame, NDArray, NDArray, NDArray], Fold]


def strict(frame: pd.DataFrame, task: str) -> Rows:
    """The rows of ``paper``, unprepared; each cut prepares them from its training rows alone."""
    return _unprepared(frame, task, _strict_fold)


def raw(frame: pd.DataFrame, task: str) -> Rows:
    """The rows of ``paper`` as data frames; only labels of regression are standardised."""
    return _unprepared(frame, task, _raw_fold)


def _unprepared(frame: pd.DataFrame, task: str, cut: Cut) -> Rows:
    kept = frame.iloc[kept_rows(len(frame))].reset_index(drop=True)
    inputs = kept.drop(columns=LABEL)
    if task == "regression":
        y = kept[LABEL].to_numpy(dtype=np.float64)
        return Rows(len(y), functools.partial(_with_scaled_labels, cut, inputs, y))
    y = label_codes(kept[LABEL])
    return Rows(len(y), functools.partial(cut, inputs, y))


def _raw_fold(inputs: pd.DataFrame, y: NDArray, train: NDArray, test: NDArray) -> Fold:
    return Fold(inputs.iloc[train], y[train], inputs.iloc[test], y[test])


def _strict_fold(inputs: pd.DataFrame, y: NDArray, train: NDArray, test: NDArray) -> Fold:
    preparation = strict_preparation(inputs)
    # Rounded to float32, as in ``paper``, but after standardising, when all columns have size one.
    X_train = preparation.fit_transform(inputs.iloc[train]).astype(np.float32)
    X_test = preparation.transform(inputs.iloc[test]).astype(np.float32)
    return Fold(X_train, y[train], X_test, y[test])


def _with_scaled_labels(
    cut: Cut, inputs: pd.DataFrame, y: NDArray, train: NDArray, test: NDArray
) -> Fold:
    mean = y[train].mean()
    deviation = y[train].std()
    # A constant label has deviation zero and is left unscaled.
    return cut(inputs, (y - mean) / (deviation or 1.0), train, test)


def strict_preparation(inputs: pd.DataFrame) -> "Pipeline":
    """Fill missing values, one-hot, standardise; levels absent from training rows become zeros."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    nominal = list(inputs.select_dtypes("category").columns)
    numeric = [name for name in inputs.columns if name not in set(nominal)]
    # A column may have no value at all in the training rows of one fold.
    numbers = SimpleImputer(strategy="median", keep_empty_features=True)
    levels = make_pipeline(
        SimpleImputer(strategy="most_frequent", keep_empty_features=True),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    )
    columns = ColumnTransformer([("numbers", numbers, numeric), ("levels", levels, nominal)])
    return make_pipeline(columns, StandardScaler())


PROTOCOLS: dict[str, Protocol] = {"paper": paper, "strict": strict, "raw": raw}
# The protocols that every model can be fitted under: X is an array of numbers.
OF_ARRAYS = ("paper", "strict")


# Jobs come grouped by dataset: two tables are kept because one ends while the next begins.
@functools.lru_cache(maxsize=2)
def load_rows(protocol: str, dataset: int, data: Path) -> Rows:
    """The rows of a table under a protocol, cached for the next job of the same process."""
    table = known_table(dataset)
    return PROTOCOLS[protocol](load_table(table, data), table.task)
