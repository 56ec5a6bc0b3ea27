"""What figures ask of a model: that it is fitted, and predictions of rows it has not seen."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted


def column_names(model: Any) -> list[str]:
    """The names of the columns that the model was fitted on, x0, x1, … if they had none."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if names is None else list(names)


def is_automatic(model: Any) -> bool:
    """Whether the model is an ensemble: ``n_layers="auto"``, and at least 50 rows.

    Only an ensemble begins with predictions; a single network of few rows begins with x itself.
    """
    automatic = isinstance(getattr(model, "n_layers", None), str)
    return automatic and model.network_.initial is not None


def predictions(model: Any, X: Any, y: Any, method: str) -> tuple[np.ndarray, np.ndarray, str]:
    """y, what the model predicts for it, and whose rows these are, in words.

    With X the model's ``method`` predicts it. Without, y belongs to the training rows, and their
    out-of-fold predictions are taken; rows that have none are left out.
    """
    check_is_fitted(model)
    if y is None:
        raise ValueError(
            "Pass y: with X the actual values of these rows, without X those of the training "
            "rows, whose out-of-fold predictions are then taken."
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
            f"Without X, y should be that of fit, which had {len(predicted)} rows; it has {len(y)}."
        )
    known = np.isfinite(predicted.reshape(len(y), -1)).all(axis=1)
    return y[known], predicted[known], f"{known.sum():,} training rows, out of fold"


def method_of(model: Any, name: str) -> Any:
    """A method of the model, or a sentence saying that it has none such."""
    method = getattr(model, name, None)
    if method is None:
        raise TypeError(
            f"{type(model).__name__} has no {name}, which this is made from (of a pipeline, pass "
            "the last step and rows as they reach it)."
        )
    return method
