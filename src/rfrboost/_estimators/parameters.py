"""The parameters of all estimators: their legal values, and all of them as one object."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from rfrboost._model.features import CHOICES
from rfrboost._model.losses import Loss

# Upper ends far beyond use, so that products with them stay finite.
NONNEGATIVE = Interval(Real, 0, 1e100, closed="both")
POSITIVE = Interval(Real, 0, 1e30, closed="right")
WIDTH = Interval(Integral, 1, None, closed="left")
AUTO = StrOptions({"auto"})
NAMED_FEATURES = StrOptions({"swim", "sparse", "gaussian", "uniform", "fourier"})
LOSSES = StrOptions({"squared_error", "huber", "quantile", "poisson"})

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

REGRESSION_CONSTRAINTS: dict[str, list[Any]] = {
    "loss": [LOSSES, Loss],
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
    "n_bags": [Interval(Integral, 1, 100, closed="both")],
    "max_seconds": [POSITIVE, None],
    "sample_splitting": ["boolean"],
    "random_state": ["random_state"],
    "warm_start": ["boolean"],
    "verbose": ["verbose"],
}


@dataclass(frozen=True)
class Parameters:
    """All parameters that a fit may have; an estimator that lacks one has the value given here.

    They are documented in :class:`~rfrboost.RFRBoostRegressor`.
    """

    n_layers: int | str = "auto"
    strategy: str = "gradient"
    step_matrix: str = "dense"
    loss: str | Loss = "squared_error"
    quantile: Any = 0.5
    features: Any = "auto"
    n_features: Any = "auto"
    feature_scale: Any = "auto"
    pair_sampling: str = "gradient"
    activation: str = "tanh"
    initial: Any = "identity"
    initial_scale: float | None = None
    hidden_dim: int | None = None
    learning_rate: Any = "auto"
    l2_head: Any = "auto"
    l2_step: Any = "auto"
    normalize: bool = False
    metric: str = "auto"
    preprocess: str | None = "auto"
    n_bags: int = 5
    max_seconds: float | None = None
    sample_splitting: bool = False
    random_state: Any = None
    warm_start: bool = False
    verbose: int = 0

    @property
    def automatic(self) -> bool:
        """Whether the number of layers is left to the data."""
        return is_auto(self.n_layers)

    @property
    def prepares(self) -> bool:
        """Whether tables are encoded; a single network takes X as it is."""
        return self.automatic and self.preprocess is not None

    @property
    def parts(self) -> int:
        """The runs that rows are cut into for sample splitting, one per layer; otherwise 1."""
        return max(int(self.n_layers), 1) if self.sample_splitting and not self.automatic else 1


def is_auto(value: object) -> bool:
    """Whether a parameter is left to the data."""
    return isinstance(value, str) and value == "auto"
