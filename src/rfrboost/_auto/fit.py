"""The automatic fit of rows in memory (``n_layers="auto"``): an ensemble that needs no tuning.

Families of members are fitted one after the other. *Linear* members come first. *Boosted* members
begin with the linear predictions and add layers of random features, dense or sparse, while these
lower the loss on held-out rows; on the way they learn a metric. *Kernel* members are ridge
regressions on bumps around the training rows in that metric. All families are weighted by their
out-of-fold predictions and become one network (:mod:`rfrboost._auto.assemble`).

X is (n, D), y (n, k), and w (n,) or None. Everything is held in memory: row blocks of more than
50,000 rows are fitted as a single network instead (:mod:`rfrboost._paper.boost`).
"""

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng

from rfrboost._auto.assemble import Families, assemble
from rfrboost._auto.bags import Bags, bag, bag_apart
from rfrboost._auto.conformal import HeldOut
from rfrboost._auto.kernel import KernelFit, fit_kernel
from rfrboost._auto.layer import Settings
from rfrboost._auto.local_kernels import fit_local_kernels
from rfrboost._auto.members import Boosted, Run, boost_members
from rfrboost._model.history import LayerRecord, Watch
from rfrboost._model.losses import Loss
from rfrboost._model.network import Network, centered
from rfrboost._model.samplers import Columns, Sampler
from rfrboost._numerics.arrays import coarse
from rfrboost._numerics.blas import product
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._numerics.threads import keep_freed_memory, team
from rfrboost._typing import Array

# The share of a time limit after which no further layer is boosted, where kernel members are to
# follow.
BOOSTING_SHARE = 0.5

# The least and the most random features of a layer, if the user has not set their number. Between
# these there are half as many features as rows.
FEWEST_FEATURES = 64
MOST_FEATURES = 512


@dataclass(frozen=True)
class Plan:
    """The settings of an automatic fit; many of these may have been set by the user.

    ``n_layers`` is the largest number of layers of a boosted family, ``n_features`` None means that
    it depends on the number of rows, and ``strata`` that y are class indicators. There is a boosted
    family for each of ``samplers``, whose first layers are drawn by that of ``first_samplers``, and
    a kernel family if ``bumps``. ``max_seconds`` is a time limit, None for no limit.
    """

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
    """The result of an automatic fit.

    ``out_of_fold`` (n, d) are raw out-of-fold predictions in the caller's order of rows, NaN for
    rows that no member held out. It is None if validation rows were given: then every row was
    fitted. ``rounds`` are the records of all layers kept. ``held_out`` are, for each member, its
    raw predictions for the rows it held out, which are validation rows if these were given.
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
    """Fit all families of a plan and combine them into one network.

    ``watch`` is called with the record of each boosted layer. If ``validation`` rows (X, y) are
    given there is one member, which is fitted on all of X and holds them out.
    """
    keep_freed_memory()
    began = perf_counter()
    rng = default_rng(SeedSequence(plan.seed))
    mean = coarse(np.average(X, axis=0, weights=w), np.ptp(X, axis=0))
    x = centered(X, mean)
    if validation is None:
        bags = bag(x, y, w, plan.n_bags, plan.strata, rng, plan.sizes)
    else:
        held = (centered(validation[0], mean), validation[1])
        bags = bag_apart(x, y, w, held, rng, plan.sizes)
    deadline = began + (np.inf if plan.max_seconds is None else plan.max_seconds)
    with team() as threads:
        several = len(bags.groups) > 1
        run = Run(
            team=threads,
            across_groups=threads if several else map,
            within_group=map if several else threads,
            deadline=deadline,
            watch=watch,
        )
        families, records = fit_families(bags, plan, rng, run, began)
        network, held_out_raw = assemble(bags, mean, plan.loss, families)
    raw = np.full((len(bags.y), held_out_raw.shape[1]), np.nan)
    raw[bags.held_out] = held_out_raw
    folds = [bags.folds[k] for k in bags.members]
    return AutoFit(
        network=network,
        out_of_fold=raw[bags.origin] if validation is None else None,
        rounds=records,
        held_out=tuple(HeldOut(raw[fold], bags.y[fold], bags.w[fold]) for fold in folds),
    )


def fit_families(
    bags: Bags, plan: Plan, rng: Generator, run: Run, began: float
) -> tuple[Families, tuple[LayerRecord, ...]]:
    """Fit one family after the other, and return them with the records of their layers.

    The linear family and one other are always fitted; time decides about the rest. ``began`` is the
    reading of ``perf_counter`` at which the fit began.
    """
    loss = plan.loss
    bumps = plan.bumps and loss.least_squares
    share = BOOSTING_SHARE if bumps else 1.0
    boosting = replace(run, deadline=began + share * (run.deadline - began))
    starts = [loss.start(bags.y[rows], bags.w[rows]) for rows in map(bags.training, bags.members)]
    constants = np.stack(starts)
    start = np.tile(constants, (len(bags.y), 1, 1))
    unwatched = replace(boosting, watch=None)
    linear = boost_members(bags, start, loss, linear_settings(bags, plan), rng, unwatched)[0]
    start = start + linear_moves(bags, linear)
    by_sampler: list[list[Boosted]] = []
    for first, sampler in zip(plan.first_samplers, plan.samplers, strict=True):
        if perf_counter() < boosting.deadline or not by_sampler:
            settings = boosting_settings(bags, plan, first, sampler)
            by_sampler.append(boost_members(bags, start, loss, settings, rng, boosting))
    kernel: KernelFit | None = None
    if bumps and perf_counter() < run.deadline:
        metrics = by_sampler[0][0].metrics if by_sampler else linear.metrics
        every_row_a_centre = len(bags.seen[bags.groups[0]]) <= bags.sizes.most_centres
        fit_bumps = fit_kernel if every_row_a_centre else fit_local_kernels
        kernel = fit_bumps(bags, metrics, rng, run)
    boosted = tuple(of_penalty for family in by_sampler for of_penalty in family)
    records = tuple(record for family in by_sampler for record in family[0].records)
    return Families(constants, linear, boosted, kernel), records


def linear_settings(bags: Bags, plan: Plan) -> Settings:
    """The linear family is one layer with a full step, whose features are the columns of x."""
    D = bags.x.shape[1] - 1
    return Settings(
        n_layers=1,
        learning_rate=1.0,
        n_features=D,
        penalties=plan.linear_penalties,
        first=Columns(D),
        sampler=Columns(D),
        learns_metric=False,
    )


def boosting_settings(bags: Bags, plan: Plan, first: Sampler, sampler: Sampler) -> Settings:
    """The settings of a boosted family."""
    by_rows = int(np.clip(len(bags.y) // 2, FEWEST_FEATURES, MOST_FEATURES))
    return Settings(
        n_layers=plan.n_layers,
        learning_rate=plan.learning_rate,
        n_features=plan.n_features or by_rows,
        penalties=plan.step_penalties,
        first=first,
        sampler=sampler,
        learns_metric=plan.learns_metric,
    )


def linear_moves(bags: Bags, linear: Boosted) -> Array | float:
    """What the linear family adds to the constants (n, members, d), or 0 if it has no layer."""
    if not linear.layers:
        return 0.0
    d = linear.out_of_fold.shape[1]
    raw = np.zeros((len(bags.y), len(bags.members), d))
    for layer in linear.layers[0]:
        moves = product(bags.x[:, :-1], layer.C) + layer.c
        for i, k in enumerate(layer.group):
            raw[:, k] += moves[:, i * d : (i + 1) * d]
    return raw
