"""Losses l(raw, y): value, gradient, link and valid range.

A raw prediction is Wᵀφ + b, an array (n, d). A loss of one's own derives from :class:`Loss`
and defines ``value`` and ``gradient``; the rest has defaults.

Several quantile levels of one target in one fit, in an order that never breaks.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax, xlogy
from sklearn.metrics import r2_score

from rfrboost._numerics.arrays import frozen
from rfrboost._typing import Array

# exp() and its square stay finite up to here, and the largest target there may be is below it.
LARGEST_EXPONENT = 160.0


# The share of a class that weighs next to nothing, as far as a starting point is concerned.
RAREST = 1e-12


class Loss(ABC):
    """A convex loss, differentiable in its first argument.

    Arrays are (n, d); ``value`` returns one number a row. The estimators ask a loss for the
    facts they need instead of asking which loss it is.
    """

    #: whether value is ½‖raw − y‖², for which every sub-problem has a closed form
    quadratic: bool = False
    #: whether a constant added to all of a row's outputs changes nothing (softmax)
    shift_invariant: bool = False
    #: whether ``start`` depends on the mean of y alone
    starts_at_mean: bool = False
    #: whether least squares of y tells what raw should be, up to a scale and a shift
    least_squares: bool = False
    #: whether its outputs are several quantile levels of one target
    several_levels: bool = False
    #: a held-out loss this share of a constant's is as good as none
    enough: float = 1e-6
    #: k if the loss depends on raw − y alone and is s^k times as large in units s times as small
    degree: int | None = None

    def in_units(self, scale: float) -> "Loss":
        """The same loss, up to a factor, for targets divided by ``scale``."""
        return self

    @abstractmethod
    def value(self, raw: Array, y: Array) -> Array:
        """l(raw, y), one value a row."""

    @abstractmethod
    def gradient(self, raw: Array, y: Array) -> Array:
        """∇₁l(raw, y), of the shape of ``raw``."""

    def value_and_gradient(self, raw: Array, y: Array) -> tuple[Array, Array]:
        """Both at once, where they share work."""
        return self.value(raw, y), self.gradient(raw, y)

    def slope_and_curvature(self, raw: Array, y: Array, move: Array) -> tuple[Array, Array]:
        """First and second derivative of α ↦ l(raw + α·move, y) at 0, a row each.

        The default takes the second by a difference of gradients.
        """
        step = 1e-4 / (np.abs(move).max(initial=0.0) or 1.0)
        slope = np.sum(self.gradient(raw, y) * move, axis=1)
        ahead = np.sum(self.gradient(raw + step * move, y) * move, axis=1)
        return slope, (ahead - slope) / step

    def n_outputs(self, y: Array) -> int:
        """d, the number of raw predictions a row."""
        return y.shape[1]

    def start(self, y: Array, w: Array) -> Array:
        """A good constant raw prediction, shape (d,)."""
        return np.zeros(self.n_outputs(y))

    def shift(self, raw: Array, y: Array, w: Array) -> Array:
        """What to add to the raw predictions of an ensemble, given those of held-out rows (d,)."""
        return np.zeros(raw.shape[1])

    def predict(self, raw: Array) -> Array:
        """The inverse link: raw predictions to predictions."""
        return raw

    def score(self, prediction: Array, y: Array, w: Array | None) -> float:
        """How good a regressor's predictions are, larger is better: R²."""
        return float(r2_score(y, prediction, sample_weight=w))

    def check(self, y: Array) -> None:  # noqa: B027 (no range to check is a fine default)
        """Raise a ValueError that says what to do if some y is outside the loss's range."""


def weighted_mean(y: Array, w: Array) -> Array:
    return w @ y / w.sum()


def weighted_quantile(y: Array, w: Array, level: float | Array) -> Array:
    """The ``level`` quantile of every column; one level for all, or one for each."""
    order = np.argsort(y, axis=0)
    cumulative = np.cumsum(w[order], axis=0)
    position = np.argmax(cumulative >= level * cumulative[-1], axis=0)
    return np.take_along_axis(y, np.take_along_axis(order, position[None], 0), 0)[0]


