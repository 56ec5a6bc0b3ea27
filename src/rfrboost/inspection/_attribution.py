"""What each column adds to a prediction: Shapley values that add up to the prediction.

They are interventional Shapley values (Janzing, Minorics and Blöbaum, 2020): a column that is left
out is taken from a background row, whatever the other columns are. They are sampled by permutations
(Castro, Gómez and Tejada, 2009). Along a random order of columns, a *walk*, the values of a
background row are replaced by those of the explained row, one column at a time, and each column is
credited with the change of the prediction. Every order is also used backwards, which cancels much
of the noise (Mitchell et al., 2022). A walk begins at the background row's prediction and ends at
that of the explained row, so the values add up exactly, however few walks there are.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rfrboost.inspection._models import column_names, outputs, recombined, table_of

# Number of background rows that are drawn if none are given. With two walks for each, a value is
# the mean of 64 changes of the prediction.
BACKGROUND_ROWS = 32
# The most rows that are predicted at a time, which bounds the memory.
BATCH_ROWS = 4096


@dataclass(frozen=True)
class Attribution:
    """What each column adds to the predictions for some rows.

    ``values`` is (n, D), or (n, D, d) for several targets or for the probabilities of d classes.
    ``base`` is the mean prediction over the background rows, a number or (d,). ``base`` plus the
    sum of a row's ``values`` is its prediction. ``names`` are those of the D columns.
    """

    values: np.ndarray
    base: np.ndarray | float
    names: list[str]


def attribute(model: Any, X: Any, background: Any = None, *, random_state: int = 0) -> Attribution:
    """What each column adds to the prediction for every row of X.

    Interventional Shapley values, sampled with two walks per background row. They add up exactly:
    ``base + values.sum(axis=1)`` is the prediction, or the probabilities. A column that the model
    does not use has the value 0. Each row of X costs 2·b·(D + 1) predictions for b background rows
    and D columns; the noise of a value falls as 1/√b.

    Parameters
    ----------
    model : fitted regressor or classifier
    X : array-like of shape (n_samples, n_features_in)
        The rows to explain: arrays or data frames, with categories and missing values as in
        ``fit``.
    background : array-like of shape (b, n_features_in), optional
        The rows to compare with, of the same kind as X. By default 32 rows of X, or all if it has
        fewer; rows of the training table are a better choice if X is small or special.
    random_state : int, default=0
        Draws the background rows and the orders of columns.

    Returns
    -------
    Attribution
        ``values``, ``base`` and ``names``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfrboost import RFRBoostRegressor
    >>> from rfrboost.inspection import attribute
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = RFRBoostRegressor(n_layers=1, random_state=0).fit(X, y)
    >>> found = attribute(model, X[:2], X[:8])
    >>> bool(abs(found.base + found.values.sum(axis=1) - model.predict(X[:2])).max() < 1e-6)
    True
    """
    check_is_fitted(model)
    rng = np.random.default_rng(random_state)
    table = table_of(model, X)
    if background is None:
        drawn = rng.permutation(len(table))[:BACKGROUND_ROWS]
        others = table.iloc[drawn] if hasattr(table, "iloc") else table[drawn]
    else:
        others = table_of(model, background)
    both = stacked(table, others)
    n, D = table.shape
    values = []
    base: np.ndarray = np.zeros(1)
    for row in range(n):
        indices = walks(row, n + np.arange(len(others)), D, rng)
        predicted = predictions_of(model, both, indices.reshape(-1, D))
        steps = predicted.reshape(*indices.shape[:2], -1)
        base = steps[:, 0].mean(axis=0)
        values.append(credited(indices, steps, row))
    found = np.stack(values)
    names = column_names(model, X)
    if found.shape[2] == 1:
        return Attribution(found[:, :, 0], float(base[0]), names)
    return Attribution(found, base, names)


def stacked(table: Any, others: Any) -> Any:
    """The rows of both tables as one; their columns are of the same kinds."""
    if np.shape(table)[1:] != np.shape(others)[1:] or hasattr(table, "iloc") != hasattr(
        others, "iloc"
    ):
        raise ValueError("background must have the columns of X: an array or data frame as X is.")
    if not hasattr(table, "iloc"):
        return np.concatenate([table, others])
    import pandas as pd

    return pd.concat([table, others], ignore_index=True)


def walks(row: int, others: np.ndarray, n_columns: int, rng: np.random.Generator) -> np.ndarray:
    """Indices (2·b, D + 1, D) of two walks from each background row to ``row``.

    Step k of a walk has the first k columns of its order from ``row``; the second walk of a
    background row has the order of the first one, reversed.
    """
    orders = rng.permuted(np.tile(np.arange(n_columns), (len(others), 1)), axis=1)
    orders = np.concatenate([orders, orders[:, ::-1]])
    place = np.argsort(orders, axis=1)
    taken = place[:, None, :] < np.arange(n_columns + 1)[None, :, None]
    return np.where(taken, row, np.tile(others, 2)[:, None, None])


def credited(indices: np.ndarray, steps: np.ndarray, row: int) -> np.ndarray:
    """Values (D, d): the mean change of predictions (walks, D + 1, d) when a column is replaced."""
    entered = (indices[:, 1:] == row) & (indices[:, :-1] != row)
    changes = np.diff(steps, axis=1)
    return np.asarray(np.einsum("wkj,wkd->jd", entered, changes)) / len(steps)


def predictions_of(model: Any, table: Any, indices: np.ndarray) -> np.ndarray:
    """Predictions (q, d) of recombined rows, some at a time."""
    parts = [
        outputs(model, recombined(table, indices[begin : begin + BATCH_ROWS]))
        for begin in range(0, len(indices), BATCH_ROWS)
    ]
    return np.concatenate(parts)
