"""What figures need of a fitted model: the names of its columns, and predictions.

Made-up rows are predicted too, whose columns are taken from different rows of a
table (:func:`recombined`). That is how importances and attributions are measured.
"""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils.validation import check_consistent_length, check_is_fitted


def column_names(model: Any, X: Any = None) -> list[str]:
    """The names of the columns that the model was fitted on.

    If they had no names, those of X or, if these have none either, x0, x1, …
    """
    names = getattr(model, "feature_names_in_", getattr(X, "columns", None))
    return [f"x{j}" for j in range(model.n_features_in_)] if names is None else list(names)


def is_automatic(model: Any) -> bool:
    """Whether the model is an ensemble: ``n_layers="auto"``, fitted on at least 50 rows.

    With fewer rows an automatic fit is a single network, whose Φ₀ is x itself.
    """
    automatic = isinstance(getattr(model, "n_layers", None), str)
    return automatic and model.network_.initial is not None


def predictions(model: Any, X: Any, y: Any, method: str) -> tuple[np.ndarray, np.ndarray, str]:
    """The actual values, the predictions, and a phrase that says which rows these are.

    With X, predictions are those of the model's ``method``. Without X, y must be the one that was
    passed to ``fit``, and predictions are out-of-fold; rows without one are left out.
    """
    check_is_fitted(model)
    if y is None:
        raise ValueError(
            "Pass y: the actual values of the rows of X or, without X, the y that was passed to "
            "fit, which is compared with out-of-fold predictions."
        )
    y = np.asarray(y)
    if X is not None:
        check_consistent_length(X, y)
        return y, method_of(model, method)(X), f"{len(y):,} rows"
    predicted = getattr(model, "oof_prediction_", None)
    if predicted is None:
        raise ValueError(
            f"This {type(model).__name__} has no out-of-fold predictions: pass X and y of rows "
            "that it was not fitted on."
        )
    if len(predicted) != len(y):
        raise ValueError(
            f"Without X, y must be the one that was passed to fit, of {len(predicted)} rows; this "
            f"one has {len(y)}."
        )
    known = np.isfinite(predicted.reshape(len(y), -1)).all(axis=1)
    return y[known], predicted[known], f"{known.sum():,} training rows, out of fold"


def method_of(model: Any, name: str) -> Any:
    """A method of the model; a model without it is refused."""
    method = getattr(model, name, None)
    if method is None:
        raise TypeError(
            f"{type(model).__name__} has no method {name}, which is needed here. For a pipeline, "
            "pass its last step and the rows as transformed by the steps before."
        )
    return method


def table_of(model: Any, X: Any) -> Any:
    """X as a data frame of pandas with the columns of the model's fit, found by name.

    What is not a data frame becomes an array (n, D).
    """
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if hasattr(X, "iloc"):
        names = list(getattr(model, "feature_names_in_", X.columns))
        # A column that is missing, or there twice, is refused when the model predicts.
        return X[names] if set(names) <= set(X.columns) else X
    table = X.toarray() if sparse.issparse(X) else np.asarray(X)
    if table.ndim != 2:
        raise ValueError(f"X must have rows and columns; this one has {table.ndim} axes.")
    return table


def recombined(table: Any, indices: np.ndarray) -> Any:
    """Made-up rows: entry (i, j) of ``indices`` (q, D) is the row that column j of row i is from.

    ``table`` is one of :func:`table_of`, and the result is of the same kind.
    """
    if not hasattr(table, "iloc"):
        return np.take_along_axis(table, indices, axis=0)
    rows = table.iloc[indices[:, 0]].reset_index(drop=True)
    for j in range(1, indices.shape[1]):
        rows.isetitem(j, table.iloc[:, j].array.take(indices[:, j]))
    return rows


def outputs(model: Any, X: Any) -> np.ndarray:
    """Predicted numbers or probabilities, (n, d)."""
    method = "predict_proba" if is_classifier(model) else "predict"
    values = np.asarray(method_of(model, method)(X), dtype=float)
    return values.reshape(len(values), -1)
