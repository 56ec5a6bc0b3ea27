"""What figures need of a fitted model: the names of its columns, and predictions."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted


def column_names(model: Any) -> list[str]:
    """The names of the columns that the model was fitted on; x0, x1, … if they had no names."""
    names = getattr(model, "feature_names_in_", None)
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
