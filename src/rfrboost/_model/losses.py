"""The losses of the library: values, gradients, and what files, ONNX and PyTorch need of each.

Formulas and gradients follow the paper's appendices on losses; the pinball loss is rounded at its
kink, as :class:`Quantile` explains. Arrays are (n, d), as :mod:`rfrboost._model.loss` says.

To add a loss to the library, derive from :class:`~rfrboost._model.loss.BuiltInLoss` and add the
class to :data:`BUILT_IN`, the last line of this module: the parameter ``loss``, model files, ONNX
and PyTorch take what they need from there. For a single project, derive from
:class:`~rfrboost._model.loss.Loss` instead.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeGuard

import numpy as np
from scipy.special import expit, xlogy

from rfrboost._model.loss import LARGEST_EXPONENT, BuiltInLoss, Link, StoredFields
from rfrboost._model.loss import Loss as Loss
from rfrboost._numerics.arrays import frozen
from rfrboost._typing import Array

# The least share of a class for which a starting point is computed: keeps its logarithm finite.
RAREST = 1e-12

# Huber's δ in robust standard deviations of y: the usual compromise, which is 95 % as efficient as
# the mean where errors are normal.
HUBER_SPREADS = 1.345


def row_sums(values: Array) -> Array:
    """The sum over the outputs of every row."""
    sums: Array = np.sum(values, axis=1)
    return sums


def weighted_mean(y: Array, w: Array) -> Array:
    """The mean of every column."""
    mean: Array = w @ y / w.sum()
    return mean


def weighted_quantile(y: Array, w: Array, level: float | Array) -> Array:
    """The ``level`` quantile of every column; one level for all columns, or one for each.

    Sums of weights that differ by rounding alone count as equal, so that the size of the weights
    does not decide between two values.
    """
    order = np.argsort(y, axis=0)
    cumulative = np.cumsum(w[order], axis=0)
    least = level * cumulative[-1] * (1 - len(w) * np.finfo(float).eps)
    position = np.argmax(cumulative >= least, axis=0)
    quantile: Array = np.take_along_axis(y, np.take_along_axis(order, position[None], 0), 0)[0]
    return quantile


def robust_spread(y: Array, w: Array) -> Array:
    """1.4826 × the median absolute deviation of every column, a robust standard deviation.

    Where more than half of the targets are equal that is 0, and the root mean square of the
    distances from the median stands in for it.
    """
    distance = np.abs(y - weighted_quantile(y, w, 0.5))
    mad = 1.4826 * weighted_quantile(distance, w, 0.5)
    largest = distance.max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    deviation = unit * np.sqrt(weighted_mean((distance / unit) ** 2, w))
    return np.maximum(np.where(mad > 1e-9 * largest, mad, deviation), 1e-9)


@dataclass(frozen=True)
class SquaredError(BuiltInLoss):
    """½‖raw − y‖² (Appendix "Mean Squared Error Loss")."""

    tag = "SquaredError"
    name = "squared_error"
    starts_at_mean = True
    quadratic = True
    least_squares = True
    degree = 2

    def value(self, raw: Array, y: Array) -> Array:
        return 0.5 * row_sums((raw - y) ** 2)

    def gradient(self, raw: Array, y: Array) -> Array:
        return raw - y

    def value_and_gradient(self, raw: Array, y: Array) -> tuple[Array, Array]:
        r = raw - y
        return 0.5 * row_sums(r**2), r

    def slope_and_curvature(self, raw: Array, y: Array, move: Array) -> tuple[Array, Array]:
        return row_sums((raw - y) * move), row_sums(move**2)

    def curvatures(self, gradient: Array, y: Array) -> Array:
        return np.ones_like(gradient)

    def start(self, y: Array, w: Array) -> Array:
        return weighted_mean(y, w)

    def torch_value(self, torch: Any, raw: Any, y: Any) -> Any:
        return 0.5 * (raw - y) ** 2


@dataclass(frozen=True)
class Huber(BuiltInLoss):
    """½r² for |r| ≤ δ, δ(|r| − ½δ) beyond: squared error that outliers cannot dominate.

    ``delta`` is in units of y: one number, or one per output. For ``loss="huber"`` it is 1.345
    robust standard deviations of y.
    """

    delta: float | Array = 1.0
    tag = "Huber"
    name = "huber"
    stored: ClassVar[StoredFields] = {"delta": "scale"}
    least_squares = True
    degree = 2

    def in_units(self, scale: float | Array) -> "Huber":
        return Huber(self.delta / scale)

    def fitted_to(self, y: Array, w: Array, rounding: float) -> "Huber":
        return Huber(HUBER_SPREADS * robust_spread(y, w))

    def accepts(self, n_outputs: int) -> bool:
        return np.size(self.delta) in (1, n_outputs)

    def value(self, raw: Array, y: Array) -> Array:
        r = np.abs(raw - y)
        inside = np.minimum(r, self.delta)
        return row_sums(inside * (r - 0.5 * inside))

    def gradient(self, raw: Array, y: Array) -> Array:
        return np.clip(raw - y, -self.delta, self.delta)

    def slope_and_curvature(self, raw: Array, y: Array, move: Array) -> tuple[Array, Array]:
        inside = np.abs(raw - y) <= self.delta
        return row_sums(self.gradient(raw, y) * move), row_sums(inside * move**2)

    def start(self, y: Array, w: Array) -> Array:
        return weighted_quantile(y, w, 0.5)

    def torch_value(self, torch: Any, raw: Any, y: Any) -> Any:
        r = (raw - y).abs()
        inside = torch.minimum(r, torch.as_tensor(self.delta, dtype=r.dtype, device=r.device))
        return inside * (r - 0.5 * inside)


@dataclass(frozen=True)
class Quantile(BuiltInLoss):
    """The pinball loss at ``level``, its kink rounded over |r| ≤ ``smoothing``.

    With r = y − raw the slope −level + ½(1 − r/h), held to [−level, 1 − level], rises linearly
    across the kink instead of jumping, so that second-order solvers see a curvature.
    ``smoothing`` is h, in units of y: one number, or one per output. For ``loss="quantile"`` it is
    a small part of the spread of y in a single network, whose head is solved for, and a large part
    in an ensemble, whose layers follow the slope: beyond the kink the slope is constant and says
    little. The rounding moves predictions of an ensemble, and ``shift`` moves them back.
    """

    level: float | Array = 0.5
    smoothing: float | Array = 1e-3
    tag = "Quantile"
    name: str | None = "quantile"
    stored: ClassVar[StoredFields] = {"level": "level", "smoothing": "scale"}
    degree = 1

    @classmethod
    def named(cls, quantile: float | Array) -> "Quantile":
        return Quantile(quantile) if np.ndim(quantile) == 0 else Quantiles(quantile)

    def in_units(self, scale: float | Array) -> "Quantile":
        return Quantile(self.level, self.smoothing / scale)

    def fitted_to(self, y: Array, w: Array, rounding: float) -> "Quantile":
        return replace(self, smoothing=rounding * robust_spread(y, w))

    def accepts(self, n_outputs: int) -> bool:
        return np.size(self.smoothing) in (1, n_outputs)

    def value(self, raw: Array, y: Array) -> Array:
        r = y - raw
        h = self.smoothing
        inside = np.minimum(np.abs(r), h)
        # ½|r| outside, and inside a parabola that meets it at ±h.
        rounded = np.abs(r) / 2 + (h - inside) ** 2 / (4 * h)
        return row_sums(rounded + (self.level - 0.5) * r)

    def gradient(self, raw: Array, y: Array) -> Array:
        return 0.5 - self.level - 0.5 * np.clip((y - raw) / self.smoothing, -1, 1)

    def slope_and_curvature(self, raw: Array, y: Array, move: Array) -> tuple[Array, Array]:
        inside = np.abs(y - raw) <= self.smoothing
        slope = row_sums(self.gradient(raw, y) * move)
        return slope, row_sums(inside * move**2 / (2 * self.smoothing))

    def start(self, y: Array, w: Array) -> Array:
        return weighted_quantile(y, w, self.level)

    def shift(self, raw: Array, y: Array, w: Array) -> Array:
        return weighted_quantile(y - raw, w, self.level)

    def torch_value(self, torch: Any, raw: Any, y: Any) -> Any:
        r = y - raw
        h, level = (
            torch.as_tensor(np.asarray(v), dtype=r.dtype, device=r.device)
            for v in (self.smoothing, self.level)
        )
        inside = torch.minimum(r.abs(), h)
        return r.abs() / 2 + (h - inside) ** 2 / (4 * h) + (level - 0.5) * r


@dataclass(frozen=True)
class Quantiles(Quantile):
    """The sum of the pinball losses at rising levels (an array), one raw prediction for each.

    Raw predictions of neighbouring levels may cross, so predictions are the raw ones sorted
    (Chernozhukov, Fernández-Val, Galichon: Quantile and probability curves without crossing, 2010).
    Sorting never raises the sum of the losses, and it leaves the fit convex, which a link that
    orders levels, such as sums of exponentials, would not.
    """

    tag = "Quantiles"
    name = None  # Quantile.named chooses between the two
    stored: ClassVar[StoredFields] = {"level": "levels", "smoothing": "scale"}
    link = "sorted"
    several_levels = True

    def in_units(self, scale: float | Array) -> "Quantiles":
        return Quantiles(self.level, self.smoothing / scale)

    def accepts(self, n_outputs: int) -> bool:
        return np.size(self.level) == n_outputs and np.size(self.smoothing) == 1

    def n_outputs(self, y: Array) -> int:
        return np.size(self.level)

    def start(self, y: Array, w: Array) -> Array:
        return weighted_quantile(np.repeat(y, np.size(self.level), axis=1), w, self.level)

    def check(self, y: Array) -> None:
        if y.shape[1] > 1:
            raise ValueError(
                f"Several quantile levels are predictions of one target, but y has {y.shape[1]} "
                "columns. Fit one model for each column, or give one level."
            )

    def score(self, prediction: Array, y: Array, w: Array | None) -> float:
        """1 − the sum of the pinball losses over that of the best constants; 1 is perfect."""
        w = np.ones(len(y)) if w is None else w
        y = np.asarray(y, dtype=float).reshape(-1, 1)
        constants = np.tile(self.start(y, w), (len(y), 1))
        lost = float(w @ pinball(prediction, y, self.level))
        at_stake = float(w @ pinball(constants, y, self.level))
        if at_stake > 0:
            return 1.0 - lost / at_stake
        return float(lost == 0)


def pinball(prediction: Array, y: Array, level: float | Array) -> Array:
    """The pinball losses of every row, summed over levels."""
    r = y - prediction
    return row_sums(np.maximum(level * r, (level - 1.0) * r))


def checked_levels(levels: object) -> Array:
    """A sequence of levels as an array, or a ValueError if they do not rise within (0, 1)."""
    try:
        array = np.asarray(levels, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    fine = array.ndim == 1 and len(array) > 0 and array.min() > 0 and array.max() < 1
    if not (fine and (np.diff(array) > 0).all()):
        raise ValueError(
            "quantile must be a level between 0 and 1 or a sequence of such levels, each larger "
            f"than the one before, as in (0.05, 0.5, 0.95); got {levels!r}."
        )
    return frozen(array)


@dataclass(frozen=True)
class Poisson(BuiltInLoss):
    """exp(raw) − y·raw + y·log y − y, half the deviance: counts, with a logarithmic link."""

    tag = "Poisson"
    name = "poisson"
    link = "exponential"
    starts_at_mean = True

    def value(self, raw: Array, y: Array) -> Array:
        # Beyond the largest exponent the value follows its tangent.
        beyond = np.maximum(raw - LARGEST_EXPONENT, 0.0)
        least = xlogy(y, y) - y
        return row_sums(self.predict(raw) * (1.0 + beyond) - y * raw + least)

    def gradient(self, raw: Array, y: Array) -> Array:
        return self.predict(raw) - y

    def slope_and_curvature(self, raw: Array, y: Array, move: Array) -> tuple[Array, Array]:
        mean = self.predict(raw)
        return row_sums((mean - y) * move), row_sums(mean * move**2)

    def start(self, y: Array, w: Array) -> Array:
        return np.log(np.maximum(weighted_mean(y, w), 1e-300))

    def check(self, y: Array) -> None:
        if (y < 0).any() or not (y.sum(axis=0) > 0).all():
            raise ValueError(
                "loss='poisson' needs y >= 0 with a positive sum, because it predicts a mean "
                f"count exp(raw); got y from {y.min():g} to {y.max():g}. Use another loss, or "
                "shift or transform y."
            )

    def torch_value(self, torch: Any, raw: Any, y: Any) -> Any:
        return torch.nn.functional.poisson_nll_loss(raw, y, reduction="none")


@dataclass(frozen=True)
class BinaryLogLoss(BuiltInLoss):
    """−log of the probability given to y in {0, 1}, one logit (Appendix "Binary Cross-Entropy")."""

    tag = "BinaryLogLoss"
    for_classes = True
    link: ClassVar[Link] = "sigmoid"
    starts_at_mean = True
    least_squares = True
    enough = 1e-2

    def accepts(self, n_outputs: int) -> bool:
        return n_outputs == 1

    def value(self, raw: Array, y: Array) -> Array:
        return row_sums(np.logaddexp(0.0, raw) - y * raw)

    def gradient(self, raw: Array, y: Array) -> Array:
        p: Array = expit(raw)
        return p - y

    def slope_and_curvature(self, raw: Array, y: Array, move: Array) -> tuple[Array, Array]:
        p = expit(raw)
        return row_sums((p - y) * move), row_sums(p * (1 - p) * move**2)

    def curvatures(self, gradient: Array, y: Array) -> Array:
        p = gradient + y
        return p * (1 - p)

    def start(self, y: Array, w: Array) -> Array:
        p = np.clip(weighted_mean(y, w), RAREST, 1 - RAREST)
        return np.log(p / (1 - p))

    def torch_value(self, torch: Any, raw: Any, y: Any) -> Any:
        functional = torch.nn.functional
        return functional.binary_cross_entropy_with_logits(raw, y, reduction="none")


@dataclass(frozen=True)
class LabelsLogLoss(BinaryLogLoss):
    """The sum of the log losses of several labels, each of which a row has (1) or has not (0).

    There is one logit for each label.
    """

    tag = "LabelsLogLoss"
    link = "sigmoids"
    separate_outputs = True

    def accepts(self, n_outputs: int) -> bool:
        return n_outputs > 1


@dataclass(frozen=True)
class SoftmaxLogLoss(BuiltInLoss):
    """−log softmax_y(raw), y one-hot (Appendix "Categorical Cross-Entropy Loss")."""

    tag = "SoftmaxLogLoss"
    for_classes = True
    link = "softmax"
    starts_at_mean = True
    shift_invariant = True
    least_squares = True
    enough = 1e-2

    def accepts(self, n_outputs: int) -> bool:
        return n_outputs > 1

    def value(self, raw: Array, y: Array) -> Array:
        return self.value_and_gradient(raw, y)[0]

    def gradient(self, raw: Array, y: Array) -> Array:
        return self.value_and_gradient(raw, y)[1]

    def value_and_gradient(self, raw: Array, y: Array) -> tuple[Array, Array]:
        p = raw - raw.max(axis=1, keepdims=True)
        value = -np.einsum("ij,ij->i", y, p)
        np.exp(p, out=p)
        total = p.sum(axis=1, keepdims=True)
        value += np.log(total[:, 0])
        p /= total
        p -= y
        return value, p

    def slope_and_curvature(self, raw: Array, y: Array, move: Array) -> tuple[Array, Array]:
        p = self.gradient(raw, y)
        slope = np.einsum("ij,ij->i", p, move)
        p += y
        mean = np.einsum("ij,ij->i", p, move)
        p *= move
        return slope, np.einsum("ij,ij->i", p, move) - mean**2

    def curvatures(self, gradient: Array, y: Array) -> Array:
        p = gradient + y
        return p * (1 - p)

    def start(self, y: Array, w: Array) -> Array:
        logs: Array = np.log(np.maximum(weighted_mean(y, w), RAREST))
        centred: Array = logs - logs.mean()
        return centred

    def torch_value(self, torch: Any, raw: Any, y: Any) -> Any:
        return -y * torch.log_softmax(raw, dim=1)


def is_built_in(loss: Loss) -> TypeGuard[BuiltInLoss]:
    """Whether a loss is exactly of one of the classes in :data:`BUILT_IN`."""
    return type(loss) in BUILT_IN


def loss_names() -> set[str]:
    """What a user may write as ``loss="…"`` in a regressor."""
    return {loss.name for loss in BUILT_IN if loss.name is not None}


def named_loss(loss: str | Loss, quantile: Any) -> Loss:
    """The loss that a regressor's parameters ``loss`` and ``quantile`` stand for.

    ``quantile`` is one level or a sequence of levels, and a sequence is checked even where the
    loss has no use for it. A loss given by its name does not know its scale yet.
    """
    level = quantile if np.ndim(quantile) == 0 else checked_levels(quantile)
    return built_in(loss).named(level) if isinstance(loss, str) else loss


def log_loss(n_classes: int) -> Loss:
    """The loss of labels, one for each row: one logit for two classes, softmax for more."""
    return BinaryLogLoss() if n_classes == 2 else SoftmaxLogLoss()


def fitted_loss(
    loss: str | Loss, quantile: Any, rounding: float, scale: Array, y: Array, w: Array | None
) -> Loss:
    """The loss for targets y (n, d) that have been divided by ``scale``, (1,) or (d,).

    A loss given by its name takes its own scale from y: Huber's δ, and the width of the pinball
    loss's rounded kink, which is ``rounding`` robust standard deviations.
    """
    if isinstance(loss, Loss):
        return loss.in_units(float(scale[0]) if len(scale) == 1 else scale)
    level = quantile if np.ndim(quantile) == 0 else checked_levels(quantile)
    weights = np.ones(len(y)) if w is None else w
    return built_in(loss).named(level).fitted_to(y, weights, rounding)


def built_in(name: str) -> type[BuiltInLoss]:
    """The class that a name stands for."""
    return next(loss for loss in BUILT_IN if loss.name == name)


#: all losses of the library; a new one is entered here and nowhere else
BUILT_IN: tuple[type[BuiltInLoss], ...] = (
    SquaredError,
    Huber,
    Quantile,
    Quantiles,
    Poisson,
    BinaryLogLoss,
    LabelsLogLoss,
    SoftmaxLogLoss,
)
