"""What a fit leaves behind: one frozen object that predicts, is saved and is exported.

An estimator has its parameters and, once fitted, one :class:`Fitted`. A fit that fails or is
interrupted leaves the former one in place. :class:`NumberTargets` and :class:`ClassTargets` are the
target codecs, in which regression and classification differ: what the loss sees of y, and what
raw predictions mean to the user. That of several labels per row is derived from the latter
(:mod:`rfrboost._estimators.labels`).
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from rfrboost._auto.conformal import Calibration, HeldOut, calibrate
from rfrboost._auto.fit import AutoFit
from rfrboost._auto.importances import ShuffledRows
from rfrboost._model.losses import Loss
from rfrboost._model.network import Network
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.sizes import LARGEST_INPUT
from rfrboost._tables.encoder import Encoder
from rfrboost._tables.table import (
    UNREADABLE,
    by_name,
    lacking_and_extra,
    unreadable,
    without_arrow,
)
from rfrboost._typing import Array, Indices, Mask

# How far predictions of an automatic fit may leave the range of the training targets, as a share of
# its width. Enough for a trend that continues, too little for an absurd prediction.
BEYOND = 0.25

# The types of numbers that X may have; others become float64.
DTYPES = [np.float64, np.float32]

OTHER_COLUMNS = "so warm_start cannot add layers to it. Set warm_start=False to start afresh."
DATES_IN_Y = "y holds dates: pass numbers, such as days since the first date, or text as classes."


@dataclass(frozen=True)
class TargetScale:
    """y = shift + scale·(what is fitted), shift one number per output.

    ``scale`` holds one number for all outputs (1,), or one for each (k,). One for all commutes with
    losses of raw − y, so that it changes no result; it keeps targets of any size away from
    overflow, and is a power of two, so that multiplying by it rounds nothing. One for each also
    makes outputs of any units count alike in the loss.
    """

    shift: Array
    scale: Array

    @property
    def unit(self) -> float:
        """The unit of the fit in units of y; 1 if each output has its own unit."""
        return float(self.scale[0]) if len(self.scale) == 1 else 1.0

    def shrink(self, y: Array) -> Array:
        """Targets (n, k) in the units of the fit."""
        return (y - self.shift) / self.scale

    def grow(self, raw: Array) -> Array:
        """Predictions (n, k) in the units of y."""
        return raw * self.scale + self.shift


NO_SCALE = TargetScale(frozen(np.zeros(1)), frozen(np.ones(1)))


@dataclass(frozen=True)
class NumberTargets:
    """Regression: numbers y (n, k) in the units of the fit.

    ``one_output`` says that predictions have one axis, as y had; several quantile levels of one
    target have two. ``bounds`` (2, k), in the units of the fit, are the least and the largest
    prediction of every output. A single network has none, nor has a model of an older version.
    """

    scale: TargetScale
    one_output: bool
    bounds: Array | None = None

    def predictions(self, loss: Loss, raw: Array) -> Array:
        """Raw predictions (n, d) as predictions in the units of y."""
        y = self.scale.grow(self.bounded(loss.predict(raw)))
        return y[:, 0] if self.one_output else y

    def bounded(self, y: Array) -> Array:
        """Predictions in the units of the fit, (n, d) or ends of intervals (n, d, 2), clipped.

        Infinite ends stay: they say that nothing is known.
        """
        if self.bounds is None:
            return y
        low, high = self.bounds[:, :, None] if y.ndim > 2 else self.bounds
        return np.where(np.isinf(y), y, np.clip(y, low, high))

    def encode(self, y: Any, n_outputs: int | None = None, name: str = "y") -> Array:
        """Numbers as the loss sees them; refuses another number of outputs, where it is known."""
        Y = check_array(y, dtype=float, ensure_2d=False, input_name=name)
        Y = Y.reshape(len(Y), -1)
        if n_outputs is not None and Y.shape[1] != n_outputs:
            raise ValueError(f"{name} has {Y.shape[1]} outputs, but y has {n_outputs}.")
        return self.scale.shrink(Y)

    def encode_validation(self, y_val: Any, Y: Array) -> Array:
        """The targets of validation rows, with as many outputs as the targets Y of the others."""
        return self.encode(y_val, Y.shape[1], "y_val")

    def as_handed_in(self, Y: Array) -> np.ndarray:
        """Targets (n, k) in the units of the fit as numbers in the units of y."""
        y = self.scale.grow(Y)
        return y[:, 0] if self.one_output else y

    def score(self, loss: Loss, raw: Array, Y: Array, w: Array | None) -> float:
        """What ``score`` says of raw predictions, in the units of the fit: R² as a rule."""
        return loss.score(self.bounded(loss.predict(raw)), Y, w)

    def calibration(self, loss: Loss, held_out: tuple[HeldOut, ...]) -> Calibration | None:
        """Absolute residuals of every member on its held-out rows; None for quantile levels."""
        if loss.several_levels:
            return None
        distances = [np.abs(member.y - loss.predict(member.raw)) for member in held_out]
        return calibrate(distances, [member.w for member in held_out])


@dataclass(frozen=True)
class ClassTargets:
    """Classification: labels as one column of 0 and 1 for two classes, else a column per class."""

    classes: np.ndarray

    @property
    def one_output(self) -> bool:
        """Whether there is one logit per row."""
        return len(self.classes) == 2

    @property
    def n_outputs(self) -> int:
        """The number of logits per row."""
        return 1 if self.one_output else len(self.classes)

    @property
    def scale(self) -> TargetScale:
        """Logits have no unit."""
        return NO_SCALE

    @property
    def bounds(self) -> None:
        """Probabilities need none."""

    def predictions(self, loss: Loss, raw: Array) -> Array:
        """Raw predictions as probabilities (n, classes)."""
        return loss.predict(raw)

    def encode(self, y: Any, name: str = "y") -> Array:
        """Labels as the loss sees them; refuses a label that is not among the classes."""
        labels = column_or_1d(y)
        unknown = np.setdiff1d(labels, self.classes)
        if len(unknown):
            raise ValueError(
                f"{name} holds the class {str(unknown[0])!r}, which is not among the classes of "
                "the fit."
            )
        return class_columns(np.searchsorted(self.classes, labels), len(self.classes))

    @property
    def listed(self) -> np.ndarray:
        """The classes as the estimator's ``classes_``."""
        return self.classes

    def labels(self, probabilities: Array) -> np.ndarray:
        """The most probable class of every row."""
        labels: np.ndarray = self.classes[np.argmax(probabilities, axis=1)]
        return labels

    def as_handed_in(self, Y: Array) -> np.ndarray:
        """Targets as the loss sees them as labels."""
        labels: np.ndarray = self.classes[self._codes(Y)]
        return labels

    def _codes(self, Y: Array) -> np.ndarray:
        """The place of every row's class among the classes."""
        codes: np.ndarray = Y[:, 0].astype(np.intp) if self.one_output else np.argmax(Y, axis=1)
        return codes

    def encode_validation(self, y_val: Any, Y: Array) -> Array:
        """The labels of validation rows, all classes among them."""
        found = self.encode(y_val, "y_val")
        missing = np.setdiff1d(self.classes, y_val)
        if len(missing):
            raise ValueError(
                f"y_val must contain every class of y; {str(missing[0])!r} is missing. How much "
                "each class counts is weighed by these rows."
            )
        return found

    def score(self, loss: Loss, raw: Array, Y: Array, w: Array | None) -> float:
        """Accuracy."""
        predicted = np.argmax(loss.predict(raw), axis=1)
        return float(accuracy_score(self._codes(Y), predicted, sample_weight=w))

    def calibration(self, loss: Loss, held_out: tuple[HeldOut, ...]) -> Calibration | None:
        """The probability that every member did not give to the right class of held-out rows."""
        scores = []
        for member in held_out:
            right = np.hstack([1 - member.y, member.y]) if self.one_output else member.y
            scores.append(1.0 - np.sum(right * loss.predict(member.raw), axis=1, keepdims=True))
        return calibrate(scores, [member.w for member in held_out])


