"""What regressors share: targets in and out, and no mathematics."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils.validation import check_array

from rfrboost._auto.conformal import Calibration, HeldOut, calibrate
from rfrboost._blocks.open import check_blocks, extremes, is_blocks, open_blocks, shrunk_targets
from rfrboost._blocks.reader import BlockArrays
from rfrboost._blocks.row_blocks import RowBlocks
from rfrboost._estimators.base import NetworkEstimator
from rfrboost._estimators.checks import Data, check_targets, check_validation_pair
from rfrboost._estimators.inputs import read_again
from rfrboost._estimators.large import Gathered, source_of
from rfrboost._estimators.parameters import (
    ENSEMBLE_ROUNDING,
    SINGLE_ROUNDING,
    fitted_loss,
    loss_for,
)
from rfrboost._estimators.plan import is_automatic
from rfrboost._files.estimators import REGRESSOR
from rfrboost._model.losses import Loss, Quantiles
from rfrboost._rows.chunks import Chunks, InMemory, thinned_targets
from rfrboost._rows.units import (
    NO_SCALE,
    TargetScale,
    at_rows,
    present_rows,
    target_scale,
    weighted_rows,
)
from rfrboost._typing import Array


def residuals(loss: Loss, held_out: tuple[HeldOut, ...]) -> Calibration | None:
    """How far every member was off on the rows it held out; None if levels share one target."""
    if isinstance(loss, Quantiles):
        return None
    distances = [np.abs(member.y - loss.predict(member.raw)) for member in held_out]
    return calibrate(distances, [member.w for member in held_out])


class NetworkRegressor(RegressorMixin, NetworkEstimator):
    """Regression on top of a network: one or several outputs, any loss."""

    _fitted_state = REGRESSOR
    _target_scale: TargetScale
    _y_is_1d: bool
    oof_prediction_: Array
    oof_score_: float

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
            Arrays, sparse matrices, pandas or polars data frames; finite numbers, or any columns
            if ``preprocess`` applies. Or :class:`~rfrboost.RowBlocks`, which hold everything else
            too.
        y : array-like of shape (n_samples,) or (n_samples, d)
            One target or several.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; integer weights mean repeated rows (with ``n_layers="auto"`` up to which rows
            are held out together).
        X_val, y_val : array-like, optional
            Rows to stop by, for ``n_layers="auto"``: one member is then fitted to all of X and y,
            and there are no out-of-fold predictions.

        Returns
        -------
        self
        """
        if is_blocks(X):
            check_blocks(self, y, sample_weight, X_val, y_val)
            return self._fit_blocks(X)
        X, y, w = self._read(X, y, sample_weight, "regression")
        Y = np.asarray(y, dtype=float).reshape(len(y), -1)
        kept = present_rows(w, len(y))
        X, Y, w = weighted_rows(X, Y, w)
        named = loss_for(self.loss, self.quantile)
        check_targets(Y, named)
        fitted = self._fitted_before(X.shape[1], named.n_outputs(Y))
        scale = target_scale(InMemory(Y, Y, w, sizes=self._sizes)) if named.degree else NO_SCALE
        if fitted is not None:
            # The heads of the layers there are speak in the units of their own fit.
            scale = self._target_scale
        data = Data(X, scale.shrink(Y), w, self._validation(X_val, y_val, Y.shape[1], scale))
        rounding, targets = ENSEMBLE_ROUNDING, (data.y, w)
        if not is_automatic(self, len(Y)):
            rounding, targets = (
                SINGLE_ROUNDING,
                thinned_targets(InMemory(data.y, data.y, w, sizes=self._sizes)),
            )
        loss = fitted_loss(self.loss, self.quantile, rounding, scale.scale, *targets)
        fit = self._fit_network(data, loss, scale.scale, fitted)
        self._target_scale, self._y_is_1d = scale, y.ndim == 1 and not isinstance(loss, Quantiles)
        if fit is not None:
            self._calibration = residuals(loss, fit.held_out)
        if fit is not None and fit.out_of_fold is not None:
            self.oof_prediction_ = self._predictions(at_rows(fit.out_of_fold, kept, len(y)))
            known = np.isfinite(fit.out_of_fold).all(axis=1)
            weights = None if w is None else w[known]
            # In the units of the fit, where squares of targets of any size are finite.
            predicted = loss.predict(fit.out_of_fold[known])
            self.oof_score_ = loss.score(predicted, data.y[known], weights)
        return self

    def _fit_blocks(self, blocks: RowBlocks) -> Self:
        """Fit rows that are read block by block."""
        source = source_of(self, blocks, BlockArrays, "regression")
        if isinstance(source, Gathered):
            return self.fit(source.X, source.y, source.w)
        with open_blocks(source, self._sizes) as chunks:
            self._fit_opened(chunks, source)
        return self

    def _fit_opened(self, chunks: Chunks, source: BlockArrays) -> None:
        named, ends = loss_for(self.loss, self.quantile), extremes(chunks.facts)
        check_targets(ends, named)
        fitted = self._fitted_before(len(chunks.facts.x_low), named.n_outputs(ends))
        scale = target_scale(chunks) if named.degree else NO_SCALE
        if fitted is not None:
            scale = self._target_scale
        chunks.set("y", shrunk_targets, scale)
        if source.held is not None:
            source.held.y = scale.shrink(source.held.y)
        targets = thinned_targets(chunks)
        loss = fitted_loss(self.loss, self.quantile, SINGLE_ROUNDING, scale.scale, *targets)
        self._fit_single(chunks, loss, scale.scale, fitted, source.held)
        self._target_scale = scale
        self._y_is_1d = source.y_is_1d and not isinstance(loss, Quantiles)
        self._describe(source)

    def _validation(
        self, X_val: Any, y_val: Any, n_outputs: int, scale: TargetScale
    ) -> tuple[Array, Array] | None:
        """The rows to stop by, if any, in the units of the fit."""
        if not check_validation_pair(X_val, y_val):
            return None
        X_val = read_again(self, X_val, self._encoder)
        Y_val = check_array(y_val, dtype=float, ensure_2d=False).reshape(len(X_val), -1)
        if Y_val.shape[1] != n_outputs:
            raise ValueError(f"y_val has {Y_val.shape[1]} outputs, but y has {n_outputs}.")
        return X_val, scale.shrink(Y_val)

    def predict(self, X: Any) -> Array:
        """Predict the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, d)
            With several quantile levels, a column for each, rising from left to right.
        """
        return self._predictions(self._raw(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of ``predict(X)``; with several quantile levels the share of pinball loss saved.

        The latter is 1 − (pinball loss, summed over levels) / (that of the best constants for y).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        y : array-like of shape (n_samples,) or (n_samples, d)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        prediction = self.predict(X)
        w = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        return self._loss.score(prediction, y, w)

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
