"""``to_onnx`` and ``to_torch``, for every estimator around a network."""

import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from rfrboost._estimators.saving import SavedEstimator
from rfrboost._export.onnx.inputs import inputs_of
from rfrboost._files.atomic import write_atomically
from rfrboost._typing import Array

NUMBER_TYPES = ("float32", "float64")


class ExportedEstimator(SavedEstimator):
    """An estimator that other runtimes can run."""

    def to_onnx(self, path: str | os.PathLike[str] | None = None, *, dtype: str = "float32") -> Any:
        """The fitted model for ONNX runtimes, preprocessing included.

        Its inputs are one tensor of shape (n, 1) for every column of the data frame that it was
        fitted on and makes use of, under the column's name: numbers (booleans too) with NaN for
        holes, categories as text, with "" for holes. A model fitted on an array of numbers has one
        input ``X``. :meth:`onnx_inputs` makes them of a table. Regressors give ``variable``,
        classifiers ``label`` and ``probabilities``. Dates are refused. Needs the package onnx
        (``pip install 'rfrboost[onnx]'``).

        Parameters
        ----------
        path : str or path, optional
            Where to write the model; replaced at once if it exists.
        dtype : {"float32", "float64"}, default="float32"
            The type of numbers that come in. float32 is what runtimes are usually fed with; a
            column whose values differ in the eighth digit (coordinates, times) needs float64.

        Returns
        -------
        onnx.ModelProto
        """
        check_is_fitted(self, "network_")
        try:
            from rfrboost._export.onnx.model import onnx_model
        except ImportError as error:
            raise ImportError(
                "to_onnx needs the package onnx: pip install 'rfrboost[onnx]'."
            ) from error
        model = onnx_model(self, number_type(dtype))
        if path is not None:
            write_atomically(path, model.SerializeToString())
        return model

    def onnx_inputs(self, X: Any, *, dtype: str = "float32") -> dict[str, np.ndarray]:
        """A table as the inputs of the model that :meth:`to_onnx` gives.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        dtype : {"float32", "float64"}, default="float32"
            As in :meth:`to_onnx`.

        Returns
        -------
        dict of str to ndarray
        """
        check_is_fitted(self, "network_")
        validate_data(self, X, reset=False, skip_check_array=True)
        return inputs_of(self).feed(X, number_type(dtype))

    def encode(self, X: Any) -> Array:
        """X as the network sees it: the numbers that preprocessing makes of a table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Returns
        -------
        ndarray of shape (n_samples, D)
            X itself, in double precision, for a model that takes X as it is.
        """
        return np.asarray(self._checked(X), dtype=float)

    def to_torch(self) -> Any:
        """The fitted model as a PyTorch module, in double precision.

        ``module(torch.from_numpy(model.encode(X)))`` is ``predict(X)``, one column an output, or
        ``predict_proba(X)``; ``module.network`` gives raw predictions. All weights are parameters.
        To train them and get an estimator back, see :func:`rfrboost.torch.fine_tune`. Needs PyTorch
        (``pip install 'rfrboost[torch]'``).

        Returns
        -------
        torch.nn.Module
        """
        check_is_fitted(self, "network_")
        try:
            from rfrboost._export.torch.model import PredictionModule
        except ImportError as error:
            raise ImportError("to_torch needs PyTorch: pip install 'rfrboost[torch]'.") from error
        return PredictionModule(self)

    def _checked(self, X: Any) -> Array:
        """X as the array that the network was fitted on."""
        raise NotImplementedError


def number_type(dtype: str) -> np.dtype:
    """The type by its name."""
    if dtype not in NUMBER_TYPES:
        raise ValueError(f"dtype should be one of {', '.join(NUMBER_TYPES)}, not {dtype!r}.")
    return np.dtype(dtype)
