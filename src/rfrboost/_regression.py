"""What regressors share: targets in and out, and no mathematics."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils.validation import _check_sample_weight, validate_data

from rfrboost._base import DTYPES, NetworkEstimator
from rfrboost._edge import NO_SCALE, TargetScale, check_targets, target_scale, weighted_rows
from rfrboost._fitted import REGRESSOR
from rfrboost._parameters import fitted_loss, loss_for
from rfrboost._typing import Array


class NetworkRegressor(RegressorMixin, NetworkEstimator):
    """Regression on top of a network: one or several outputs, any loss."""

    _fitted_state = REGRESSOR
    _target_scale: TargetScale
    _y_is_1d: bool

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
        Y = np.asarray(y, dtype=float).reshape(len(y), -1)
        w = None
        if sample_weight is not None:
            w = _check_sample_weight(sample_weight, X, dtype=np.float64)
        X, Y, w = weighted_rows(X, Y, w)
        named = loss_for(self.loss, self.quantile)
        check_targets(Y, named)
        fitted = self._fitted_before(X, named.n_outputs(Y))
        scale = target_scale(Y, w) if named.degree else NO_SCALE
        if fitted is not None:
            # The heads of the layers there are speak in the units of their own fit.
            scale = self._target_scale
        Y = scale.shrink(Y)
        loss = fitted_loss(self.loss, self.quantile, scale.scale, Y, w)
        self._fit_network(X, Y, w, loss, scale.scale, fitted)
        self._target_scale, self._y_is_1d = scale, y.ndim == 1
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

    def _output_scale(self) -> float:
        return self._target_scale.scale

    def _one_output(self) -> bool:
        return self._y_is_1d

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
