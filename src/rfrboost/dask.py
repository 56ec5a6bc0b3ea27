"""Estimators for Dask arrays and data frames, on any cluster that a Dask client is connected to.

In a single network random features are drawn by the client and sent to the workers, which sum Gram
matrices and gradients over their rows. For an automatic fit workers encode their rows, and the
client fits the encoded table; the leaves of its kernel members go back to the workers. What comes
out is the model that a local fit to the same rows gives.
Needs Dask (``pip install 'rfrboost[dask]'``).
"""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Self

from sklearn.base import _fit_context

try:
    from distributed import Client
except ImportError as _error:
    raise ImportError("rfrboost.dask needs Dask: pip install 'rfrboost[dask]'.") from _error

from rfrboost._blocks.reader import BlockArrays, ClassBlockArrays, names_of
from rfrboost._blocks.row_blocks import DISK_BUDGET, RowBlocks
from rfrboost._dask.cluster import Cluster, answering, current_client
from rfrboost._dask.partitions import Partitions, is_array, is_collection
from rfrboost._dask.predict import lazily
from rfrboost._dask.read import open_partitions, streamed_partitions
from rfrboost._estimators.base import NetworkEstimator
from rfrboost._estimators.classifier import RFRBoostClassifier
from rfrboost._estimators.fitted import Fitted
from rfrboost._estimators.problem import Request
from rfrboost._estimators.regressor import RFRBoostRegressor
from rfrboost._estimators.routes import Outside, fit_outside_memory
from rfrboost._numerics.threads import threads
from rfrboost._rows.spill import Spill
from rfrboost._tables.encoder import Encoder

__all__ = ["DaskRFRBoostClassifier", "DaskRFRBoostRegressor"]


def check_collections(estimator: NetworkEstimator, X: Any, y: Any, w: Any) -> None:
    """Refuse what is not on Dask, and what cannot be done there."""
    for name, A in {"X": X, "y": y, "sample_weight": w}.items():
        if not is_collection(A) and not (name == "sample_weight" and A is None):
            raise TypeError(
                f"{type(estimator).__name__} fits Dask arrays and data frames, but {name} is "
                f"{type(A).__name__}. {type(estimator).__name__.removeprefix('Dask')} fits what "
                "is in memory."
            )
    if is_array(X) and X.ndim != 2:
        raise ValueError(f"X has {X.ndim} axes, not two: rows and columns.")


def fit_partitions(request: Request, cluster: Cluster, X: Any, y: Any, w: Any) -> Fitted:
    """Fit rows on workers by a single network, or gathered in one table by the ensemble."""
    kind = BlockArrays if request.task == "regression" else ClassBlockArrays
    X = request.columns_of(X)

    def reader(encoder: Encoder | None) -> BlockArrays:
        """A reader that knows what all partitions must agree with."""
        source = kind(RowBlocks([]), encoder)
        source.n_columns = X.shape[1]
        source.names = None if is_array(X) else names_of(X)
        source.targets = y.shape[1] if y.ndim > 1 else 1
        source.y_is_1d = y.ndim == 1
        source.weighted = w is not None
        return source

    partitions = Partitions(cluster, reader(None), X, y, w, request.sizes)
    outside = Outside(
        look=lambda: partitions,
        reader=reader,
        parts=lambda source: streamed_partitions(partitions, source),
        chunks=lambda source: nullcontext(open_partitions(partitions, source, request.sizes)),
        spill=Spill(None, DISK_BUDGET),
    )
    return fit_outside_memory(request, outside)


class DaskModel(NetworkEstimator):
    """What both estimators share: a client, partitions, and a local model in the end."""

    _local: type[Any]
    _client: Client | None = None

    @property
    def client(self) -> Client:
        """The Dask client: the one that was set, or else the current one."""
        return current_client(self._client)

    @client.setter
    def client(self, client: Client | None) -> None:
        self._client = client

    def __getstate__(self) -> Any:
        return {name: v for name, v in super().__getstate__().items() if name != "_client"}

    def to_local(self) -> Any:
        """The same model as an ordinary estimator, with no Dask in it.

        Returns
        -------
        RFRBoostRegressor or RFRBoostClassifier
        """
        local = self._local(**self.get_params(deep=False))
        local._fitted = self._fitted
        return local

    def save(self, path: Any) -> None:
        """Write the model to a file, as the local estimator that it is.

        Parameters
        ----------
        path : str or path
        """
        self.to_local().save(path)

    def to_onnx(self, path: Any = None, *, dtype: str = "float32") -> Any:
        """The fitted model for ONNX runtimes, as that of the local estimator.

        Parameters
        ----------
        path, dtype
            As in :meth:`~rfrboost.RFRBoostRegressor.to_onnx`.

        Returns
        -------
        onnx.ModelProto
        """
        return self.to_local().to_onnx(path, dtype=dtype)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model on the workers.

        Partitions may be of any size, unknown, or empty. With ``n_layers="auto"`` rows are encoded
        by the workers and fitted by the client, as :class:`~rfrboost.RowBlocks` are: the encoded
        table, 8 bytes for each number, must fit into its memory or on its disk. Workers fit the
        leaves of kernel members. ``n_jobs`` is the number of threads of the client.

        Parameters
        ----------
        X : dask array or data frame of shape (n_samples, n_features_in)
        y : dask array, series or data frame of shape (n_samples,) or (n_samples, d)
            Cut into partitions as X is.
        sample_weight : dask array or series of shape (n_samples,), optional
            Weights, likewise.

        Returns
        -------
        self
        """
        check_collections(self, X, y, sample_weight)
        client = self.client
        cluster = Cluster(client)
        request = replace(self._request(), workers=cluster.workers)
        n_jobs = request.parameters.n_jobs
        here = nullcontext() if n_jobs is None else threads(n_jobs)
        with answering(client), here, request.progress or nullcontext():
            self._fitted = fit_partitions(request, cluster, X, y, sample_weight)
        return self

    def transform(self, X: Any) -> Any:
        """The learned representation; of a Dask collection lazily, block by block.

        Parameters
        ----------
        X : dask array or data frame, or array-like, of shape (n_samples, n_features_in)
        """
        return self._of(X, "transform")

    def input_gradient(self, X: Any) -> Any:
        """Derivatives of the prediction in the inputs, for rows in memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        """
        return self._in_memory(X).input_gradient(X)

    def encode(self, X: Any) -> Any:
        """X as the network sees it, for rows in memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        """
        return self._in_memory(X).encode(X)

    def onnx_inputs(self, X: Any, *, dtype: str = "float32") -> Any:
        """A table as the inputs of the ONNX graph, for rows in memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        dtype : {"float32", "float64"}, default="float32"
        """
        return self._in_memory(X).onnx_inputs(X, dtype=dtype)

    def staged_predict(self, X: Any) -> Any:
        """Predictions after 0, 1, …, T layers, for rows in memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        """
        return self._in_memory(X).staged_predict(X)

    def _in_memory(self, X: Any) -> Any:
        """The local model, for methods that take rows in memory only."""
        if is_collection(X):
            raise TypeError(
                "This is for rows in memory: pass X.compute(), or call the model that to_local() "
                "gives in map_partitions."
            )
        return self.to_local()

    def _of(self, X: Any, method: str) -> Any:
        """A local model's method of rows that are in memory, or lazily of those on Dask."""
        local = self.to_local()
        return lazily(local, method, X) if is_collection(X) else getattr(local, method)(X)