Targets = NumberTargets | ClassTargets


def class_columns(codes: np.ndarray, n_classes: int) -> Array:
    """Numbers of classes (n,) as the log loss sees them: (n, 1) for two classes, else one-hot."""
    return codes[:, None].astype(float) if n_classes == 2 else np.eye(n_classes)[codes]


@dataclass(frozen=True)
class Inputs:
    """The columns of X that a model was fitted on: their number, names, and how to encode them."""

    n_columns: int
    names: np.ndarray | None
    encoder: Encoder | None

    def read(self, estimator: Any, X: Any) -> Array:
        """X at prediction as the array (n, D) that the network was fitted on."""
        try:
            return self._checked(estimator, self.matched(X))
        except UNREADABLE as error:
            raise unreadable("X") from error
        except ValueError as error:
            advise(error)
            raise

    def matched(self, X: Any) -> Any:
        """The columns of the fit, found by name in a data frame, in the order of the fit."""
        return by_name(as_frame(X), self.names)

    def check_same(self, other: "Inputs") -> None:
        """Refuse columns that layers cannot be added on, because they are not those of the fit."""
        if self.names is not None and other.names is not None:
            lacking, _ = lacking_and_extra(self.names, other.names)
            if lacking:
                what = f"The column {lacking[0]!r} of the last fit is missing in X"
                raise ValueError(f"{what}, {OTHER_COLUMNS}")
        if other.n_columns != self.n_columns:
            what = f"X has {other.n_columns} features but the last fit had {self.n_columns}"
            raise ValueError(f"{what}, {OTHER_COLUMNS}")

    def _checked(self, estimator: Any, X: Any) -> Array:
        """X of a kind that can be read, as the network's array."""
        if self.encoder is None:
            array: Array = validate_data(estimator, X, dtype=DTYPES, reset=False)
            check_columns(array, self.names)
            return array
        if self._plain(X):
            return self.encoder(X)
        if is_table(X):
            if not self._has_names_of_fit(X):
                validate_data(estimator, X, reset=False, skip_check_array=True)
            return self.encoder(X)
        return self.encoder(
            validate_data(
                estimator, X, dtype=DTYPES, accept_sparse=True, ensure_all_finite=False, reset=False
            )
        )

    def _plain(self, X: Any) -> bool:
        """Whether X is an array of floats with the columns of fit.

        The encoder takes any such array, and scikit-learn's checks take longer than a prediction
        of one row should.
        """
        return (
            type(X) is np.ndarray
            and X.dtype in DTYPES
            and X.ndim == 2
            and len(X) > 0
            and X.shape[1] == self.n_columns
            and self.names is None
        )

    def _has_names_of_fit(self, X: Any) -> bool:
        """Whether X is a data frame with the columns of fit, which scikit-learn need not check."""
        names = self.names
        return names is not None and hasattr(X, "columns") and list(X.columns) == list(names)

    def sources(self, width: int) -> Indices:
        """For every column that the network sees, the number of the column it was made of."""
        if self.encoder is None:
            return np.arange(width)
        return np.array(self.encoder.sources, np.intp)