@dataclass(frozen=True)
class SquaredError(Loss):
    """½‖raw − y‖² (Appendix "Mean Squared Error Loss")."""

    starts_at_mean = True
    quadratic = True
    least_squares = True
    degree = 2

    def value(self, raw: Array, y: Array) -> Array:
        return 0.5 * np.sum((raw - y) ** 2, axis=1)

    def gradient(self, raw: Array, y: Array) -> Array:
        return raw - y

    def slope_and_curvature(self, raw: Array, y: Array, move: Array) -> tuple[Array, Array]:
        return np.sum((raw - y) * move, axis=1), np.sum(move**2, axis=1)

    def start(self, y: Array, w: Array) -> Array:
        return weighted_mean(y, w)


@dataclass(frozen=True)
class Huber(Loss):
    """½r² for |r| ≤ δ, δ(|r| − ½δ) beyond: squared error that outliers cannot dominate.

    ``delta`` is in units of y; one number, or one an output.
    """

    delta: float | Array = 1.0
    least_squares = True
    degree = 2

    def in_units(self, scale: float) -> "Huber":
        return Huber(self.delta / scale)

    def value(self, raw: Array, y: Array) -> Array:
        r = np.abs(raw - y)
        inside = np.minimum(r, self.delta)
        return np.sum(inside * (r - 0.5 * inside), axis=1)

    def gradient(self, raw: Array, y: Array) -> Array:
        return np.clip(raw - y, -self.delta, self.delta)

    def slope_and_curvature(self, raw: Array, y: Array, move: Array) -> tuple[Array, Array]:
        inside = np.abs(raw - y) <= self.delta
        return np.sum(self.gradient(raw, y) * move, axis=1), np.sum(inside * move**2, axis=1)

    def start(self, y: Array, w: Array) -> Array:
        return weighted_quantile(y, w, 0.5)


@dataclass(frozen=True)
class Quantile(Loss):
    """The pinball loss at ``level``, its kink rounded over |r| ≤ ``smoothing``.

    With r = y − raw the slope −level + ½(1 − r/h), held to [−level, 1 − level], rises linearly
    across the kink instead of jumping, so that second-order solvers see a curvature.
    ``smoothing`` is in units of y (one number, or one an output). For ``loss="quantile"`` it is a
    small part of the spread of y in a single network, whose head is solved for, and a large one
    in an ensemble, whose layers follow the slope: beyond the kink it says little. What that
    rounding moves is moved back by ``shift``.
    """

    level: float | Array = 0.5
    smoothing: float | Array = 1e-3
    degree = 1

    def in_units(self, scale: float) -> "Quantile":
        return Quantile(self.level, self.smoothing / scale)

    def value(self, raw: Array, y: Array) -> Array:
        r, h = y - raw, self.smoothing
        inside = np.minimum(np.abs(r), h)
        # ½|r| outside, and inside a parabola that meets it at ±h.
        rounded = np.abs(r) / 2 + (h - inside) ** 2 / (4 * h)
        return np.sum(rounded + (self.level - 0.5) * r, axis=1)

    def gradient(self, raw: Array, y: Array) -> Array:
        return 0.5 - self.level - 0.5 * np.clip((y - raw) / self.smoothing, -1, 1)

    def slope_and_curvature(self, raw: Array, y: Array, move: Array) -> tuple[Array, Array]:
        inside = np.abs(y - raw) <= self.smoothing
        slope = np.sum(self.gradient(raw, y) * move, axis=1)
        return slope, np.sum(inside * move**2 / (2 * self.smoothing), axis=1)

    def start(self, y: Array, w: Array) -> Array:
        return weighted_quantile(y, w, self.level)

    def shift(self, raw: Array, y: Array, w: Array) -> Array:
        return weighted_quantile(y - raw, w, self.level)


