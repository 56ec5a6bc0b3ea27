"""Kernel members where rows are many: a kernel machine of its own in every leaf."""

from copy import deepcopy
from dataclasses import replace
from math import ceil, isinf, log2
from time import perf_counter

import numpy as np
from numpy.random import Generator

from rfrboost._auto.bags import Bags
from rfrboost._auto.kernel import MOST_CENTRES, KernelFit, KernelPiece, fit_kernel
from rfrboost._auto.members import Run
from rfrboost._model.leaves import Leaf, LocalSums, Splits, grow
from rfrboost._numerics.arrays import frozen
from rfrboost._typing import Array, Indices

# Held-out rows that a leaf needs of every member, to choose its settings by.
FEWEST_HELD_OUT = 50


# Where time is limited, leaves may be so many times smaller.
SMALLER = (1, 2, 4, 8)


# So many leaves, of so many times fewer rows than the largest, are fitted to see how long it takes.
TRIALS, TRIAL_SMALLER = 4, 4


# How much longer it may take than they say. The cost of a leaf goes with the square of its rows.
MARGIN = 1.5


def fit_bumps(bags: Bags, metrics: tuple[Array, ...], rng: Generator, run: Run) -> KernelFit | None:
    """Members of bumps: one kernel machine, or one a leaf; None when time runs out on the way."""
    if len(bags.seen(bags.groups[0])) <= MOST_CENTRES:
        return fit_kernel(bags, metrics, rng, run)
    L = metrics[0]
    most = MOST_CENTRES if isinf(run.left()) else affordable_rows(bags, L, rng, run)
    splits, parts = leaves_of(bags, L, most, rng)
    if splits.n_leaves == 1:
        return fit_kernel(bags, metrics, rng, run)
    present = [i for i, rows in enumerate(parts) if len(rows)]
    alone = replace(run, team=map)
    own = dict(zip(present, rng.spawn(len(present)), strict=True))
    held = np.zeros(bags.y.shape)

    def fit(i: int) -> KernelFit | None:
        leaf = leaf_bags(bags, parts[i])
        fitted = fit_kernel(leaf, (L,), own[i], alone) if run.more_time() else None
        if fitted is not None:
            held[parts[i][leaf.held_out()]] = fitted.out_of_fold
        return fitted

    fits = dict(zip(present, run.team(fit, present), strict=True))
    if any(fit is None for fit in fits.values()):
        return None
    nearest = [min(present, key=lambda j: abs(j - i)) for i in range(splits.n_leaves)]
    own_sums = {i: leaf_of(fits[i].pieces[0]) for i in present}
    sums = LocalSums(splits, tuple(own_sums[i] for i in nearest))
    unit = frozen(np.eye(sums.width))
    piece = KernelPiece(bags.members, sums, unit, frozen(np.zeros(sums.width)))
    return KernelFit((piece,), held[bags.held_out()])


def leaves_of(bags: Bags, L: Array, most: int, rng: Generator) -> tuple[Splits, list[Indices]]:
    """Leaves of at most so many rows, and the rows of each; larger ones, perhaps one, where
    held-out rows would be too few to choose the settings of each."""
    X, seen = bags.x[:, :-1], bags.seen(bags.groups[0])
    while True:
        splits = grow(X[seen], L, most, rng)
        where = splits(X)
        parts = [np.flatnonzero(where == leaf) for leaf in range(splits.n_leaves)]
        held_out = [np.bincount(where[bags.folds[k]], minlength=len(parts)) for k in bags.members]
        present = [len(rows) > 0 for rows in parts]
        if splits.n_leaves == 1 or np.min(held_out, axis=0)[present].min() >= FEWEST_HELD_OUT:
            return splits, parts
        most *= 2


def affordable_rows(bags: Bags, L: Array, rng: Generator, run: Run) -> int:
    """The largest leaves that there is time for."""
    n, m, alone = len(bags.y), MOST_CENTRES // TRIAL_SMALLER, replace(run, team=map)
    # Another generator, so that a limit which is far away changes nothing.
    own = deepcopy(rng)
    trials = [leaf_bags(bags, np.sort(own.permutation(n)[:m])) for _ in range(TRIALS)]
    began = perf_counter()
    list(run.team(lambda leaf: fit_kernel(leaf, (L,), deepcopy(own), alone), trials))
    seconds = MARGIN * (perf_counter() - began) / TRIALS

    def cost(most: int) -> float:
        leaves = 2 ** ceil(log2(n / most))
        return leaves * seconds * (n / leaves / m) ** 2

    sizes = [MOST_CENTRES // smaller for smaller in SMALLER]
    return next((most for most in sizes if cost(most) <= run.left()), sizes[-1])


def leaf_of(piece: KernelPiece) -> Leaf:
    """A kernel machine as a leaf of many."""
    return Leaf(piece.features, piece.C, frozen(piece.c))


def leaf_bags(bags: Bags, rows: Indices) -> Bags:
    """The same folds and members on some of the rows, which are in order."""
    edges = [np.searchsorted(rows, [fold.start, fold.stop]) for fold in bags.folds]
    return Bags(
        x=bags.x[rows],
        y=np.asfortranarray(bags.y[rows]),
        w=bags.w[rows],
        folds=tuple(slice(int(a), int(b)) for a, b in edges),
        members=bags.members,
        groups=(bags.members,),
        origin=np.arange(len(rows)),
        sizes=bags.sizes,
    )
