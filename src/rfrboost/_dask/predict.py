"""Lazy predictions of Dask collections: computed on the workers, partition by partition."""

from typing import Any

import numpy as np
from dask.delayed import delayed
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted, validate_data

from rfrboost._dask.partitions import is_array
from rfrboost._estimators.base import NetworkEstimator


def lazily(model: NetworkEstimator, method: str, X: Any) -> Any:
    """``model.method(X)`` of a collection: an array for an array, a series or frame for a frame."""
    check_is_fitted(model)
    example = blank(model, method)
    # As the result of a task the model is sent to every worker once.
    shared = delayed(model, pure=False)
    if not is_array(X):
        X = model._model().inputs.matched(X)
        validate_data(model, X._meta, reset=False, skip_check_array=True)
        meta = framed(model, example, X._meta.iloc[:0])
        return X.map_partitions(predicted_frame, shared, method, meta=meta)
    if X.ndim != 2 or X.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has shape {X.shape}, but {type(model).__name__} was fitted on "
            f"{model.n_features_in_} columns."
        )
    rows = X.rechunk({1: -1})
    if example.ndim == 1:
        return rows.map_blocks(predicted, shared, method, drop_axis=1, meta=example)
    chunks = (rows.chunks[0], (example.shape[1],))
    return rows.map_blocks(predicted, shared, method, chunks=chunks, meta=example)


def blank(model: Any, method: str) -> np.ndarray:
    """What the method returns for an X without rows."""
    if method == "predict" and is_classifier(model):
        classes: np.ndarray = model.classes_
        return classes[:0]
    fitted = model._model()
    if method == "transform":
        return np.empty((0, fitted.width))
    outputs = fitted.n_outputs
    if method in ("predict_proba", "predict_log_proba"):
        return np.empty((0, max(outputs, 2)))
    return np.empty(0) if fitted.targets.one_output else np.empty((0, outputs))


def predicted(X: Any, model: Any, method: str) -> np.ndarray:
    """The prediction of one partition, which may be empty."""
    if not len(X):
        return blank(model, method)
    values: np.ndarray = getattr(model, method)(X)
    return values


def predicted_frame(X: Any, model: Any, method: str) -> Any:
    """The prediction of one partition of a data frame, with its index."""
    return framed(model, predicted(X, model, method), X)


def framed(model: Any, values: np.ndarray, X: Any) -> Any:
    """Predictions as a series or frame with the index of X; columns of classes have their names."""
    if values.ndim == 1:
        # The type of labels that are text cannot be told from a partition without rows.
        known = model.classes_ if values.dtype.kind in "OU" else values
        dtype = X._constructor_sliced(known).dtype
        return X._constructor_sliced(values, index=X.index, name="prediction", dtype=dtype)
    columns = list(range(values.shape[1]))
    if is_classifier(model) and len(model.classes_) == values.shape[1]:
        columns = list(model.classes_)
    return X._constructor(values, index=X.index, columns=columns)
