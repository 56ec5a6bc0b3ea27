"""The automatic fit of rows in memory (``n_layers="auto"``): an ensemble that needs no tuning.

Families of members are fitted one after the other. *Linear* members come first. *Boosted* members
begin with the linear predictions and add layers of random features, dense or sparse, while these
lower the loss on held-out rows; on the way they learn a metric. *Kernel* members are ridge
regressions on bumps (radial features) around the training rows in that metric. *Tree* members are
boosted random trees, for jumps and interactions. All families are weighted by their out-of-fold
predictions and become one network (:mod:`rfrboost._auto.assemble`).

x is (n, D+1), y (n, k), and w (n,) or None. Nothing but x is as large as the table: it is in memory
or mapped to a temporary file, and neither copied nor computed anew.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng

from rfrboost._auto.assemble import Families, assemble, assemble_sampled
from rfrboost._auto.bags import Bags, Splits, bag, bag_apart, bag_split
from rfrboost._auto.conformal import HeldOut
from rfrboost._auto.kernel import KernelFit, every_row_a_centre, fit_kernel
from rfrboost._auto.layer import Settings
from rfrboost._auto.local_kernels import fit_local_kernels
from rfrboost._auto.members import (
    Boosted,
    Run,
    Snapshot,
    Workers,
    boost_members,
    fit_linear,
    threads_as_workers,
)
from rfrboost._auto.trees import TreesFit, fit_trees
from rfrboost._model.history import LayerRecord, Watch
from rfrboost._model.losses import Loss
from rfrboost._model.network import Network, centered
from rfrboost._model.samplers import Sampler
from rfrboost._numerics.arrays import coarse
from rfrboost._numerics.sizes import BATCH_ROWS, SIZES, Sizes
from rfrboost._numerics.threads import fit_team
from rfrboost._typing import Array, Indices

# How good raw predictions (m, d) of these rows (m,) are, the higher the better.
Score = Callable[[Array, Indices], float]

# What comes out of a phase: members of one kind, or None.
Family = TypeVar("Family")

# The phases of a fit, which progress shows, and the share of the time that each takes as a rule.
LINEAR, TREES, KERNEL, WEIGHTS = "linear members", "trees", "kernel members", "weights"
SHARES = {LINEAR: 0.01, TREES: 0.25, KERNEL: 0.2, WEIGHTS: 0.01}
BOOSTED_SHARE = 0.18

# The shares of a time limit after which no further layer of trees, or of neurons, is begun if other
# families are to follow. Trees come first: they cost least.
TREES_SHARE = 0.3
BOOSTING_SHARE = 0.6

# The share of the time that is left for all families; the rest is for weighting them.
FAMILIES_SHARE = 0.95

# The most layers of trees, as a multiple of ``Plan.n_layers``: a layer of trees moves predictions
# by less than one of neurons does.
TREE_LAYERS = 2

# The least and the most random features of a layer, if the user has not set their number. Between
# these there are half as many features as rows. Where every member draws its own, at most half of
# that: it is as accurate in the mean and halves the features of the model.
FEWEST_FEATURES = 64
MOST_FEATURES = 512


@dataclass(frozen=True)
class Plan:
    """The settings of an automatic fit; many of these may have been set by the user.

    ``n_layers`` is the largest number of layers of a boosted family. If ``n_features`` is None it
    depends on the number of rows. ``strata`` is true if y are class indicators. There is a boosted
    family for each of ``samplers``, whose first layers are drawn by that of ``first_samplers``, a
    kernel family if ``bumps``, and a family of trees if ``trees``. A ``score`` takes the place of
    the loss where held-out rows decide how many layers are kept and which families are weighted;
    its rows are numbered as in X, validation rows after them.
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
    score: Score | None = None


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
    x: Array,
    y: Array,
    w: Array | None,
    validation: tuple[Array, Array] | None,
    splits: Splits | None,
    plan: Plan,
    watch: Watch | None,
    deadline: float = np.inf,
    snapshot: Snapshot | None = None,
    workers: Workers | None = None,
) -> AutoFit:
    """Fit all families of a plan and combine them into one network.

    ``x`` (n, D+1) are the rows with a last column of ones; they are centred and sorted in place.
    ``watch``, unless it is None, gets the record of each layer, and may end the fit. If
    ``validation`` rows (X, y) are given there is one member, which is fitted on all of X and holds
    them out. If ``splits`` are given, they are what each member is fitted on and holds out.
    ``deadline`` is when the fit has to end, a reading of ``time.perf_counter``. Families that
    ``snapshot`` has are taken from there, others are written to it. Leaves of kernel members are
    fitted by ``workers``, or else by the threads of this process.
    """
    rng = default_rng(SeedSequence(plan.seed))
    mean = center(x, w)
    if validation is not None:
        held = (centered(validation[0], mean), validation[1])
        bags = bag_apart(x, y, w, held, rng, plan.sizes)
    elif splits is not None:
        bags = bag_split(x, y, w, splits, rng, plan.sizes)
    else:
        one_label = not plan.loss.separate_outputs
        bags = bag(x, y, w, plan.n_bags, plan.strata, rng, plan.sizes, one_label)
    with fit_team() as threads:
        several = len(bags.groups) > 1
        run = Run(
            team=threads,
            across_groups=threads if several else map,
            within_group=map if several else threads,
            workers=workers or partial(threads_as_workers, threads),
            deadline=part_of_time(FAMILIES_SHARE, deadline),
            watch=watch,
            score=score_of_bags(plan.score, bags, bags.held_out),
            snapshot=snapshot,
        )
        rows = sampled_rows(bags)
        if rows is None:
            families, records = fit_families(bags, bags, plan, rng, run)
            begin(run, WEIGHTS)
            network, held_out_raw = assemble(bags, mean, plan.loss, families, deadline, run.score)
        else:
            sample = bags.restricted(rows)
            run = replace(run, score=score_of_bags(plan.score, bags, rows[sample.held_out]))
            families, records = fit_families(bags, sample, plan, rng, run)
            begin(run, WEIGHTS)
            network, held_out_raw = assemble_sampled(
                bags, sample, rows, mean, plan.loss, families, threads, deadline, run.score
            )
    raw = np.full((len(bags.y), held_out_raw.shape[1]), np.nan)
    raw[bags.held_out] = held_out_raw
    return AutoFit(
        network=network,
        out_of_fold=raw[bags.origin] if validation is None else None,
        rounds=records,
        held_out=tuple(held_by(bags, member, raw) for member in bags.kept),
    )


