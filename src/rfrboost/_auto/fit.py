"""The model that needs no tuning: families of bagged members, put together by held-out rows.

*Linear* members start. *Boosted* members go on from them by layers of random features, dense or
sparse, as many as lower the loss on the rows they hold out, and learn a metric on the way.
*Kernel* members put bumps around the training rows in that metric. What comes out is one network:
Φ is the members' predictions, each layer adds to them, and the head is their mean.
"""

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng

from rfrboost._auto.assemble import assemble, constants, stack
from rfrboost._auto.bags import Bags, bag, bag_apart
from rfrboost._auto.conformal import HeldOut
from rfrboost._auto.layer import Settings
from rfrboost._auto.local_kernels import fit_bumps
from rfrboost._auto.members import Boosted, Run, boost_members
from rfrboost._model.history import LayerRecord, Watch
from rfrboost._model.losses import Loss
from rfrboost._model.network import Network, centered
from rfrboost._model.samplers import Columns, Sampler
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import product
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._numerics.threads import keep_freed_memory, team
from rfrboost._typing import Array

# Penalties of the linear start, from none to speak of to nearly a constant.
LINEAR_PENALTIES = tuple(10.0 ** np.arange(-5, 1.6, 0.5))


# How much of a time limit boosting may take where bumps are to follow.
BOOSTING_SHARE = 0.5


@dataclass(frozen=True)
class Plan:
    """What an automatic fit is told; each number may have been set by the user."""

    loss: Loss
    n_bags: int
    strata: bool
    n_layers: int
    learning_rate: float
    n_features: int | None
    linear_penalties: tuple[float, ...]
    step_penalties: tuple[float, ...]
    first_samplers: tuple[Sampler, ...]
    samplers: tuple[Sampler, ...]
    bumps: bool
    learns_metric: bool
    max_seconds: float | None
    seed: int
    sizes: Sizes = SIZES


@dataclass(frozen=True)
class AutoFit:
    """The network, and every row's raw out-of-fold prediction (NaN where there is none).

    All rows are fitted where others were given to stop by; there is then nothing out of fold.
    ``held_out`` is what each member predicts for the rows it holds out, whichever they are.
    """

    network: Network
    out_of_fold: Array | None
    rounds: tuple[LayerRecord, ...]
    held_out: tuple[HeldOut, ...]


def fit_auto(
    X: Array,
    y: Array,
    w: Array | None,
    validation: tuple[Array, Array] | None,
    plan: Plan,
    watch: Watch,
) -> AutoFit:
    """Fit all families and put them together."""
    keep_freed_memory()
    began, limit = perf_counter(), np.inf if plan.max_seconds is None else plan.max_seconds
    loss, rng = plan.loss, default_rng(SeedSequence(plan.seed))
    mean = frozen(np.average(X, axis=0, weights=w))
    bags = cut(centered(X, mean), y, w, mean, validation, plan, rng)

    def left() -> float:
        return began + limit - perf_counter()

    def left_to_boost() -> float:
        return began + (BOOSTING_SHARE if bumps else 1.0) * limit - perf_counter()

    bumps = plan.bumps and loss.least_squares
    with team() as together:
        run = Run(together, left_to_boost, watch)
        start = constants(bags, loss)
        line = linear_settings(plan, bags)
        linear = boost_members(bags, start, loss, line, rng, replace(run, watch=ignore))[0]
        start = start + linear_raw(bags, linear)
        families: list[list[Boosted]] = []
        for first, sampler in zip(plan.first_samplers, plan.samplers, strict=True):
            if run.more_time() or not families:
                own = settings(plan, bags, first, sampler)
                families.append(boost_members(bags, start, loss, own, rng, run))
        kernel = None
        if bumps and left() > 0:
            metrics = families[0][0].metrics if families else linear.metrics
            kernel = fit_bumps(bags, metrics, rng, replace(run, left=left))
        boosted = [under_a_penalty for family in families for under_a_penalty in family]
        held = bags.held_out()
        of_kernel = [] if kernel is None else [kernel.out_of_fold]
        out_of_fold = np.stack([*(f.out_of_fold for f in (linear, *boosted)), *of_kernel])
        v, b = stack(list(out_of_fold), bags.y[held], bags.w[held], loss)
        combined = np.einsum("f,fnd->nd", v, out_of_fold) + b
        shift = loss.shift(combined, bags.y[held], bags.w[held])
        network = assemble(bags, mean, loss, linear, boosted, kernel, v, b + shift)
    rounds = tuple(record for family in families for record in family[0].rounds)
    raw = np.full((len(bags.y), len(b)), np.nan)
    raw[held] = combined + shift
    folds = [bags.folds[k] for k in bags.members]
    held_out = tuple(HeldOut(raw[fold], bags.y[fold], bags.w[fold]) for fold in folds)
    return AutoFit(network, None if validation else raw[bags.origin], rounds, held_out)


def ignore(record: LayerRecord) -> None:
    """Nobody watches the linear start."""


def cut(
    x: Array,
    y: Array,
    w: Array | None,
    mean: Array,
    validation: tuple[Array, Array] | None,
    plan: Plan,
    rng: Generator,
) -> Bags:
    """Bags of the rows, or one member that holds out the rows given for that."""
    if validation is not None:
        held = (centered(validation[0], mean), validation[1])
        return bag_apart(x, y, w, held, rng, plan.sizes)
    return bag(x, y, w, plan.n_bags, plan.strata, rng, plan.sizes)


def linear_settings(plan: Plan, bags: Bags) -> Settings:
    """The linear start is one layer whose features are the columns, taken in full."""
    D = bags.x.shape[1] - 1
    return Settings(1, 1.0, D, plan.linear_penalties, Columns(D), Columns(D), False)


def settings(plan: Plan, bags: Bags, first: Sampler, sampler: Sampler) -> Settings:
    """Half as many features as rows where rows are few."""
    p = plan.n_features or int(np.clip(len(bags.y) // 2, 64, 512))
    return Settings(
        n_layers=plan.n_layers,
        learning_rate=plan.learning_rate,
        n_features=p,
        penalties=plan.step_penalties,
        first=first,
        sampler=sampler,
        learns_metric=plan.learns_metric,
    )


def linear_raw(bags: Bags, linear: Boosted) -> Array | float:
    """What the linear layer, if there is one, adds to the constants."""
    if not linear.layers:
        return 0.0
    raw = np.zeros((len(bags.y), len(bags.members), linear.out_of_fold.shape[1]))
    for piece in linear.layers[0]:
        moved = product(bags.x[:, :-1], piece.C) + piece.c
        for i, k in enumerate(piece.group):
            d = raw.shape[2]
            raw[:, k] += moved[:, i * d : (i + 1) * d]
    return raw
