"""The parameters of all estimators: what "auto" means, and the settings of a fit.

The routes:

``single``
    ``n_layers`` is a number: one network by the paper's algorithms.
``ensemble``
    ``n_layers="auto"``: members of several families, chosen by cross-validation. Fewer than
    ``FEWEST_ROWS`` rows are too few to hold any out; they get a single network with the defaults
    of that column.

``DEFAULTS`` is the only table of what "auto" stands for and of which parameters have no effect
in a route, where they are refused; the documentation shows it. :func:`recipe_for` and
:func:`plan_for` turn parameters into the :class:`~rfrboost._paper.boost.Recipe` of one
network and the :class:`~rfrboost._auto.fit.Plan` of an ensemble; parameters that contradict each
other become errors there.
"""

from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from rfrboost._auto.fit import Plan
from rfrboost._model.loss import Loss
from rfrboost._model.samplers import IID, SWIM, Fourier, Sampler, SparseSWIM, TransformerSampler
from rfrboost._numerics.sizes import Sizes
from rfrboost._paper.boost import PowerSchedule, Recipe
from rfrboost._paper.steps import GradientStep, GreedyStep, StepRule
from rfrboost._tables.fit import FROM_DTYPE


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
    categorical_features: Any = FROM_DTYPE
    n_bags: int = 5
    cv: Any = None
    max_seconds: float | None = None
    sample_splitting: bool = False
    random_state: Any = None
    warm_start: bool = False
    n_jobs: int | None = None
    verbose: int = 0
    callbacks: Any = None
    class_weight: Any = None
    scoring: Any = None
    snapshot: Any = None
    #: whether the number of layers is left to the data
    automatic: bool = field(init=False)
    #: whether tables are encoded; a single network takes X as it is
    prepares: bool = field(init=False)
    #: the runs that rows are cut into for sample splitting, one per layer; otherwise 1
    parts: int = field(init=False)
    #: the number of folds: ``cv`` if it is a number, else ``n_bags``
    bags: int = field(init=False)
    #: whether ``cv`` says more than how many folds there are
    splits_rows: bool = field(init=False)

    def __post_init__(self) -> None:
        automatic = is_auto(self.n_layers)
        splits = self.sample_splitting and not automatic
        object.__setattr__(self, "automatic", automatic)
        object.__setattr__(self, "prepares", automatic and self.preprocess is not None)
        object.__setattr__(self, "parts", max(int(self.n_layers), 1) if splits else 1)
        by_number = isinstance(self.cv, Integral)
        object.__setattr__(self, "bags", int(self.cv) if by_number else self.n_bags)
        object.__setattr__(self, "splits_rows", self.cv is not None and not by_number)


def is_auto(value: object) -> bool:
    """Whether a parameter is left to the data."""
    return isinstance(value, str) and value == "auto"


SINGLE = "single"
ENSEMBLE = "ensemble"
ROUTES = (SINGLE, ENSEMBLE)

# Fewer rows than this are too few to hold any out.
FEWEST_ROWS = 50
# The families of members: boosted ones of dense and of sparse neurons, kernel members, and trees.
BUMPS = "bumps"
TREES = "trees"
FAMILIES = ("swim", "sparse", BUMPS, TREES)


@dataclass(frozen=True)
class ByTask:
    """A default that differs between regression and classification."""

    regression: Any
    classification: Any


@dataclass(frozen=True)
class Scales:
    """Feature scales: that of the ensemble's first three layers, and that of the others."""

    first: float
    later: float