class DaskRFRBoostRegressor(DaskModel, RFRBoostRegressor):
    """Random feature representation boosting for regression on Dask arrays and data frames.

    Parameters are those of :class:`~rfrboost.RFRBoostRegressor`. The client is the current one
    unless ``client`` is set. ``predict`` is lazy. The fitted model is an ordinary one:
    :meth:`to_local` gives it, and files and ONNX graphs are those of it.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from rfrboost.dask import DaskRFRBoostRegressor
    >>> X = da.random.default_rng(0).normal(size=(1000, 3), chunks=(300, 3))
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     model = DaskRFRBoostRegressor(n_layers=3, random_state=0).fit(X, da.sin(X[:, 0]))
    ...     prediction = model.predict(X)
    ...     error = float(abs(prediction - da.sin(X[:, 0])).mean())
    >>> prediction
    dask.array<predicted, shape=(1000,), dtype=float64, chunksize=(300,), chunktype=numpy.ndarray>
    >>> error < 0.1
    True
    """

    _local = RFRBoostRegressor

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the target.

        Parameters
        ----------
        X : dask array or data frame, or array-like, of shape (n_samples, n_features_in)
        return_std : bool, default=False
            As in :class:`~rfrboost.RFRBoostRegressor`; for rows in memory only.

        Returns
        -------
        dask array for an array, series or data frame for a data frame, ndarray for rows in memory
        """
        if return_std:
            return self._in_memory(X).predict(X, return_std=True)
        return self._of(X, "predict")

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Any:
        """Intervals as in :class:`~rfrboost.RFRBoostRegressor`, for rows in memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        coverage : float, default=0.9
        """
        return self._in_memory(X).predict_interval(X, coverage)


class DaskRFRBoostClassifier(DaskModel, RFRBoostClassifier):
    """Random feature representation boosting for classification on Dask arrays and data frames.

    Parameters are those of :class:`~rfrboost.RFRBoostClassifier`; the rest is as in
    :class:`DaskRFRBoostRegressor`. Classes are those of all partitions together.
    """

    _local = RFRBoostClassifier

    def predict(self, X: Any) -> Any:
        """The most probable class.

        Parameters
        ----------
        X : dask array or data frame, or array-like, of shape (n_samples, n_features_in)

        Returns
        -------
        dask array for an array, series for a data frame, ndarray for rows in memory
        """
        return self._of(X, "predict")

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, columns in the order of ``classes_``.

        Parameters
        ----------
        X : dask array or data frame, or array-like, of shape (n_samples, n_features_in)

        Returns
        -------
        dask array for an array, data frame for a data frame, ndarray for rows in memory
        """
        return self._of(X, "predict_proba")

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the class probabilities, as in :class:`~rfrboost.RFRBoostClassifier`.

        Parameters
        ----------
        X : dask array or data frame, or array-like, of shape (n_samples, n_features_in)
        """
        return self._of(X, "predict_log_proba")

    def decision_function(self, X: Any) -> Any:
        """Logits, as in :class:`~rfrboost.RFRBoostClassifier`.

        Parameters
        ----------
        X : dask array or data frame, or array-like, of shape (n_samples, n_features_in)
        """
        return self._of(X, "decision_function")

    def predict_set(self, X: Any, coverage: float = 0.9) -> Any:
        """Sets of classes as in :class:`~rfrboost.RFRBoostClassifier`, for rows in memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        coverage : float, default=0.9
        """
        return self._in_memory(X).predict_set(X, coverage)

    def staged_predict_proba(self, X: Any) -> Any:
        """Probabilities after 0, 1, …, T layers, for rows in memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        """
        return self._in_memory(X).staged_predict_proba(X)