def check_columns(X: Array, names: np.ndarray | None) -> None:
    """Refuse an array with columns so large that squared distances overflow."""
    check_extent(np.maximum(X.max(axis=0), -X.min(axis=0)).astype(float), names)


def check_extent(largest: Array, names: np.ndarray | None) -> None:
    """Refuse columns so large that squared distances overflow, by their largest absolute values."""
    if (largest > LARGEST_INPUT).any():
        j = int(np.argmax(largest))
        raise ValueError(
            f"Column {j if names is None else repr(names[j])} of X holds values as large as "
            f"{largest[j]:.3g}; beyond {LARGEST_INPUT:g} distances between rows overflow. "
            "Rescale it, for example with sklearn.preprocessing.StandardScaler."
        )


def as_frame(X: Any) -> Any:
    """A table of Arrow as a data frame of pandas; anything else with rows and columns as it is.

    Objects without rows and columns, such as a dict of columns, are refused.
    """
    if X is None or has_no_rows(X):
        raise ValueError(
            f"X is a {type(X).__name__}, which has no rows and columns: pass an array or a data "
            "frame, for example pandas.DataFrame(X)."
        )
    return X if isinstance(X, np.ndarray) else without_arrow(X)


def has_no_rows(values: Any) -> bool:
    """Whether it is a dict, a set or one text. One of SciPy's sparse formats is a dict too."""
    return isinstance(values, Mapping | Set | str | bytes) and not sparse.issparse(values)


def advise(error: TypeError | ValueError, y: Any = None) -> None:
    """Say what to do where scikit-learn's error is about missing values in X or dates in y."""
    if isinstance(error, TypeError):
        check_dates(y, error)
    first, _, advice = str(error).partition("\n")
    if "missing values" in advice:
        raise ValueError(
            f"{first} This model takes finite numbers only: fill missing values first, for example "
            "with sklearn.impute.SimpleImputer, or leave n_layers and preprocess at their "
            "defaults, which take tables with missing values."
        ) from None


def check_dates(y: Any, error: TypeError) -> None:
    """Refuse dates in y, which scikit-learn refuses with this error, and say what to do."""
    if any(isinstance(value, date) for value in np.ravel(np.asarray(y, dtype=object))):
        raise ValueError(DATES_IN_Y) from error


