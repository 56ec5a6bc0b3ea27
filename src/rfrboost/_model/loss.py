"""What a loss is: :class:`rfrboost.Loss`, for users, and ``BuiltInLoss``.

A raw prediction is Wᵀφ + b, an array (n, d) for n rows and d outputs; a loss l(raw, y) is convex
and differentiable in it. The losses themselves are in :mod:`rfrboost._model.losses`. Here are also
the links, from raw predictions to predictions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import expit, softmax
from sklearn.metrics import r2_score

from rfrboost._typing import Array

# exp() and its square are finite up to this exponent, and exp() of it exceeds any target allowed.
LARGEST_EXPONENT = 160.0


class Loss(ABC):
    """A convex loss, differentiable in its first argument.

    Arrays are (n, d); ``value`` returns one number per row. A loss needs ``value`` and
    ``gradient``; everything else has a default. The estimators read the attributes below
    and never look at the class of a loss.
    """

    #: whether value is ½‖raw − y‖², for which every sub-problem has a closed form
    quadratic: bool = False
    #: whether adding a constant to all outputs of a row changes nothing (softmax)
    shift_invariant: bool = False
    #: whether ``start`` depends on the mean of y alone
    starts_at_mean: bool = False
    #: whether the least squares fit of y is the best raw prediction, up to a scale and a shift
    least_squares: bool = False
    #: whether each output of an ensemble has step lengths and weights of families of its own; the
    #: loss must then be a sum over outputs, whose terms may differ much in scale
    separate_outputs: bool = False
    #: whether the outputs are quantile levels of one target
    several_levels: bool = False
    #: boosting stops when the held-out loss is below this share of a constant prediction's loss
    enough: float = 1e-6
    #: k if the loss depends on raw − y alone and is s^k times as large in units s times as small
    degree: int | None = None

    def in_units(self, scale: float | Array) -> "Loss":
        """The same loss, up to a factor, for targets divided by ``scale``.

        In an automatic fit to several outputs that is an array, one number for each of them.
        """
        return self

    @abstractmethod
    def value(self, raw: Array, y: Array) -> Array:
        """l(raw, y), one value per row."""

    @abstractmethod
    def gradient(self, raw: Array, y: Array) -> Array:
        """∇₁l(raw, y), of the shape of ``raw``."""

    def value_and_gradient(self, raw: Array, y: Array) -> tuple[Array, Array]:
        """Both at once; override it where they share work."""
        return self.value(raw, y), self.gradient(raw, y)

    def slope_and_curvature(self, raw: Array, y: Array, move: Array) -> tuple[Array, Array]:
        """First and second derivative of α ↦ l(raw + α·move, y) at 0, one of each per row.

        The default computes the second from a difference of gradients.
        """
        step = 1e-4 / (np.abs(move).max(initial=0.0) or 1.0)
        slope: Array = np.sum(self.gradient(raw, y) * move, axis=1)
        ahead: Array = np.sum(self.gradient(raw + step * move, y) * move, axis=1)
        return slope, (ahead - slope) / step

    def curvatures(self, gradient: Array, y: Array) -> Array | None:
        """Second derivatives by each output (n, d), where the gradient is this.

        None, the default, stands for a loss whose Newton steps are not safe, because it has
        curvature in few rows only or without bound; its steps are searched for instead.
        """
        return None

    def n_outputs(self, y: Array) -> int:
        """d, the number of raw predictions per row."""
        return int(y.shape[1])

    def start(self, y: Array, w: Array) -> Array:
        """A good constant raw prediction, shape (d,)."""
        return np.zeros(self.n_outputs(y))

    def shift(self, raw: Array, y: Array, w: Array) -> Array:
        """What to add to an ensemble's raw predictions, judged by held-out rows; shape (d,)."""
        return np.zeros(raw.shape[1])

    def predict(self, raw: Array) -> Array:
        """The inverse link: raw predictions to predictions."""
        return raw

    def score(self, prediction: Array, y: Array, w: Array | None) -> float:
        """How good a regressor's predictions are, larger is better: R²."""
        return float(r2_score(y, prediction, sample_weight=w))

    def check(self, y: Array) -> None:  # noqa: B027 (by default all targets are allowed)
        """Raise a ValueError that says what to do if the loss does not allow these targets."""


#: how raw predictions become predictions; NumPy, ONNX and PyTorch each implement every link once
Link = Literal["identity", "exponential", "sigmoid", "sigmoids", "softmax", "sorted"]


def exponential(raw: Array) -> Array:
    """exp(raw), constant beyond the largest exponent."""
    return np.exp(np.minimum(raw, LARGEST_EXPONENT))


def two_probabilities(raw: Array) -> Array:
    """1 − p and p of one logit, (n, 1) to (n, 2)."""
    p = expit(raw)
    return np.hstack([1 - p, p])


LINKS: dict[Link, Callable[[Array], Array]] = {
    "identity": lambda raw: raw,
    "exponential": exponential,
    "sigmoid": two_probabilities,
    "sigmoids": expit,
    "softmax": lambda raw: softmax(raw, axis=1),
    "sorted": lambda raw: np.sort(raw, axis=1),
}


#: the fields of a loss in model files, by the kind of value: "level" (a number between 0 and 1),
#: "levels" (an array of rising levels) or "scale" (a positive number, or one per output)
StoredFields = Mapping[str, Literal["level", "levels", "scale"]]


class BuiltInLoss(Loss):
    """A loss of the library: what model files, ONNX and PyTorch need to know of it.

    Only the classes in :data:`rfrboost._model.losses.BUILT_IN` are saved and exported. A class that
    a user derives from one of them may compute something else, and is refused there like any other
    user's loss.
    """

    #: its name in model files; a tag that files exist with must never change
    tag: str
    #: what a user writes as ``loss="…"``, or None if there is no such name
    name: str | None = None
    #: whether its targets are classes
    for_classes: bool = False
    #: its fields in model files
    stored: ClassVar[StoredFields] = {}
    #: its inverse link
    link: ClassVar[Link] = "identity"

    @classmethod
    def named(cls, quantile: float | Array) -> "BuiltInLoss":
        """The loss that ``name`` stands for, given the estimator's parameter ``quantile``."""
        return cls()

    def fitted_to(self, y: Array, w: Array, rounding: float) -> "BuiltInLoss":
        """The loss with its scale taken from targets (n, d) with weights (n,).

        This is called only for a loss that was given by its name: it has no scale from the user.
        ``rounding`` is the width of a rounded kink in robust standard deviations of y.
        """
        return self

    def accepts(self, n_outputs: int) -> bool:
        """Whether its fields suit a network with ``n_outputs`` outputs."""
        return True

    @abstractmethod
    def torch_value(self, torch: Any, raw: Any, y: Any) -> Any:
        """Its value entry by entry for tensors (n, d), up to a constant.

        The sum of a row's entries is its loss. ``torch`` is the module: this one does not import
        it, because the library runs without PyTorch.
        """

    def predict(self, raw: Array) -> Array:
        return LINKS[self.link](raw)
