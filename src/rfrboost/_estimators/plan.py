"""From estimator parameters to the plan of an automatic fit."""

from typing import Any

from rfrboost._auto.fit import LINEAR_PENALTIES, Plan
from rfrboost._estimators.parameters import feature_counts, is_auto, sampler_for, scaled_penalty
from rfrboost._model.losses import Loss

# Fewer rows than this are too few to hold any out: one careful network is fitted to all of them.
FEWEST_ROWS = 50


# The most layers, unless held-out rows stop the fit before.
MOST_LAYERS = 40


LEARNING_RATE = 0.6


# One for what is noisy, one for what is less so; how much each counts is decided in the end.
# Classes are noisier than numbers: a label says only on which side a row lies.
STEP_PENALTIES = (1e-3, 1e-6)


CLASS_STEP_PENALTIES = (1e-2, 1e-4)


# Numbers want straighter neurons, but not in the first layers: straight ones cannot see inputs that
# matter only together, and where no layer helps a fit would end before it knew of them.
FEATURE_SCALE = 0.5


FIRST_FEATURE_SCALE = CLASS_FEATURE_SCALE = 0.7


# Dense and sparse boosted members, and members of bumps.
BUMPS = "bumps"


FAMILIES = ("swim", "sparse", BUMPS)


# What belongs to a single network and has no meaning in an automatic fit.
SINGLE: dict[str, Any] = {
    "strategy": "gradient",
    "step_matrix": "dense",
    "initial": "identity",
    "initial_scale": None,
    "hidden_dim": None,
    "normalize": False,
    "sample_splitting": False,
    "warm_start": False,
}


def is_automatic(params: Any, n_rows: int) -> bool:
    """Whether depth and the rest are chosen by held-out rows; refuses what contradicts that."""
    if not is_auto(getattr(params, "n_layers", 0)):
        return False
    for name, default in SINGLE.items():
        if getattr(params, name) != default:
            raise ValueError(
                f"{name}={getattr(params, name)!r} describes a single network, and n_layers='auto' "
                f"fits an ensemble that has no such setting. Set n_layers to a number, or leave "
                f"{name}={default!r}."
            )
    if isinstance(params.learning_rate, tuple):
        raise ValueError(
            "A learning_rate that falls from layer to layer needs n_layers as a number; with "
            "n_layers='auto' it is one number or 'auto'."
        )
    return n_rows >= FEWEST_ROWS


def families_of(features: Any) -> tuple[Any, ...]:
    """The families of members that ``features`` asks for: all, some by name, or one."""
    if is_auto(features):
        return FAMILIES
    if not isinstance(features, tuple):
        return (features,)
    unknown = [name for name in features if name not in FAMILIES]
    if unknown or not features:
        raise ValueError(
            f"features as a tuple names families of members, some of {FAMILIES}; got {features!r}."
        )
    return tuple(name for name in FAMILIES if name in features)


def plan_for(params: Any, loss: Loss, target_scale: float, strata: bool, seed: int) -> Plan:
    """The plan that an estimator's parameters describe."""
    families = families_of(params.features)
    linear: tuple[float, ...] = LINEAR_PENALTIES
    steps: tuple[float, ...] = CLASS_STEP_PENALTIES if strata else STEP_PENALTIES
    if not is_auto(params.l2_head):
        linear = (scaled_penalty(params.l2_head, loss, target_scale),)
    if not is_auto(params.l2_step):
        steps = (float(params.l2_step),)
    first, scale = FIRST_FEATURE_SCALE, CLASS_FEATURE_SCALE if strata else FEATURE_SCALE
    if not is_auto(params.feature_scale):
        first = scale = params.feature_scale

    def samplers(scale: float) -> tuple[Any, ...]:
        return tuple(
            sampler_for(family, scale, params.activation, params.pair_sampling)
            for family in families
            if not (isinstance(family, str) and family == BUMPS)
        )

    return Plan(
        loss=loss,
        n_bags=params.n_bags,
        strata=strata,
        n_layers=MOST_LAYERS,
        learning_rate=LEARNING_RATE if is_auto(params.learning_rate) else params.learning_rate,
        n_features=None if is_auto(params.n_features) else sum(feature_counts(params.n_features)),
        linear_penalties=linear,
        step_penalties=steps,
        first_samplers=samplers(first),
        samplers=samplers(scale),
        bumps=families[-1:] == (BUMPS,),
        learns_metric=params.metric != "identity",
        max_seconds=params.max_seconds,
        seed=seed,
        sizes=params._sizes,
    )