def is_table(X: Any) -> bool:
    """Whether X is a data frame, or holds anything but numbers.

    Such a table is refused if it has no rows or columns, or other than two axes.
    """
    if sparse.issparse(X):
        return False
    if not hasattr(X, "columns"):
        try:
            if np.asarray(X).dtype.kind in "biufc":
                return False
        except (TypeError, ValueError):
            # Rows of different lengths and the like: scikit-learn says what is wrong with them.
            return False
    shape = np.shape(X)
    if len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(shape)}D array instead. Reshape your data either using "
            "array.reshape(-1, 1) if it has one column or array.reshape(1, -1) if it has one row."
        )
    if 0 in shape:
        what = "sample(s)" if shape[0] == 0 else "feature(s)"
        raise ValueError(
            f"Found array with 0 {what} (shape={shape}) while a minimum of 1 is required."
        )
    return True


@dataclass(frozen=True)
class Compression:
    """What ``compress`` kept of a model, and by how much the error grows.

    ``features`` is the number of neurons, radial features and trees that were kept of
    ``features_before``. ``error`` is that of the smaller model, ``error_before`` that of the whole
    model, by the ``metric``: RMSE in units of y (of several outputs in standard deviations), "log
    loss", or the model's own "loss". ``measured`` is true if errors were measured on validation
    rows; otherwise both are estimates.
    """

    features: int
    features_before: int
    metric: str
    error_before: float
    error: float
    measured: bool

    @property
    def cost(self) -> float:
        """The share by which the error has grown."""
        return self.error / self.error_before - 1.0 if self.error_before > 0 else 0.0


@dataclass(frozen=True)
class Fitted:
    """A fitted model, and what its fit found out about it.

    ``history`` has a record per layer. The others exist for the ensemble only: held-out scores
    for intervals and sets, shares of the columns or rows to compute them from, out-of-fold
    predictions and their score; for a model that was trained on in PyTorch, the held-out loss of
    every epoch; and for a compressed one the record of its compression.
    """

    network: Network
    loss: Loss
    targets: Targets
    inputs: Inputs
    history: list[dict[str, float]]
    seed: int
    calibration: Calibration | None = None
    shares: Array | None = None
    shuffled: ShuffledRows | None = None
    oof_prediction: Array | None = None
    oof_score: float | None = None
    fine_tuning: list[float] | None = None
    compression: Compression | None = None

    @cached_property
    def importances(self) -> Array | None:
        """The shares of the columns, if they are known or can be computed."""
        if self.shuffled is None:
            return self.shares
        return self.shuffled.shares(self.network, self.loss.predict, self.inputs.n_columns)

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle holds: the shares of the columns in place of rows to compute them from."""
        return {**vars(self), "shares": self.importances, "shuffled": None}

    @property
    def width(self) -> int:
        """The width of the learned representation Φ."""
        return len(self.network.heads[-1].W)

    @property
    def n_outputs(self) -> int:
        """The number of raw predictions per row."""
        return len(self.network.heads[-1].b)


def fitted_ensemble(
    fit: AutoFit,
    loss: Loss,
    targets: Targets,
    inputs: Inputs,
    history: list[dict[str, float]],
    seed: int,
    Y: Array,
    w: Array | None,
    present: Mask,
) -> Fitted:
    """The fitted state of an ensemble, with what its held-out rows say about it.

    ``Y`` (m, k) and ``w`` (m,) are targets and weights of the rows fitted, in the units of the fit;
    ``present`` says which of all rows they are.
    """
    fitted = Fitted(
        network=fit.network,
        loss=loss,
        targets=targets,
        inputs=inputs,
        history=history,
        seed=seed,
        calibration=targets.calibration(loss, fit.held_out),
    )
    raw = fit.out_of_fold
    if raw is None:
        return fitted
    known = np.isfinite(raw).all(axis=1)
    weights = None if w is None else w[known]
    return replace(
        fitted,
        oof_prediction=targets.predictions(loss, at_rows(raw, present)),
        # In the units of the fit, where squares of targets of any size are finite.
        oof_score=targets.score(loss, raw[known], Y[known], weights),
    )


def at_rows(values: Array, present: Mask) -> Array:
    """Values (m, d) of the rows that are present, at their places among all; NaN elsewhere."""
    everywhere = np.full((len(present), values.shape[1]), np.nan)
    everywhere[present] = values
    return everywhere