@dataclass(frozen=True)
class ShareOfRows:
    """Half as many features as rows, within bounds."""

    least: int
    most: int

    def of(self, n_rows: int) -> int:
        """The number of features for a table of this many rows."""
        return int(np.clip(n_rows // 2, self.least, self.most))


class NoEffect:
    """A parameter that has no effect in a route, and is refused there unless it is left alone."""

    def __repr__(self) -> str:
        return "no effect"


NO_EFFECT = NoEffect()

# Reasons for the values that are not the paper's:
# - The ensemble's step penalties: one for noisy tables, one for less noisy ones, both fitted side
#   by side and weighted in the end. Those of classification are larger, because labels are noisier:
#   a label says only on which side of a boundary a row lies.
# - Feature scales: regression wants straighter neurons (0.5), but not in the first layers: straight
#   ones miss inputs that matter only together, and the fit would stop early without them.
# - The linear members' penalties go from almost none to nearly a constant.
DEFAULTS: dict[str, dict[str, Any]] = {
    "n_layers": {SINGLE: 6, ENSEMBLE: 40},
    "features": {SINGLE: "swim", ENSEMBLE: FAMILIES},
    "n_features": {SINGLE: (512, 512), ENSEMBLE: ShareOfRows(64, 512)},
    "feature_scale": {
        SINGLE: 0.5,
        ENSEMBLE: ByTask(Scales(0.7, 0.5), Scales(0.7, 0.7)),
    },
    "learning_rate": {SINGLE: 0.5, ENSEMBLE: 0.6},
    "l2_head": {SINGLE: 1e-3, ENSEMBLE: tuple(10.0 ** np.arange(-5, 1.6, 0.5))},
    "l2_step": {SINGLE: 1e-2, ENSEMBLE: ByTask((1e-3, 1e-6), (1e-2, 1e-4))},
    "metric": {SINGLE: "identity", ENSEMBLE: "agop"},
    "preprocess": {SINGLE: None, ENSEMBLE: "auto"},
    "categorical_features": {SINGLE: NO_EFFECT, ENSEMBLE: FROM_DTYPE},
    "n_bags": {SINGLE: NO_EFFECT, ENSEMBLE: 5},
    "max_seconds": {SINGLE: NO_EFFECT, ENSEMBLE: None},
    "scoring": {SINGLE: NO_EFFECT, ENSEMBLE: None},
    "snapshot": {SINGLE: NO_EFFECT, ENSEMBLE: None},
    "strategy": {SINGLE: "gradient", ENSEMBLE: NO_EFFECT},
    "step_matrix": {SINGLE: "dense", ENSEMBLE: NO_EFFECT},
    "initial": {SINGLE: "identity", ENSEMBLE: NO_EFFECT},
    "initial_scale": {SINGLE: None, ENSEMBLE: NO_EFFECT},
    "hidden_dim": {SINGLE: None, ENSEMBLE: NO_EFFECT},
    "normalize": {SINGLE: False, ENSEMBLE: NO_EFFECT},
    "sample_splitting": {SINGLE: False, ENSEMBLE: NO_EFFECT},
    "warm_start": {SINGLE: False, ENSEMBLE: NO_EFFECT},
}

NAMES = {
    SINGLE: "a single network (n_layers a number)",
    ENSEMBLE: "the ensemble (n_layers='auto')",
}
REMEDIES = {
    SINGLE: "Set n_layers='auto'",
    ENSEMBLE: "Set n_layers to a number",
}


def resolved(parameters: Parameters, route: str, task: str) -> Parameters:
    """The parameters of a fit, with the route's defaults in place of "auto"."""
    left_to_us = {}
    for own in fields(parameters):
        if own.name in DEFAULTS and is_auto(getattr(parameters, own.name)):
            default = DEFAULTS[own.name][route]
            if isinstance(default, ByTask):
                default = default.regression if task == "regression" else default.classification
            left_to_us[own.name] = default
    return replace(parameters, **left_to_us)


def check_effects(parameters: Parameters, route: str) -> None:
    """Refuse what the user set and the route would ignore."""
    for own in fields(parameters):
        value = getattr(parameters, own.name)
        unused = DEFAULTS.get(own.name, {}).get(route) is NO_EFFECT
        if unused and np.any(value != own.default):
            raise ValueError(
                f"{own.name}={value!r} has no effect in {NAMES[route]}. {REMEDIES[route]}, or "
                f"leave {own.name}={own.default!r}."
            )
    if parameters.cv is not None and parameters.n_bags != Parameters.n_bags:
        raise ValueError(
            f"n_bags={parameters.n_bags!r} has no effect with cv={parameters.cv!r}, which says how "
            "many folds there are. Set one of the two."
        )
    if route != SINGLE and isinstance(parameters.learning_rate, tuple):
        raise ValueError(
            f"A learning_rate that falls from layer to layer has no effect in {NAMES[route]}, "
            "which takes one number or 'auto'. Set n_layers to a number, or give one number."
        )
    if parameters.loss != "quantile" and np.any(np.asarray(parameters.quantile) != 0.5):
        raise ValueError(
            f"quantile={parameters.quantile!r} has an effect with loss='quantile' only, and loss "
            f"is {parameters.loss!r}. Set loss='quantile', or leave quantile=0.5."
        )
    if parameters.preprocess is None and np.any(parameters.categorical_features != FROM_DTYPE):
        raise ValueError(
            "categorical_features has no effect with preprocess=None, which takes numbers as they "
            "are. Leave one of the two at its default."
        )
    if parameters.snapshot is not None and not isinstance(parameters.random_state, Integral):
        raise ValueError(
            "snapshot needs a whole number as random_state: only a fit with the same seed can go "
            f"on where another ended, and random_state is {parameters.random_state!r}."
        )
    if parameters.snapshot is not None and not isinstance(parameters.features, str | tuple):
        raise ValueError(
            "snapshot holds the library's own features only, and features is an object of the "
            f"class {type(parameters.features).__name__}. Leave snapshot=None."
        )
    if not all(map(callable, parameters.callbacks or ())):
        raise TypeError(
            "callbacks must be a list of functions, or of objects that can be called with the "
            f"record of a layer; got {parameters.callbacks!r}."
        )
    if parameters.initial == "identity" and parameters.initial_scale is not None:
        raise ValueError(
            f"initial_scale={parameters.initial_scale!r} has no effect with initial='identity', "
            "which draws no features. Choose another initial, or leave initial_scale=None."
        )


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
    task: str,
    n_rows: int,
    n_columns: int,
    seed: int,
) -> Recipe:
    """The recipe of one network."""
    parameters = resolved(parameters, SINGLE, task)
    initial, hidden_dim = initial_for(parameters, n_columns)
    if parameters.parts > n_rows:
        raise ValueError(
            f"sample_splitting gives each of {parameters.parts} layers its own rows, but there "
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
    """The families of members that a resolved ``features`` names: several, or one."""
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


def is_trees(family: Any) -> bool:
    """Whether a family is that of the tree members."""
    return isinstance(family, str) and family == TREES


def plan_for(
    parameters: Parameters,
    loss: Loss,
    target_scale: float,
    task: str,
    n_rows: int,
    seed: int,
    sizes: Sizes,
) -> Plan:
    """The plan of an ensemble."""
    parameters = resolved(parameters, ENSEMBLE, task)
    families = families_of(parameters.features)
    boosted = [family for family in families if not (is_bumps(family) or is_trees(family))]
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
        n_bags=parameters.bags,
        strata=task == "classification",
        n_layers=int(parameters.n_layers),
        learning_rate=parameters.learning_rate,
        n_features=n_features,
        linear_penalties=linear_penalties(parameters.l2_head, loss, target_scale),
        step_penalties=several(parameters.l2_step),
        first_samplers=tuple(sampler_for(f, scales.first, parameters) for f in boosted),
        samplers=tuple(sampler_for(f, scales.later, parameters) for f in boosted),
        bumps=any(map(is_bumps, families)),
        trees=any(map(is_trees, families)),
        learns_metric=parameters.metric != "identity",
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