def sampled_rows(bags: Bags) -> Indices | None:
    """The rows that all families but the kernel members are fitted on, if these are not all.

    Kernel members learn from every row how the target behaves around it, leaf by leaf. What the
    others learn is the same everywhere, and known from ``Sizes.boosted_rows`` rows. Rows of bags
    lie in random order within folds and classes, so that evenly spaced ones are a fair sample.
    """
    n, most = len(bags.y), bags.sizes.boosted_rows
    if n <= most or len(bags.groups) > 1:
        return None
    rows = np.arange(most) * n // most
    counts = np.diff(np.searchsorted(rows, [0, *(fold.stop for fold in bags.folds)]))
    return rows if counts.min() >= bags.sizes.leaf_held_out_rows else None


def center(x: Array, w: Array | None) -> Array:
    """Subtract the weighted mean of each column from rows (x, 1), in place; return these means."""
    X = x[:, :-1]
    total = np.zeros(X.shape[1])
    for begin in range(0, len(X), BATCH_ROWS):
        s = slice(begin, begin + BATCH_ROWS)
        total += X[s].sum(axis=0) if w is None else w[s] @ X[s]
    weight = len(X) if w is None else w.sum()
    mean = coarse(total / weight, np.ptp(X, axis=0))
    X -= mean
    return mean


def score_of_bags(
    score: Score | None, bags: Bags, rows: Indices
) -> Callable[[Array], float] | None:
    """The score of predictions for these rows of the bags, in the order that they have there."""
    if score is None:
        return None
    handed_in = np.argsort(bags.origin)[rows]
    return lambda raw: score(raw, handed_in)


def held_by(bags: Bags, member: int, raw: Array) -> HeldOut:
    """The held-out rows on which a member's errors are measured, with predictions ``raw`` (n, d).

    They are the rows it holds out; a row that several members hold out counts in part for each.
    For a member that is fitted on all rows they are the rows that the others hold out. Rows without
    a prediction are left out.
    """
    _, rows = bags.split(member)
    if not len(rows):
        rows = bags.held_out[np.isfinite(raw[bags.held_out]).all(axis=1)]
        return HeldOut(raw[rows], bags.y[rows], bags.w[rows])
    times = np.concatenate(
        [
            np.full(bags.folds[k].stop - bags.folds[k].start, len(bags.holders[k]))
            for k in bags.held[member]
        ]
    )
    known = np.isfinite(raw[rows]).all(axis=1)
    rows, times = rows[known], times[known]
    return HeldOut(raw[rows], bags.y[rows], bags.w[rows] / times)


