"""From estimator parameters to a recipe: names become objects, and clashes become errors."""

from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from rfrboost._model.features import CHOICES
from rfrboost._model.losses import (
    Huber,
    Loss,
    Poisson,
    Quantile,
    Quantiles,
    SquaredError,
    checked_levels,
    weighted_mean,
    weighted_quantile,
)
from rfrboost._model.samplers import IID, SWIM, Fourier, Sampler, SparseSWIM, TransformerSampler
from rfrboost._paper.boost import PowerSchedule, Recipe
from rfrboost._paper.steps import GradientStep, GreedyStep, StepRule
from rfrboost._typing import Array


def is_auto(value: object) -> bool:
    """Whether a parameter is left to the data."""
    return isinstance(value, str) and value == "auto"


# Upper ends far beyond use, so that products with them stay finite.
NONNEGATIVE = Interval(Real, 0, 1e100, closed="both")


POSITIVE = Interval(Real, 0, 1e30, closed="right")


WIDTH = Interval(Integral, 1, None, closed="left")


NAMED_FEATURES = StrOptions({"swim", "sparse", "gaussian", "uniform", "fourier"})


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


AUTO = StrOptions({"auto"})


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


# Over how much of y's spread the pinball loss is rounded: in a single network, in an ensemble.
SINGLE_ROUNDING, ENSEMBLE_ROUNDING = 1e-3, 0.32


DEFAULT_HIDDEN_DIM = 512


# What "auto" stands for in a single network of the paper, which has nothing to choose by.
CAREFUL: dict[str, Any] = {
    "n_layers": 6,
    "features": "swim",
    "n_features": (512, 512),
    "feature_scale": 0.5,
    "learning_rate": 0.5,
    "l2_head": 1e-3,
    "l2_step": 1e-2,
    "metric": "identity",
}


def careful(params: Any) -> SimpleNamespace:
    """The parameters of an estimator, fixed numbers where they say "auto"."""
    values = params.get_params(deep=False)
    left = {name: v for name, v in CAREFUL.items() if is_auto(values[name])}
    return SimpleNamespace(**{**values, **left})


def sampler_for(
    features: Any, scale: Any, activation: str, pair_sampling: str = "gradient"
) -> Sampler:
    """The sampler a ``features`` parameter stands for."""
    named: dict[str, Sampler] = {
        "swim": SWIM(scale, activation, pair_sampling),
        "sparse": SparseSWIM(scale, activation),
        "gaussian": IID(scale, activation, "gaussian"),
        "uniform": IID(scale, activation, "uniform"),
        "fourier": Fourier(scale),
    }
    if isinstance(features, str):
        return named[features]
    return features if hasattr(features, "sample") else TransformerSampler(features)


def quantile_loss(quantile: Any, smoothing: float | Array) -> Loss:
    """The pinball loss at one level, or at several."""
    if np.ndim(quantile) == 0:
        return Quantile(quantile, smoothing)
    return Quantiles(checked_levels(quantile), smoothing)


def loss_for(name: str | Loss, quantile: Any) -> Loss:
    """The regression loss a ``loss`` parameter stands for."""
    named = {
        "squared_error": SquaredError(),
        "huber": Huber(),
        "quantile": quantile_loss(quantile, SINGLE_ROUNDING),
        "poisson": Poisson(),
    }
    return named[name] if isinstance(name, str) else name


def fitted_loss(
    name: str | Loss, quantile: Any, rounding: float, scale: float, y: Array, w: Array | None
) -> Loss:
    """The loss in units of the scaled target ``y``, its own scale taken from y where it has one.

    Huber's δ is 1.345 robust standard deviations of y, the usual compromise between efficiency
    and robustness; the pinball loss is rounded over ``rounding`` of one.
    """
    spread = robust_spread(y, np.ones(len(y)) if w is None else w)  # of every output
    if name == "huber":
        return Huber(1.345 * spread)
    if name == "quantile":
        return quantile_loss(quantile, rounding * spread)
    return loss_for(name, quantile).in_units(scale)


def robust_spread(y: Array, w: Array) -> Array:
    """1.4826 × the median absolute deviation of every column; where that is 0, the deviation."""
    distance = np.abs(y - weighted_quantile(y, w, 0.5))
    mad, largest = 1.4826 * weighted_quantile(distance, w, 0.5), distance.max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    deviation = unit * np.sqrt(weighted_mean((distance / unit) ** 2, w))
    return np.maximum(np.where(mad > 1e-9 * largest, mad, deviation), 1e-9)


