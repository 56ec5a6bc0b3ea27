"""From the parameters of an estimator to what the fitting loops are told.

:func:`recipe_for` makes the :class:`~rfrboost._paper.boost.Recipe` of one network,
:func:`plan_for` the :class:`~rfrboost._auto.fit.Plan` of an ensemble. Names become objects here,
and parameters that contradict each other become errors.
"""

from numbers import Integral, Real
from typing import Any

import numpy as np

from rfrboost._auto.fit import Plan
from rfrboost._estimators.parameters import BUMPS, FAMILIES, Parameters, Scales, ShareOfRows
from rfrboost._model.loss import Loss
from rfrboost._model.samplers import IID, SWIM, Fourier, Sampler, SparseSWIM, TransformerSampler
from rfrboost._numerics.sizes import Sizes
from rfrboost._paper.boost import PowerSchedule, Recipe
from rfrboost._paper.steps import GradientStep, GreedyStep, StepRule

# The width of Φ for an ``initial`` other than the identity, as in the paper's experiments.
DEFAULT_HIDDEN_DIM = 512


def sampler_for(features: Any, scale: Any, parameters: Parameters) -> Sampler:
    """The sampler that a ``features`` parameter stands for: a name, a sampler or a transformer."""
    activation = parameters.activation
    named: dict[str, Sampler] = {
        "swim": SWIM(scale, activation, parameters.pair_sampling),
        "sparse": SparseSWIM(scale, activation),
        "gaussian": IID(scale, activation, "gaussian"),
        "uniform": IID(scale, activation, "uniform"),
        "fourier": Fourier(scale),
    }
    if isinstance(features, str):
        return named[features]
    return features if isinstance(features, Sampler) else TransformerSampler(features)


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


def initial_for(parameters: Parameters, n_columns: int) -> tuple[Sampler | None, int]:
    """The sampler of Φ₀ (None for the identity) and its width D."""
    if parameters.initial == "identity":
        if parameters.hidden_dim not in (None, n_columns):
            raise ValueError(
                f"initial='identity' makes the representation as wide as X ({n_columns} columns), "
                f"but hidden_dim={parameters.hidden_dim}. Leave hidden_dim=None, or choose another "
                "initial, for example initial='swim'."
            )
        return None, n_columns
    scale = (
        parameters.feature_scale if parameters.initial_scale is None else parameters.initial_scale
    )
    sampler = sampler_for(parameters.initial, scale, parameters)
    return sampler, parameters.hidden_dim or DEFAULT_HIDDEN_DIM


def recipe_for(
    parameters: Parameters,
    loss: Loss,
    target_scale: float,
    n_rows: int,
    n_columns: int,
    seed: int,
) -> Recipe:
    """The recipe of one network; ``parameters`` are resolved, so that none is "auto"."""
    initial, hidden_dim = initial_for(parameters, n_columns)
    if parameters.parts > n_rows:
        raise ValueError(
            f"sample_splitting gives each of {parameters.parts} layers rows of its own, but there "
            f"are only {n_rows} rows. Use fewer layers or sample_splitting=False."
        )
    return Recipe(
        n_layers=int(parameters.n_layers),
        loss=loss,
        step=step_for(
            parameters.strategy, parameters.step_matrix, parameters.l2_step, loss, target_scale
        ),
        sampler=sampler_for(parameters.features, parameters.feature_scale, parameters),
        n_features=feature_counts(parameters.n_features),
        initial=initial,
        hidden_dim=hidden_dim,
        learning_rate=schedule_for(parameters.learning_rate),
        l2_head=scaled_penalty(parameters.l2_head, loss, target_scale),
        normalize=parameters.normalize,
        metric=parameters.metric,
        n_parts=parameters.parts,
        seed=seed,
    )


def families_of(features: Any) -> tuple[Any, ...]:
    """The families of members that a resolved ``features`` asks for: some by name, or one."""
    if not isinstance(features, tuple):
        return (features,)
    unknown = [name for name in features if name not in FAMILIES]
    if unknown or not features:
        raise ValueError(
            f"features as a tuple names families of members, some of {FAMILIES}; got {features!r}."
        )
    return tuple(name for name in FAMILIES if name in features)


def is_bumps(family: Any) -> bool:
    """Whether a family is that of the kernel members."""
    return isinstance(family, str) and family == BUMPS


def plan_for(
    parameters: Parameters,
    loss: Loss,
    target_scale: float,
    strata: bool,
    n_rows: int,
    seed: int,
    sizes: Sizes,
) -> Plan:
    """The plan of an ensemble; ``parameters`` are resolved, with ``strata`` y holds classes."""
    families = families_of(parameters.features)
    boosted = [family for family in families if not is_bumps(family)]
    scales = parameters.feature_scale
    if not isinstance(scales, Scales):
        scales = Scales(scales, scales)
    n_features = parameters.n_features
    if isinstance(n_features, ShareOfRows):
        n_features = n_features.of(n_rows)
    else:
        n_features = sum(feature_counts(n_features))
    return Plan(
        loss=loss,
        n_bags=parameters.n_bags,
        strata=strata,
        n_layers=int(parameters.n_layers),
        learning_rate=parameters.learning_rate,
        n_features=n_features,
        linear_penalties=linear_penalties(parameters.l2_head, loss, target_scale),
        step_penalties=several(parameters.l2_step),
        first_samplers=tuple(sampler_for(f, scales.first, parameters) for f in boosted),
        samplers=tuple(sampler_for(f, scales.later, parameters) for f in boosted),
        bumps=any(map(is_bumps, families)),
        learns_metric=parameters.metric != "identity",
        max_seconds=parameters.max_seconds,
        seed=seed,
        sizes=sizes,
    )


def linear_penalties(l2_head: Any, loss: Loss, target_scale: float) -> tuple[float, ...]:
    """The penalties of the linear members: those of the table, or the user's in units of y."""
    if isinstance(l2_head, tuple):
        return l2_head
    return (scaled_penalty(l2_head, loss, target_scale),)


def several(value: Any) -> tuple[float, ...]:
    """One number, or several, as a tuple."""
    return value if isinstance(value, tuple) else (float(value),)
