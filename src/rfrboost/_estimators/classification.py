"""What classifiers share: labels in, probabilities and labels out, and no mathematics."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import column_or_1d

from rfrboost._auto.conformal import Calibration, HeldOut, calibrate
from rfrboost._blocks.open import check_blocks, is_blocks, open_blocks, set_classes
from rfrboost._blocks.reader import ClassBlockArrays
from rfrboost._blocks.row_blocks import RowBlocks
from rfrboost._estimators.base import NetworkEstimator
from rfrboost._estimators.checks import Data, check_validation_pair
from rfrboost._estimators.inputs import read_again
from rfrboost._estimators.large import Gathered, source_of
from rfrboost._files.estimators import CLASSIFIER
from rfrboost._model.losses import BinaryLogLoss, Loss, SoftmaxLogLoss
from rfrboost._model.network import Network
from rfrboost._rows.chunks import Chunks
from rfrboost._rows.units import at_rows, coded, present_rows, weighted_rows
from rfrboost._typing import Array


def shortfalls(loss: Loss, held_out: tuple[HeldOut, ...]) -> Calibration:
    """How much probability every member did not give to the right class of rows it held out."""
    scores = []
    for member in held_out:
        right = member.y if member.y.shape[1] > 1 else np.hstack([1 - member.y, member.y])
        scores.append(1.0 - np.sum(right * loss.predict(member.raw), axis=1, keepdims=True))
    return calibrate(scores, [member.w for member in held_out])


class NetworkClassifier(ClassifierMixin, NetworkEstimator):
    """Classification on top of a network: one logit for two classes, softmax for more."""

    _fitted_state = CLASSIFIER
    classes_: np.ndarray
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
        y : array-like of shape (n_samples,)
            Class labels of any type.
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
        X, y, w = self._read(X, y, sample_weight, "classification")
        kept, n_rows = present_rows(w, len(y)), len(y)
        X, y, w = weighted_rows(X, y, w)
        classes, codes = np.unique(y, return_inverse=True)
        loss = self._loss_for(classes)
        Y = coded(codes, len(classes))
        fitted = self._with_these(classes, self._fitted_before(X.shape[1], Y.shape[1]))
        data = Data(X, Y, w, self._validation(X_val, y_val, classes))
        fit = self._fit_network(data, loss, 1.0, fitted)
        self.classes_ = classes
        if fit is not None:
            self._calibration = shortfalls(loss, fit.held_out)
        if fit is not None and fit.out_of_fold is not None:
            self.oof_prediction_ = loss.predict(at_rows(fit.out_of_fold, kept, n_rows))
            known = np.isfinite(fit.out_of_fold).all(axis=1)
            weights = None if w is None else w[known]
            labels = self._labels(loss.predict(fit.out_of_fold[known]))
            self.oof_score_ = float(accuracy_score(y[known], labels, sample_weight=weights))
        return self

    def _fit_blocks(self, blocks: RowBlocks) -> Self:
        """Fit rows that are read block by block."""
        source = source_of(self, blocks, ClassBlockArrays, "classification")
        if isinstance(source, Gathered):
            return self.fit(source.X, source.y, source.w)
        with open_blocks(source, self._sizes) as chunks:
            self._fit_opened(chunks, source)
        return self

    def _fit_opened(self, chunks: Chunks, source: ClassBlockArrays) -> None:
        classes = set_classes(chunks, source)
        loss, facts = self._loss_for(classes), chunks.facts
        fitted = self._fitted_before(len(facts.x_low), len(facts.y_low))
        self._fit_single(chunks, loss, 1.0, self._with_these(classes, fitted), source.held)
        self.classes_ = classes
        self._describe(source)

    def _loss_for(self, classes: np.ndarray) -> Loss:
        """The loss that tells these classes apart."""
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes to tell apart, but y holds one "
                f"class only, {str(classes[0])!r} (rows of weight zero do not count)."
            )
        return BinaryLogLoss() if len(classes) == 2 else SoftmaxLogLoss()

    def _with_these(self, classes: np.ndarray, fitted: Network | None) -> Network | None:
        """The network to go on from, if it is one of the same classes."""
        if fitted is not None and not np.array_equal(classes, self.classes_):
            raise ValueError(
                "y holds other classes than in the last fit, so warm_start cannot go on from it. "
                "Set warm_start=False to start afresh."
            )
        return fitted

    def _validation(
        self, X_val: Any, y_val: Any, classes: np.ndarray
    ) -> tuple[Array, Array] | None:
        """The rows to stop by, if any, with their labels coded as in the fit."""
        if not check_validation_pair(X_val, y_val):
            return None
        X_val = read_again(self, X_val, self._encoder)
        y_val = column_or_1d(y_val)
        unknown = np.setdiff1d(y_val, classes)
        if len(unknown):
            raise ValueError(f"y_val holds the class {str(unknown[0])!r}, which y does not.")
        missing = np.setdiff1d(classes, y_val)
        if len(missing):
            raise ValueError(
                f"y_val has no row of the class {str(missing[0])!r}, which would unlearn it: how "
                "much each class counts is weighed by these rows. Draw them from all classes."
            )
        return X_val, coded(np.searchsorted(classes, y_val), len(classes))

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
