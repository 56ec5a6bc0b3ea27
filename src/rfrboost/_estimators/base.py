"""The estimator around a fitted network: what all regressors and classifiers share.

Estimators hold parameters, documentation and validation, and no mathematics. ``fit`` turns its
arguments into a :class:`~rfrboost._estimators.problem.Problem`, which one of the routes turns
into a :class:`~rfrboost._estimators.fitted.Fitted`. Predictions and all else use that object.
"""

import os
from contextlib import nullcontext
from copy import copy
from dataclasses import replace
from time import perf_counter
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from rfrboost._blocks.row_blocks import RowBlocks
from rfrboost._estimators.fitted import Compression, Fitted
from rfrboost._estimators.options.progress import Progress
from rfrboost._estimators.parameters import Parameters
from rfrboost._estimators.problem import Request
from rfrboost._estimators.routes import fit_arrays, fit_blocks
from rfrboost._model.network import Network, input_gradient
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._numerics.threads import threads
from rfrboost._tables.report import ColumnReport
from rfrboost._typing import Array

# The type of a fitted attribute.
Known = TypeVar("Known")


class NetworkEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator whose fitted state is one :class:`~rfrboost._estimators.fitted.Fitted`."""

    _task: ClassVar[str]
    _fitted: Fitted | None = None
    #: how many rows are taken at a time; only tests set others
    _sizes: Sizes = SIZES

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        groups: Any = None,
        cv: Any = None,
    ) -> Self:
        """Fit the model. If that fails or is interrupted, the estimator stays as it was.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
            Arrays, sparse matrices, pandas or polars data frames: finite numbers or, for an
            automatic fit, any columns (see ``preprocess``). Or :class:`~rfrboost.RowBlocks`, which
            hold everything else too.
        y : array-like of shape (n_samples,) or (n_samples, d)
            Numbers, one target or several; for classification, labels of any type, or a matrix of
            0 and 1 with a column for each of several labels, which may be sparse.
        sample_weight : array-like of shape (n_samples,), optional
            Weights. If ``n_layers`` is a number, a weight of 2 equals repeating the row; in an
            automatic fit it does too, except that repeated rows may be held out apart.
        X_val, y_val : array-like, optional
            Validation rows for an automatic fit: one member is then fitted to all of X and y, these
            rows decide when it stops, and there are no out-of-fold predictions.
        groups : array-like of shape (n_samples,), optional
            Automatic fits: the group of every row (a patient, a shop, a day). A member holds out
            whole groups, so that early stopping, weights, ``oof_score_`` and intervals are those of
            new groups. A splitter in ``cv`` is given them too.
        cv : int, splitter or iterable of splits, optional
            Automatic fits: how rows are held out, if not as ``n_bags`` says. A number stands for
            ``n_bags``. Any splitter of scikit-learn (``GroupKFold()``, ``TimeSeriesSplit()``), or
            pairs of indices (rows to fit, rows to hold out), decides what stops, weights and
            calibrates the members. Where rows are held out that other members never see, as with
            ``TimeSeriesSplit``, one more member is fitted to all rows, and predicts alone.

        Returns
        -------
        self
        """
        request = self._request(groups, cv)
        n_jobs = request.parameters.n_jobs
        with (
            nullcontext() if n_jobs is None else threads(n_jobs),
            request.progress or nullcontext(),
        ):
            self._fitted = self._fit(request, X, y, sample_weight, X_val, y_val)
        return self

    def _fit(
        self, request: Request, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any
    ) -> Fitted:
        """Fit rows in memory, or in blocks."""
        if not isinstance(X, RowBlocks):
            return fit_arrays(request, X, y, sample_weight, X_val, y_val)
        folds = (request.groups, request.parameters.cv)
        if any(other is not None for other in (y, sample_weight, X_val, y_val, *folds)):
            raise ValueError(
                "RowBlocks hold the targets and weights themselves: call fit(blocks), without y, "
                "sample_weight, X_val, y_val, groups or cv."
            )
        return fit_blocks(request, X)

    def _request(self, groups: Any = None, cv: Any = None) -> Request:
        """A call of ``fit`` that begins now."""
        parameters = replace(self._parameters(), cv=cv)
        seconds = np.inf if parameters.max_seconds is None else parameters.max_seconds
        deadline = perf_counter() + seconds
        name = type(self).__name__
        progress = Progress(name, deadline) if parameters.verbose else None
        return Request(
            self, self._task, parameters, self._sizes, self._fitted, deadline, groups, progress
        )

    def _parameters(self) -> Parameters:
        """All parameters of a fit; those that the estimator has, with its values."""
        return Parameters(**self.get_params(deep=False))

    def _model(self) -> Fitted:
        """What the last fit left, or a NotFittedError."""
        if self._fitted is None:
            # scikit-learn's own words, which take longer than a prediction of one row should.
            check_is_fitted(self)
        assert self._fitted is not None
        return self._fitted

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._encodes_tables()
        tags.input_tags.sparse = self._encodes_tables()
        return tags

    def _encodes_tables(self) -> bool:
        """Whether X may be any table, which ``fit`` learns to encode."""
        return False

    @property
    def network_(self) -> Network:
        """The fitted model: frozen arrays."""
        return self._model().network

    @property
    def history_(self) -> list[dict[str, float]]:
        """A record per layer."""
        return self._model().history

    @property
    def n_features_in_(self) -> int:
        """The number of columns of X."""
        return self._model().inputs.n_columns

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the columns of X, if all of them are text."""
        return self._known(self._model().inputs.names, "feature_names_in_")

    @feature_names_in_.setter
    def feature_names_in_(self, names: np.ndarray | None) -> None:
        # Explainers set this to None on copies of a model, to call it with arrays.
        fitted = self._model()
        self._fitted = replace(fitted, inputs=replace(fitted.inputs, names=names))

    @property
    def column_report_(self) -> list[ColumnReport]:
        """What the fit found in each column and made of it, of an automatic fit."""
        encoder = self._model().inputs.encoder
        report = None if encoder is None else encoder.report
        return list(self._known(report, "column_report_"))

    @property
    def feature_importances_(self) -> Array:
        """The columns' shares, of an ensemble."""
        return self._known(self._model().importances, "feature_importances_")

    @property
    def oof_prediction_(self) -> Array:
        """Out-of-fold predictions of the training rows, of an ensemble."""
        return self._known(self._model().oof_prediction, "oof_prediction_")

    @property
    def oof_score_(self) -> float:
        """The score of the out-of-fold predictions, of an ensemble."""
        return self._known(self._model().oof_score, "oof_score_")

    @property
    def fine_tuning_(self) -> list[float]:
        """The held-out loss of every epoch, of a model that was trained on in PyTorch."""
        return self._known(self._model().fine_tuning, "fine_tuning_")

    def _known(self, value: Known | None, name: str) -> Known:
        """A fitted attribute, or an AttributeError where this fit has none."""
        if value is None:
            raise AttributeError(f"This {type(self).__name__} has no {name} after its fit.")
        return value

    @property
    def _n_features_out(self) -> int:
        """The number of columns that ``transform`` gives; scikit-learn reads it."""
        return self._model().width

    def transform(self, X: Any) -> Array:
        """The learned representation Φ_T(x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Returns
        -------
        ndarray of shape (n_samples, D)
        """
        fitted = self._model()
        return fitted.network.transform(fitted.inputs.read(self, X))

    def input_gradient(self, X: Any) -> Array:
        """How the prediction at each row changes with its inputs: exact derivatives.

        Of ``predict`` for regression (of the logarithm of the mean with the Poisson loss), of
        ``decision_function`` for classification. Averages of its squares tell which columns the
        model uses; multiply by the columns' standard deviations to compare them. A prediction that
        an automatic fit limits to the range of the training targets has the slope that it would
        have without the limit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Returns
        -------
        ndarray of shape (n_samples, n_features_in), or (n_samples, n_features_in, d) if the model
        has several outputs or labels or more than two classes
        """
        fitted = self._model()
        X = fitted.inputs.matched(X)
        encoded = fitted.inputs.read(self, X)
        gradient: Array = fitted.targets.scale.scale * input_gradient(fitted.network, encoded)
        if fitted.inputs.encoder is not None:
            gradient = fitted.inputs.encoder.pull(X, gradient)
        return gradient[:, :, 0] if fitted.targets.one_output else gradient

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
        return np.asarray(self._model().inputs.read(self, X), dtype=float)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, for :func:`rfrboost.load`.

        The file holds arrays (safetensors) and a JSON header, and no pickle: loading it runs no
        code. A loaded model predicts the same bits, and ``warm_start`` can add layers to it. Needs
        the package safetensors (``pip install 'rfrboost[files]'``). ``callbacks``,
        ``snapshot``, and objects in ``class_weight`` and ``scoring``, are not written: a loaded
        model has None there.

        Parameters
        ----------
        path : str or path
            Replaced at once if it exists; if anything goes wrong it stays as it was.

        Raises
        ------
        ModelFileError
            If a parameter is an object that files cannot hold: a loss, sampler or transformer that
            is not rfrboost's own, or a RandomState.
        """
        from rfrboost._files.io import save_estimator

        save_estimator(self, path)

    def to_onnx(self, path: str | os.PathLike[str] | None = None, *, dtype: str = "float32") -> Any:
        """The fitted model for ONNX runtimes, preprocessing included.

        Its inputs are one tensor of shape (n, 1) for every column of the data frame that it was
        fitted on and makes use of, under the column's name: numbers (booleans too) with NaN for
        missing values, categories as text, with "" for missing values. A model fitted on an array
        of numbers has one input ``X``. :meth:`onnx_inputs` makes them of a table. Regressors give
        ``variable``, classifiers ``label`` and ``probabilities`` (each with a column for each of
        several labels). Dates are refused. A column whose
        name is empty is called "(no name)". Needs the
        package onnx (``pip install 'rfrboost[onnx]'``).

        Parameters
        ----------
        path : str or path, optional
            Where to write the model; replaced at once if it exists.
        dtype : {"float32", "float64"}, default="float32"
            The type of numbers that come in, and of predictions. float32 is what runtimes are
            usually fed with; a column whose values differ in the eighth digit (coordinates, times)
            needs float64. ``variable`` is float64 in any case where float32 has too few digits for
            it: targets far from zero, beside their spread, or beyond 1e30.

        Returns
        -------
        onnx.ModelProto
        """
        fitted = self._model()
        from rfrboost._files.atomic import write_atomically

        try:
            from rfrboost._export.onnx.model import onnx_model
        except ImportError as error:
            raise ImportError(
                "to_onnx needs the package onnx: pip install 'rfrboost[onnx]'."
            ) from error
        model = onnx_model(fitted, type(self).__name__, number_type(dtype))
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
        fitted = self._model()
        from rfrboost._export.onnx.inputs import inputs_of

        X = fitted.inputs.matched(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return inputs_of(fitted.inputs).feed(X, number_type(dtype))

    def to_torch(self) -> Any:
        """The fitted model as a PyTorch module, in double precision.

        ``module(torch.from_numpy(model.encode(X)))`` is ``predict(X)`` with a column per output, or
        ``predict_proba(X)``; ``module.network`` gives raw predictions. All weights are parameters.
        To train them and get an estimator back, see :func:`rfrboost.torch.fine_tune`. Needs PyTorch
        (``pip install 'rfrboost[torch]'``).

        Returns
        -------
        torch.nn.Module
        """
        fitted = self._model()
        try:
            from rfrboost._export.torch.model import PredictionModule
        except ImportError as error:
            raise ImportError("to_torch needs PyTorch: pip install 'rfrboost[torch]'.") from error
        return PredictionModule(fitted)

    #: whether fits may be ensembles, which can be made smaller
    _fits_ensembles: ClassVar[bool] = False

    @property
    def compression_(self) -> Compression:
        """What ``compress`` did to this model."""
        return self._known(self._model().compression, "compression_")

    @available_if(lambda self: self._fits_ensembles)
    def compress(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        tolerance: float | None = None,
        size: int | None = None,
        training_rows: bool = True,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """A smaller and faster model of the same class, which imitates this one, an ensemble.

        It keeps some of the ensemble's neurons, radial features and trees, with weights that are
        fitted to the ensemble's predictions on X and on rows between those of X. No targets are
        needed, as the model is imitated and not fitted again. ``compression_`` says what it keeps
        and by how much the error grows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
            Rows like those to be predicted, at least 50: the training rows, as a rule.
        sample_weight : array-like of shape (n_samples,), optional
            How much each of them counts.
        tolerance : float, default=0.01
            The share by which the error may grow: RMSE in regression, log loss in classification.
            The smallest model found within it is returned. If no smaller model is good enough, the
            result is a copy of this one.
        size : int, optional
            The most neurons, radial features and trees to keep, in place of a tolerance.
        training_rows : bool, default=True
            Whether the smaller model may hold training rows, as the centres of radial features.
            Without them the tolerance cannot always be kept; a warning says so.
        X_val, y_val : array-like, optional
            Rows with targets that the model has not seen, on which errors are measured. Without
            them the error is estimated, from the errors of members on rows they held out and from
            how far the two models differ on rows between those of X.

        Returns
        -------
        an estimator of the same class
            Its intervals are around its own predictions, widened by the share by which the
            error grows. It has no out-of-fold predictions nor importances.
        """
        from rfrboost._compress.search import compressed

        result = copy(self)
        result._fitted = compressed(
            self, X, sample_weight, tolerance, size, training_rows, (X_val, y_val)
        )
        return result


def number_type(dtype: str) -> np.dtype[Any]:
    """The type that a ``dtype`` argument names."""
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype should be float32 or float64, not {dtype!r}.")
    return np.dtype(dtype)
