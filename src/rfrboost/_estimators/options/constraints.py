"""Which values the parameters of estimators may have, in scikit-learn's form.

``fit`` checks them one by one before anything else; what clashes is refused later, in
:mod:`rfrboost._estimators.parameters`.
"""

from numbers import Integral, Real
from os import PathLike
from typing import Any

from sklearn.metrics import get_scorer_names
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from rfrboost._model.features import CHOICES
from rfrboost._model.loss import Loss
from rfrboost._model.losses import loss_names
from rfrboost._tables.fit import FROM_DTYPE

# Upper ends far beyond use, so that products with them stay finite.
NONNEGATIVE = Interval(Real, 0, 1e100, closed="both")
POSITIVE = Interval(Real, 0, 1e30, closed="right")
WIDTH = Interval(Integral, 1, None, closed="left")
AUTO = StrOptions({"auto"})
NAMED_FEATURES = StrOptions({"swim", "sparse", "gaussian", "uniform", "fourier"})
LOSSES = StrOptions(loss_names())


class LossObject(HasMethods):
    """An object of the class Loss, which errors call by the name that users import."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether it is a loss."""
        return isinstance(val, Loss)

    def __str__(self) -> str:
        return "an instance of 'rfrboost.Loss'"


FEATURE_CONSTRAINTS: dict[str, list[Any]] = {
    "features": [
        NAMED_FEATURES,
        HasMethods(["sample", "n_rows"]),
        HasMethods(["fit", "transform"]),
    ],
    "feature_scale": [POSITIVE],
    "pair_sampling": [StrOptions({"gradient", "uniform"})],
    "activation": [StrOptions(CHOICES)],
}

CLASS_CONSTRAINTS: dict[str, list[Any]] = {
    "class_weight": [dict, StrOptions({"balanced"}), None],
}

REGRESSION_CONSTRAINTS: dict[str, list[Any]] = {
    "loss": [LOSSES, LossObject("value")],
    "quantile": [Interval(Real, 0, 1, closed="neither"), "array-like"],
}

BOOST_CONSTRAINTS: dict[str, list[Any]] = {
    **FEATURE_CONSTRAINTS,
    "features": [*FEATURE_CONSTRAINTS["features"], AUTO, tuple],
    "feature_scale": [POSITIVE, AUTO],
    "n_layers": [Interval(Integral, 0, None, closed="left"), AUTO],
    "n_features": [WIDTH, tuple, AUTO],
    "initial": [StrOptions({"identity", "swim", "gaussian", "uniform"})],
    "initial_scale": [POSITIVE, None],
    "hidden_dim": [WIDTH, None],
    "learning_rate": [POSITIVE, tuple, AUTO],
    "l2_head": [NONNEGATIVE, AUTO],
    "l2_step": [NONNEGATIVE, AUTO],
    "normalize": ["boolean"],
    "metric": [StrOptions({"identity", "agop", "auto"})],
    "preprocess": [AUTO, None],
    "categorical_features": [StrOptions({FROM_DTYPE}), "array-like"],
    "n_bags": [Interval(Integral, 1, 100, closed="both")],
    "max_seconds": [POSITIVE, None],
    "snapshot": [str, PathLike, None],
    "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    "sample_splitting": ["boolean"],
    "random_state": ["random_state"],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    "callbacks": [list, tuple, None],
}