@dataclass(frozen=True)
class Poisson(Loss):
    """exp(raw) − y·raw + y·log y − y, half the deviance: counts, with a logarithmic link."""

    starts_at_mean = True

    def value(self, raw: Array, y: Array) -> Array:
        # Beyond the largest exponent the value goes on along its tangent.
        beyond = np.maximum(raw - LARGEST_EXPONENT, 0.0)
        least = xlogy(y, y) - y
        return np.sum(self.predict(raw) * (1.0 + beyond) - y * raw + least, axis=1)

    def gradient(self, raw: Array, y: Array) -> Array:
        return self.predict(raw) - y

    def slope_and_curvature(self, raw: Array, y: Array, move: Array) -> tuple[Array, Array]:
        mean = self.predict(raw)
        return np.sum((mean - y) * move, axis=1), np.sum(mean * move**2, axis=1)

    def start(self, y: Array, w: Array) -> Array:
        return np.log(np.maximum(weighted_mean(y, w), 1e-300))

    def predict(self, raw: Array) -> Array:
        return np.exp(np.minimum(raw, LARGEST_EXPONENT))

    def check(self, y: Array) -> None:
        if (y < 0).any() or not (y.sum(axis=0) > 0).all():
            raise ValueError(
                "loss='poisson' needs y >= 0 with a positive sum, because it predicts a mean "
                f"count exp(raw); got y from {y.min():g} to {y.max():g}. Use another loss, or "
                "shift or transform y."
            )


@dataclass(frozen=True)
class BinaryLogLoss(Loss):
    """−log of the probability given to y in {0, 1}, one logit (Appendix "Binary Cross-Entropy")."""

    starts_at_mean = True
    least_squares = True
    enough = 1e-2

    def value(self, raw: Array, y: Array) -> Array:
        return np.sum(np.logaddexp(0.0, raw) - y * raw, axis=1)

    def gradient(self, raw: Array, y: Array) -> Array:
        return expit(raw) - y

    def slope_and_curvature(self, raw: Array, y: Array, move: Array) -> tuple[Array, Array]:
        p = expit(raw)
        return np.sum((p - y) * move, axis=1), np.sum(p * (1 - p) * move**2, axis=1)

    def start(self, y: Array, w: Array) -> Array:
        p = np.clip(weighted_mean(y, w), RAREST, 1 - RAREST)
        return np.log(p / (1 - p))

    def predict(self, raw: Array) -> Array:
        p = expit(raw)
        return np.hstack([1 - p, p])


@dataclass(frozen=True)
class SoftmaxLogLoss(Loss):
    """−log softmax_y(raw), y one-hot (Appendix "Categorical Cross-Entropy Loss")."""

    starts_at_mean = True
    shift_invariant = True
    least_squares = True
    enough = 1e-2

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

    def start(self, y: Array, w: Array) -> Array:
        logs = np.log(np.maximum(weighted_mean(y, w), RAREST))
        return logs - logs.mean()

    def predict(self, raw: Array) -> Array:
        return softmax(raw, axis=1)


@dataclass(frozen=True)
class Quantiles(Quantile):
    """The sum of the pinball losses at rising levels (an array), one raw prediction for each.

    Raw predictions of neighbouring levels may cross, so predictions are raw ones sorted
    (Chernozhukov, Fernández-Val, Galichon: Quantile and probability curves without crossing, 2010).
    Sorting never raises the sum of the losses, and it leaves the fit convex, which a link that
    orders levels, such as sums of exponentials, would not.
    """

    several_levels = True

    def in_units(self, scale: float) -> "Quantiles":
        return Quantiles(self.level, self.smoothing / scale)

    def n_outputs(self, y: Array) -> int:
        return np.size(self.level)

    def start(self, y: Array, w: Array) -> Array:
        return weighted_quantile(np.repeat(y, np.size(self.level), axis=1), w, self.level)

    def predict(self, raw: Array) -> Array:
        return np.sort(raw, axis=1)

    def check(self, y: Array) -> None:
        if y.shape[1] > 1:
            raise ValueError(
                f"Several quantile levels are predictions of one target, but y has {y.shape[1]} "
                "columns. Fit one model for each, or give one level."
            )

    def score(self, prediction: Array, y: Array, w: Array | None) -> float:
        """1 − the pinball losses' sum over that of the best constants; 1 is perfect."""
        w = np.ones(len(y)) if w is None else w
        y = np.asarray(y, dtype=float).reshape(-1, 1)
        constants = np.tile(self.start(y, w), (len(y), 1))
        lost, at_stake = (float(w @ pinball(p, y, self.level)) for p in (prediction, constants))
        if at_stake > 0:
            return 1.0 - lost / at_stake
        return float(lost == 0)


def pinball(prediction: Array, y: Array, level: float | Array) -> Array:
    """The pinball losses of every row, summed over levels."""
    r = y - prediction
    return np.sum(np.maximum(level * r, (level - 1.0) * r), axis=1)


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
