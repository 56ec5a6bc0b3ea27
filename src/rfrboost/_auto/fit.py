"""The automatic fit of rows in memory (``n_layers="auto"``): an ensemble that needs no tuning.

Families of members are fitted one after the other. *Linear* members come first. *Boosted* members
begin with the linear predictions and add layers of random features, dense or sparse, while these
lower the loss on held-out rows; on the way they learn a metric. *Kernel* members are ridge
regressions on bumps around the training rows in that metric. *Tree* members are boosted oblivious
trees, for steps and interactions. All families are weighted by their
out-of-fold predictions and become one network (:mod:`rfrboost._auto.assemble`).

X is (n, D), y (n, k), and w (n,) or None. Everything is held in memory: row blocks of more than
50,000 rows are fitted as a single network instead (:mod:`rfrboost._paper.boost`).
"""

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng

from rfrboost._auto.assemble import Families, assemble
from rfrboost._auto.bags import Bags, Splits, bag, bag_apart, bag_split
from rfrboost._auto.conformal import HeldOut
from rfrboost._auto.kernel import KernelFit, every_row_a_centre, fit_kernel
from rfrboost._auto.layer import Settings
from rfrboost._auto.local_kernels import fit_local_kernels
from rfrboost._auto.members import Boosted, Run, boost_members, fit_linear
from rfrboost._auto.trees import TreesFit, fit_trees
from rfrboost._model.history import LayerRecord, Watch
from rfrboost._model.losses import Loss
from rfrboost._model.network import Network, centered
from rfrboost._model.samplers import Sampler
from rfrboost._numerics.arrays import coarse
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._numerics.threads import keep_freed_memory, team
from rfrboost._typing import Array

# The shares of a time limit after which no further layer of trees is grown, and none of neurons is
# boosted, where other families are to follow. Trees come first: they cost least.
TREES_SHARE = 0.3
BOOSTING_SHARE = 0.6

# The share of the time that is left for all families; the rest is for weighting them.
FAMILIES_SHARE = 0.95

# The least and the most random features of a layer, if the user has not set their number. Between
# these there are half as many features as rows. Where every member draws its own, at most half of
# that: it is as accurate in the mean and halves the features of the model.
FEWEST_FEATURES = 64
MOST_FEATURES = 512


@dataclass(frozen=True)
class Plan:
    """The settings of an automatic fit; many of these may have been set by the user.

    ``n_layers`` is the largest number of layers of a boosted family, ``n_features`` None means that
    it depends on the number of rows, and ``strata`` that y are class indicators. There is a boosted
    family for each of ``samplers``, whose first layers are drawn by that of ``first_samplers``, a
    kernel family if ``bumps``, and a family of trees if ``trees``.
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
    trees: bool
    learns_metric: bool
    seed: int
    sizes: Sizes = SIZES


@dataclass(frozen=True)
class AutoFit:
    """The result of an automatic fit.

    ``out_of_fold`` (n, d) are raw out-of-fold predictions in the caller's order of rows, NaN for
    rows that no member held out. It is None if validation rows were given: then every row was
    fitted. ``rounds`` are the records of all layers kept. ``held_out`` are, for each member that
    predicts new rows, the raw predictions for the rows it held out (validation rows if these were
    given); for a member that was fitted on all rows, those of the other members.
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
    splits: Splits | None,
    plan: Plan,
    watch: Watch,
    deadline: float = np.inf,
) -> AutoFit:
    """Fit all families of a plan and combine them into one network.

    ``watch`` is called with the record of each boosted layer. If ``validation`` rows (X, y) are
    given there is one member, which is fitted on all of X and holds them out. If ``splits`` are
    given, they say what each member is fitted on and holds out. ``deadline`` is when the fit has to
    end, a reading of ``time.perf_counter``.
    """
    keep_freed_memory()
    rng = default_rng(SeedSequence(plan.seed))
    mean = coarse(np.average(X, axis=0, weights=w), np.ptp(X, axis=0))
    x = centered(X, mean)
    if validation is not None:
        held = (centered(validation[0], mean), validation[1])
        bags = bag_apart(x, y, w, held, rng, plan.sizes)
    elif splits is not None:
        bags = bag_split(x, y, w, splits, rng, plan.sizes)
    else:
        bags = bag(x, y, w, plan.n_bags, plan.strata, rng, plan.sizes)
    with team() as threads:
        several = len(bags.groups) > 1
        run = Run(
            team=threads,
            across_groups=threads if several else map,
            within_group=map if several else threads,
            deadline=part_of_time(FAMILIES_SHARE, deadline),
            watch=watch,
        )
        families, records = fit_families(bags, plan, rng, run)
        network, held_out_raw = assemble(bags, mean, plan.loss, families, deadline)
    raw = np.full((len(bags.y), held_out_raw.shape[1]), np.nan)
    raw[bags.held_out] = held_out_raw
    return AutoFit(
        network=network,
        out_of_fold=raw[bags.origin] if validation is None else None,
        rounds=records,
        held_out=tuple(held_by(bags, member, raw) for member in bags.kept),
    )