def fit_families(
    bags: Bags, sample: Bags, plan: Plan, rng: Generator, run: Run
) -> tuple[Families, tuple[LayerRecord, ...]]:
    """Fit one family after the other, and return them with the records of their layers.

    Kernel members are fitted on all rows, the others on those of the ``sample``, which may be all.
    The linear family is always fitted; time and ``run.watch`` decide about the rest.
    """
    loss = plan.loss
    bumps = plan.bumps and loss.least_squares
    share = BOOSTING_SHARE if bumps else 1.0
    starts = [
        loss.start(sample.y[rows], sample.w[rows]) for rows, _ in map(sample.split, sample.members)
    ]
    constants = np.stack(starts)
    start = np.tile(constants, (len(sample.y), 1, 1))
    begin(run, LINEAR)
    linear, start = fit_linear(sample, start, loss, plan.linear_penalties, run)
    boosting = replace(run, deadline=part_of_time(share, run.deadline))
    growing = replace(run, deadline=part_of_time(TREES_SHARE, run.deadline))
    # Linear members draw nothing, but have random streams as in earlier versions, so that all other
    # families draw what they always drew.
    rng.spawn(len(sample.groups))
    trees: TreesFit | None = None
    if plan.trees:
        growing = growing if plan.samplers or bumps else run
        most = TREE_LAYERS * plan.n_layers
        grow = partial(fit_trees, sample, constants, loss, most, rng, growing, linear.loss)
        trees = kept_or_fitted(TREES, grow, rng, run)
    lowest = linear.loss if trees is None else min(linear.loss, trees.records[-1].loss)
    by_sampler: list[list[Boosted]] = []
    for k, (first, sampler) in enumerate(zip(plan.first_samplers, plan.samplers, strict=True)):
        if perf_counter() < boosting.deadline and not has_ended(run):
            settings = boosting_settings(sample, plan, first, sampler)
            boost = partial(boost_members, sample, start, loss, settings, rng, boosting, lowest)
            by_sampler.append(kept_or_fitted(boosted_phase(k), boost, rng, run))
            lowest = min(lowest, *(own.loss for own in by_sampler[-1]))
    kernel: KernelFit | None = None
    if bumps and perf_counter() < run.deadline and not has_ended(run):
        unlearned = (np.ones(bags.x.shape[1] - 1),) * len(bags.groups)
        metrics = by_sampler[0][0].metrics if by_sampler else unlearned
        fit_bumps = fit_kernel if every_row_a_centre(bags) else fit_local_kernels
        kernel = kept_or_fitted(KERNEL, partial(fit_bumps, bags, metrics, rng, run), rng, run)
    boosted = tuple(of_penalty for family in by_sampler for of_penalty in family)
    records = () if trees is None else trees.records
    records += tuple(record for family in by_sampler for record in family[0].records)
    return Families(constants, linear, boosted, kernel, trees), records


def kept_or_fitted(phase: str, fit: Callable[[], Family], rng: Generator, run: Run) -> Family:
    """The family of a phase: from the snapshot, if it is there, or else fitted and kept there.

    ``fit`` spawns streams of ``rng``. Those of a family that is not fitted again are spawned all
    the same, so that later families draw what they would have drawn.
    """
    begin(run, phase)
    if run.snapshot is None:
        return fit()
    streams: Any = rng.bit_generator.seed_seq
    known = run.snapshot.read(phase)
    if known is not None:
        family: Family = known[0]
        rng.spawn(known[1] - streams.n_children_spawned)
        return family
    family = fit()
    if not has_ended(run):
        run.snapshot.write(phase, family, streams.n_children_spawned)
    return family


def phases(plan: Plan) -> dict[str, float]:
    """The phases of a fit in their order, each with the share of the time that it may take."""
    boosted = {boosted_phase(k): BOOSTED_SHARE for k in range(len(plan.samplers))}
    left_out = {TREES} if not plan.trees else set()
    left_out |= {KERNEL} if not (plan.bumps and plan.loss.least_squares) else set()
    found = {LINEAR: SHARES[LINEAR], TREES: SHARES[TREES], **boosted, **SHARES}
    return {phase: share for phase, share in found.items() if phase not in left_out}


def boosted_phase(k: int) -> str:
    """The name of the phase of a boosted family, by its number."""
    return f"random features {k + 1}"


def begin(run: Run, phase: str) -> None:
    """Say that a phase begins."""
    if run.watch is not None:
        run.watch.begin(phase)


def has_ended(run: Run) -> bool:
    """Whether the fit is to end without another family."""
    return run.watch is not None and run.watch.ended


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
