"""What an ensemble knows of its own errors: standard deviations, intervals, sets of classes."""

from collections.abc import Iterator
from numbers import Real
from typing import Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rfrboost._auto.conformal import Calibration, conforming, intervals, variance
from rfrboost._estimators.base import NetworkEstimator
from rfrboost._estimators.classification import NetworkClassifier
from rfrboost._estimators.parameters import is_auto
from rfrboost._estimators.regression import NetworkRegressor
from rfrboost._model.losses import Quantiles
from rfrboost._model.network import row_slices
from rfrboost._typing import Array


class TrustedRegressor(NetworkRegressor):
    """A regressor that says how sure it is, if it is an ensemble."""

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        return_std : bool, default=False
            Whether to return standard deviations too. Of an ensemble only.

        Returns
        -------
        prediction : ndarray of shape (n_samples,) or (n_samples, d)
            With several quantile levels, a column for each, rising from left to right.
        std : ndarray of the same shape
            If ``return_std``: the root of σ² + s²(x), in units of y. σ² is the mean squared
            out-of-fold residual of the training rows (or that of ``X_val``), s²(x) the variance
            between the members' predictions: larger where the members, each of which has missed
            other rows, disagree. σ² holds the members' own errors on average, so that the sum
            errs on the large side.
        """
        if not return_std:
            return super().predict(X)
        calibration, X = residuals_of(self, "return_std"), self._checked(X)
        prediction = self._predictions(self.network_.raw(X))
        between = np.vstack([predictions.var(axis=1) for _, predictions in members(self, X)])
        std = self._target_scale.scale * np.sqrt(variance(calibration) + between)
        return prediction, std[:, 0] if self._y_is_1d else std

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Intervals that hold the target of a share ``coverage`` of new rows, for an ensemble.

        By CV+ (Barber, Candès, Ramdas and Tibshirani, 2021) from the residuals of every member on
        the rows it held out; where ``fit`` was given ``X_val``, by split conformal prediction from
        those rows. If training and new rows are exchangeable, CV+ covers 2·coverage − 1 at the
        very least, and in practice about ``coverage``. That is a mean over rows: nothing is
        promised for some of them. Intervals are wider where members disagree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        coverage : float, default=0.9
            Between 0 and 1, both excluded. Where there are too few rows to tell (fewer than
            1/(1 − coverage) − 1), the intervals are infinite.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, d, 2)
            Lower and upper ends, of each output by itself.
        """
        check_coverage(coverage)
        calibration, X = residuals_of(self, "predict_interval"), self._checked(X)
        blocks = [intervals(calibration, centres, coverage) for _, centres in members(self, X)]
        ends = np.concatenate(blocks)
        ends = ends * self._target_scale.scale + self._target_scale.shift[:, None]
        return ends[:, 0] if self._y_is_1d else ends


class TrustedClassifier(NetworkClassifier):
    """A classifier that names all classes it cannot exclude, if it is an ensemble."""

    def predict_set(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Sets of classes that hold the right one for a share ``coverage`` of new rows.

        Of an ensemble only. A class is left out if the members give it less probability than they
        gave the right classes of all but a share of the rows they held out (cross-conformal
        prediction; with ``X_val`` in ``fit``, split conformal from those rows). Judging classes by
        their probability gives the smallest sets on average (least ambiguous sets; Sadinle, Lei
        and Wasserman, 2019); it promises nothing for each class by itself. The most probable
        class is always in, so that no set is empty, and where it is right more often than
        ``coverage`` so is the set.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        coverage : float, default=0.9
            Between 0 and 1, both excluded. Where there are too few rows to tell, sets hold all
            classes.

        Returns
        -------
        ndarray of bool, of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        check_coverage(coverage)
        calibration, X = calibration_of(self, "predict_set"), self._checked(X)
        sets = []
        for raw, probabilities in members(self, X):
            chosen = conforming(calibration, 1.0 - probabilities, coverage)
            best = np.argmax(self._loss.predict(raw.mean(axis=1)), axis=1)
            chosen[np.arange(len(raw)), best] = True
            sets.append(chosen)
        return np.vstack(sets)


def members(estimator: NetworkEstimator, X: Array) -> Iterator[tuple[Array, Array]]:
    """The members' raw predictions (rows, members, d) and predictions, a block at a time."""
    d = len(estimator.network_.heads[-1].b)
    for rows in row_slices(len(X)):
        phi = estimator.network_.transform(X[rows])
        predictions = estimator._loss.predict(phi.reshape(-1, d))
        m = phi.shape[1] // d
        yield phi.reshape(len(phi), m, d), predictions.reshape(len(phi), m, predictions.shape[1])


def check_coverage(coverage: Any) -> None:
    """Refuse what is not a share."""
    if not (isinstance(coverage, Real) and 0 < cast(float, coverage) < 1):
        raise ValueError(
            "coverage is the share of rows to be covered, a number between 0 and 1, as in 0.9; "
            f"got {coverage!r}."
        )


def residuals_of(estimator: NetworkRegressor, what: str) -> Calibration:
    """The held-out residuals, of a model that predicts one number for each target."""
    if isinstance(getattr(estimator, "_loss", None), Quantiles):
        raise ValueError(
            f"{what} needs one prediction for each target, and this model predicts several "
            "quantile levels, which say how sure it is themselves: use predict(X)."
        )
    return calibration_of(estimator, what)


def calibration_of(estimator: NetworkEstimator, what: str) -> Calibration:
    """The held-out scores, or a ValueError that says why there are none."""
    check_is_fitted(estimator, "network_")
    if estimator._calibration is not None:
        return estimator._calibration
    if is_auto(getattr(estimator, "n_layers", 0)):
        raise ValueError(
            f"{what} needs the errors of an ensemble on held-out rows, which this model does not "
            "have: it was fitted to fewer than 50 rows, or to row blocks of more than 50,000, or "
            "trained since it was fitted, or its file was written before they were kept. Fit it "
            "again to at least 50 rows in memory."
        )
    raise ValueError(
        f"{what} needs the errors on held-out rows, and a single network (n_layers a number) holds "
        "none out. Fit with n_layers='auto'."
    )