def held_by(bags: Bags, member: int, raw: Array) -> HeldOut:
    """The held-out rows that tell how wrong a member is, with predictions ``raw`` (n, d).

    They are the rows it holds out; a row that several members hold out counts in part for each.
    For a member that is fitted on all rows they are the rows that the others hold out.
    """
    rows = bags.holding(member)
    if not len(rows):
        return HeldOut(raw[bags.held_out], bags.y[bags.held_out], bags.w[bags.held_out])
    holders = bags.holders()
    times = np.concatenate(
        [
            np.full(bags.folds[k].stop - bags.folds[k].start, len(holders[k]))
            for k in bags.held[member]
        ]
    )
    return HeldOut(raw[rows], bags.y[rows], bags.w[rows] / times)


def fit_families(
    bags: Bags, plan: Plan, rng: Generator, run: Run
) -> tuple[Families, tuple[LayerRecord, ...]]:
    """Fit one family after the other, and return them with the records of their layers.

    The linear family is always fitted; time decides about the rest.
    """
    loss = plan.loss
    bumps = plan.bumps and loss.least_squares
    share = BOOSTING_SHARE if bumps else 1.0
    starts = [loss.start(bags.y[rows], bags.w[rows]) for rows in map(bags.training, bags.members)]
    constants = np.stack(starts)
    start = np.tile(constants, (len(bags.y), 1, 1))
    linear, start = fit_linear(bags, start, loss, plan.linear_penalties, run)
    boosting = replace(run, deadline=part_of_time(share, run.deadline))
    growing = replace(run, deadline=part_of_time(TREES_SHARE, run.deadline))
    # Linear members draw nothing. Their streams stay theirs, so that those of others are the same
    # as ever.
    rng.spawn(len(bags.groups))
    trees: TreesFit | None = None
    if plan.trees:
        growing = growing if plan.samplers or bumps else run
        trees = fit_trees(bags, constants, loss, plan.n_layers, rng, growing)
    by_sampler: list[list[Boosted]] = []
    for first, sampler in zip(plan.first_samplers, plan.samplers, strict=True):
        if perf_counter() < boosting.deadline:
            settings = boosting_settings(bags, plan, first, sampler)
            by_sampler.append(boost_members(bags, start, loss, settings, rng, boosting))
    kernel: KernelFit | None = None
    if bumps and perf_counter() < run.deadline:
        unlearned = (np.ones(bags.x.shape[1] - 1),) * len(bags.groups)
        metrics = by_sampler[0][0].metrics if by_sampler else unlearned
        fit_bumps = fit_kernel if every_row_a_centre(bags) else fit_local_kernels
        kernel = fit_bumps(bags, metrics, rng, run)
    boosted = tuple(of_penalty for family in by_sampler for of_penalty in family)
    records = () if trees is None else trees.records
    records += tuple(record for family in by_sampler for record in family[0].records)
    return Families(constants, linear, boosted, kernel, trees), records


def part_of_time(share: float, deadline: float) -> float:
    """When this share of the time until the deadline will have passed."""
    now = perf_counter()
    return now + share * (deadline - now)


def boosting_settings(bags: Bags, plan: Plan, first: Sampler, sampler: Sampler) -> Settings:
    """The settings of a boosted family."""
    draws = 1 if len(bags.groups) == 1 else 2
    by_rows = int(np.clip(len(bags.y) // (2 * draws), FEWEST_FEATURES, MOST_FEATURES // draws))
    n_features = plan.n_features or by_rows
    layer_bytes = len(bags.groups) * n_features * bags.x.shape[1] * bags.x.itemsize
    return Settings(
        n_layers=min(plan.n_layers, max(bags.sizes.layer_bytes // layer_bytes, 1)),
        learning_rate=plan.learning_rate,
        n_features=n_features,
        penalties=plan.step_penalties,
        first=first,
        sampler=sampler,
        learns_metric=plan.learns_metric,
    )
