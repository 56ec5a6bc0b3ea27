"""What regressors and classifiers share: validation around a network, and no mathematics."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from rfrboost._boost import LayerRecord, Recipe, boost
from rfrboost._edge import (
    NO_SCALE,
    TargetScale,
    check_inputs,
    check_targets,
    target_scale,
    weighted_rows,
)
from rfrboost._losses import BinaryLogLoss, Loss, SoftmaxLogLoss
from rfrboost._network import Network
from rfrboost._parameters import fitted_loss, loss_for
from rfrboost._progress import Progress
from rfrboost._typing import Array

DTYPES = [np.float64, np.float32]


class NetworkEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator whose fitted state is a :class:`~rfrboost._network.Network`."""

    network_: Network
    history_: list[dict[str, float]]

    @abstractmethod
    def _recipe(self, loss: Loss, scale: float, n_rows: int, n_columns: int, seed: int) -> Recipe:
        """The recipe that the parameters describe."""

    def _fit_network(self, X: Array, Y: Array, w: Array | None, loss: Loss, scale: float) -> None:
        """Fit from the start, or go on from a fitted network when ``warm_start`` is set."""
        names = getattr(self, "feature_names_in_", None)
        check_inputs(X, None if names is None else list(names))
        fitted = self._fitted_before(X, Y) if getattr(self, "warm_start", False) else None
        if fitted is None:
            self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            self.history_ = []
        recipe = self._recipe(loss, scale, len(Y), X.shape[1], self._seed)
        progress = Progress(type(self).__name__, recipe.n_layers, getattr(self, "verbose", 0))

        def watch(record: LayerRecord) -> None:
            self.history_.append(asdict(record))
            progress(record)

        self.network_ = boost(X, Y, w, recipe, fitted, watch)
        self._loss = loss
        self._n_features_out = len(self.network_.heads[-1].W)

    def _fitted_before(self, X: Array, Y: Array) -> Network | None:
        """The network to add layers to, if there is one and it still fits."""
        fitted: Network | None = getattr(self, "network_", None)
        if fitted is None:
            return None
        if len(fitted.mean) != X.shape[1]:
            raise ValueError(
                f"X has {X.shape[1]} features but the last fit had {len(fitted.mean)}, so "
                "warm_start cannot go on from it. Set warm_start=False to start afresh."
            )
        if self.sample_splitting:
            raise ValueError(
                "warm_start cannot add layers under sample_splitting, which shares the rows out "
                "among a number of layers fixed beforehand. Set one of the two to False."
            )
        if self.n_layers < len(fitted.layers):
            raise ValueError(
                f"n_layers={self.n_layers} is less than the {len(fitted.layers)} layers already "
                "fitted, and warm_start only adds layers. Raise n_layers, or set warm_start=False."
            )
        if len(fitted.heads[-1].b) != self._loss.n_outputs(Y):
            raise ValueError(
                "y has another number of outputs or classes than in the last fit, so warm_start "
                "cannot go on from it. Set warm_start=False to start afresh."
            )
        return fitted

    def _checked(self, X: Any) -> Array:
        check_is_fitted(self, "network_")
        X = validate_data(self, X, dtype=DTYPES, reset=False)
        check_inputs(X, list(getattr(self, "feature_names_in_", [])) or None)
        return X

    def transform(self, X: Any) -> Array:
        """The learned representation Φ_T(x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Returns
        -------
        ndarray of shape (n_samples, D)
        """
        X = self._checked(X)
        return self.network_.transform(X)

    def _raw(self, X: Any) -> Array:
        X = self._checked(X)
        return self.network_.raw(X)

    def _staged_raw(self, X: Any) -> list[Array]:
        X = self._checked(X)
        return self.network_.staged_raw(X)


class NetworkRegressor(RegressorMixin, NetworkEstimator):
    """Regression on top of a network: one or several outputs, any loss."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
            Finite numbers; arrays, pandas or polars data frames.
        y : array-like of shape (n_samples,) or (n_samples, d)
            One target or several.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; integer weights mean repeated rows.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, dtype=DTYPES, multi_output=True, y_numeric=True)
        self._y_is_1d = y.ndim == 1
        Y = np.asarray(y, dtype=float).reshape(len(y), -1)
        w = None
        if sample_weight is not None:
            w = _check_sample_weight(sample_weight, X, dtype=np.float64)
        X, Y, w = weighted_rows(X, Y, w)
        check_targets(Y, loss_for(self.loss, self.quantile))
        scale = target_scale(Y, w) if loss_for(self.loss, self.quantile).degree else NO_SCALE
        Y = scale.shrink(Y)
        loss = fitted_loss(self.loss, self.quantile, scale.scale, Y, w)
        self._fit_network(X, Y, w, loss, scale.scale)
        self._target_scale: TargetScale = scale
        return self

    def predict(self, X: Any) -> Array:
        """Predict the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, d)
        """
        return self._predictions(self._raw(X))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions after 0, 1, …, T layers; the last equals ``predict(X)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, d)
        """
        for raw in self._staged_raw(X):
            yield self._predictions(raw)

    def _predictions(self, raw: Array) -> Array:
        y = self._target_scale.grow(self._loss.predict(raw))
        return y[:, 0] if self._y_is_1d else y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class NetworkClassifier(ClassifierMixin, NetworkEstimator):
    """Classification on top of a network: one logit for two classes, softmax for more."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
            Finite numbers; arrays, pandas or polars data frames.
        y : array-like of shape (n_samples,)
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; integer weights mean repeated rows.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, dtype=DTYPES)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        w = None
        if sample_weight is not None:
            w = _check_sample_weight(sample_weight, X, dtype=np.float64)
        X, y, w = weighted_rows(X, y, w)
        self.classes_, codes = np.unique(y, return_inverse=True)
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes to tell apart, but y holds one "
                f"class only, {str(self.classes_[0])!r} (rows of weight zero do not count)."
            )
        Y = codes[:, None].astype(float) if n_classes == 2 else np.eye(n_classes)[codes]
        loss = BinaryLogLoss() if n_classes == 2 else SoftmaxLogLoss()
        self._fit_network(X, Y, w, loss, 1.0)
        return self

    def decision_function(self, X: Any) -> Array:
        """Logits: of shape (n_samples,) for two classes, (n_samples, n_classes) for more.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        """
        raw = self._raw(X)
        return raw[:, 0] if raw.shape[1] == 1 else raw

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, columns in the order of ``classes_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        raw = self._raw(X)
        return self._loss.predict(raw)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._labels(self.predict_proba(X))

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Class probabilities after 0, 1, …, T layers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        """
        for raw in self._staged_raw(X):
            yield self._loss.predict(raw)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predicted classes after 0, 1, …, T layers; the last equals ``predict(X)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        """
        for probabilities in self.staged_predict_proba(X):
            yield self._labels(probabilities)

    def _labels(self, probabilities: Array) -> np.ndarray:
        return self.classes_[np.argmax(probabilities, axis=1)]