def step_for(strategy: str, matrix: str, l2: float, loss: Loss, target_scale: float) -> StepRule:
    """The step rule of Algorithm 1 or 2; a greedy step needs squared error."""
    if strategy == "gradient":
        if matrix != "dense":
            raise ValueError(
                f"step_matrix={matrix!r} belongs to strategy='greedy'; strategy='gradient' fits a "
                "dense A. Set strategy='greedy', or leave step_matrix='dense'."
            )
        return GradientStep(l2)
    if not loss.quadratic:
        raise ValueError(
            f"strategy='greedy' solves for squared error in closed form and cannot use "
            f"{type(loss).__name__}. Set strategy='gradient', which takes any loss."
        )
    # In units of the scaled target the sandwich's penalty is λ/scale² (R and W both scale).
    with np.errstate(over="ignore"):
        scaled = np.float64(l2) / target_scale / target_scale
    return GreedyStep(float(min(scaled, 1e100)), matrix)


def scaled_penalty(l2: float, loss: Loss, target_scale: float) -> float:
    """λ for a head in units of the scaled target: λ‖W‖² scales by s², a loss of degree k by s^k."""
    return float(min(l2 * target_scale ** (2 - (loss.degree or 2)), 1e100))


def feature_counts(n_features: int | tuple[int, int]) -> tuple[int, int]:
    """(from Φ, from x); a single number is shared out evenly."""
    if isinstance(n_features, tuple):
        valid = len(n_features) == 2 and all(isinstance(k, Integral) and k >= 0 for k in n_features)
        if not valid or sum(n_features) == 0:
            raise ValueError(
                "n_features must be an int >= 1 or a pair (from Φ, from x) of ints >= 0 that are "
                f"not both 0; got {n_features!r}."
            )
        return int(n_features[0]), int(n_features[1])
    return int(n_features) // 2, int(n_features) - int(n_features) // 2


def schedule_for(learning_rate: float | tuple[float, float]) -> PowerSchedule:
    if not isinstance(learning_rate, tuple):
        return PowerSchedule(float(learning_rate), 0.0)
    valid = len(learning_rate) == 2 and all(isinstance(v, Real) for v in learning_rate)
    if not valid or not (0 < learning_rate[0] <= 1e30 and 0 <= learning_rate[1] <= 1e3):
        raise ValueError(
            "learning_rate must be a positive number or a pair (c, s) with c > 0 and s >= 0 for "
            f"the schedule c·t^(−s); got {learning_rate!r}."
        )
    return PowerSchedule(float(learning_rate[0]), float(learning_rate[1]))


def initial_for(params: Any, n_columns: int) -> tuple[Sampler | None, int]:
    """The sampler of Φ₀ (None for the identity) and its width D."""
    if params.initial == "identity":
        if params.hidden_dim not in (None, n_columns):
            raise ValueError(
                f"initial='identity' makes the representation as wide as X ({n_columns} columns), "
                f"but hidden_dim={params.hidden_dim}. Leave hidden_dim=None, or choose another "
                "initial, for example initial='swim'."
            )
        return None, n_columns
    scale = params.feature_scale if params.initial_scale is None else params.initial_scale
    sampler = sampler_for(params.initial, scale, params.activation, params.pair_sampling)
    return sampler, params.hidden_dim or DEFAULT_HIDDEN_DIM


def recipe_for(
    params: Any, loss: Loss, target_scale: float, n_rows: int, n_columns: int, seed: int
) -> Recipe:
    """The recipe that an estimator's parameters describe."""
    params = careful(params)
    initial, hidden_dim = initial_for(params, n_columns)
    n_parts = max(params.n_layers, 1) if params.sample_splitting else 1
    if n_parts > n_rows:
        raise ValueError(
            f"sample_splitting gives each of {n_parts} layers rows of its own, but there are only "
            f"{n_rows} rows. Use fewer layers or sample_splitting=False."
        )
    return Recipe(
        n_layers=params.n_layers,
        loss=loss,
        step=step_for(params.strategy, params.step_matrix, params.l2_step, loss, target_scale),
        sampler=sampler_for(
            params.features, params.feature_scale, params.activation, params.pair_sampling
        ),
        n_features=feature_counts(params.n_features),
        initial=initial,
        hidden_dim=hidden_dim,
        learning_rate=schedule_for(params.learning_rate),
        l2_head=scaled_penalty(params.l2_head, loss, target_scale),
        normalize=params.normalize,
        metric=params.metric,
        n_parts=n_parts,
        seed=seed,
    )


def rfnn_recipe(params: Any, loss: Loss, target_scale: float, seed: int) -> Recipe:
    """A single layer: Φ₀ is the random features, and there is nothing to boost."""
    sampler = sampler_for(
        params.features, params.feature_scale, params.activation, params.pair_sampling
    )
    return Recipe(
        n_layers=0,
        loss=loss,
        step=GradientStep(0.0),
        sampler=sampler,
        n_features=(0, 0),
        initial=sampler,
        hidden_dim=params.n_features,
        learning_rate=PowerSchedule(1.0, 0.0),
        l2_head=scaled_penalty(params.l2_head, loss, target_scale),
        normalize=False,
        metric="identity",
        n_parts=1,
        seed=seed,
    )
