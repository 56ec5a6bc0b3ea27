"""Kernel members where rows are many: one kernel machine for each leaf of a tree.

The time of a kernel machine grows faster than the square of its rows. Rows are therefore cut into
leaves of at most ``Sizes.most_centres`` rows, each of which is fitted by itself
(:mod:`rfrboost._auto.kernel`). A prediction uses the bumps of the row's own leaf only. Under a time
limit leaves are made smaller. Up to ``Sizes.most_centres`` rows one kernel machine of all rows is
affordable, and this module is not needed.
"""

from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from math import ceil, isinf, log2
from time import perf_counter
from typing import cast

import numpy as np
from numpy.random import Generator

from rfrboost._auto.bags import Bags
from rfrboost._auto.kernel import KernelFit, KernelLayer, fit_kernel
from rfrboost._auto.members import Run, threads_as_workers
from rfrboost._model.bumps import Bumps
from rfrboost._model.leaves import Leaf, LocalSums, Splits, grow
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.threads import OutOfTimeError
from rfrboost._typing import Array, Indices

# Under a time limit the most rows of a leaf are divided by the first of these numbers with which
# all leaves can be fitted in time; with none of them there are no kernel members.
DIVISORS = (1, 2, 4, 8)

# Number of leaves that are fitted to measure how long a leaf takes, and how many times fewer rows
# they have than the largest leaf, so that measuring takes little of the time.
TRIALS = 4
TRIAL_DIVISOR = 4

# Factor on the estimated time, for safety: the estimate grows with the square of a leaf's rows,
# while factorisations grow with their cube.
MARGIN = 1.5


def fit_local_kernels(
    bags: Bags, metrics: tuple[Array, ...], rng: Generator, run: Run
) -> KernelFit | None:
    """Fit a kernel machine in every leaf; None if the deadline passes meanwhile.

    If there are too few held-out rows for leaves, one kernel machine is fitted on a sample of
    centres.
    """
    L = metrics[bags.judging]
    most = bags.sizes.most_centres
    most_rows = most if isinf(run.deadline) else affordable_rows(bags, L, rng, run)
    if most_rows is None:
        return None
    try:
        splits, parts = leaves_of(bags, L, most_rows, rng, run.deadline)
    except OutOfTimeError:
        return None
    if splits.n_leaves == 1:
        return fit_kernel(bags, metrics, rng, run)
    present = [i for i, rows in enumerate(parts) if len(rows)]
    generators = dict(zip(present, rng.spawn(len(present)), strict=True))

    def made(i: int) -> LeafRows:
        return LeafRows(bags.restricted(parts[i]), L, generators[i], run.deadline - perf_counter())

    leaves = {}
    held_out = np.zeros(bags.y.shape)
    for i, found in zip(present, run.workers(fit_leaf, made, present), strict=True):
        if found is None:
            return None
        fitted, held = found
        layer = fitted.layers[0]
        leaves[i] = Leaf(cast(Bumps, layer.features), frozen(layer.C), frozen(layer.c))
        held_out[parts[i][held]] = fitted.out_of_fold
    # A leaf that no row fell into is given the kernel machine of the nearest leaf in the tree.
    nearest = [min(present, key=lambda j: abs(j - i)) for i in range(splits.n_leaves)]
    sums = LocalSums(splits, tuple(leaves[i] for i in nearest))
    layer = KernelLayer(bags.members, sums, np.eye(sums.width), np.zeros(sums.width))
    return KernelFit((layer,), held_out[bags.held_out])


@dataclass(frozen=True)
class LeafRows:
    """All that the fit of a leaf needs, also in another process.

    ``bags`` are the rows of the leaf, ``L`` is the metric, and ``seconds`` are left until the
    deadline.
    """

    bags: Bags
    L: Array
    rng: Generator
    seconds: float


def fit_leaf(leaf: LeafRows) -> tuple[KernelFit, Indices] | None:
    """The kernel machine of a leaf, and which of its rows are held out; None without time for it.

    It is fitted on one thread, because leaves are shared out to threads or processes.
    """
    if leaf.seconds <= 0:
        return None
    fitted = fit_kernel(leaf.bags, (leaf.L,), leaf.rng, on_one_thread(leaf.seconds))
    return None if fitted is None else (fitted, leaf.bags.held_out)


def on_one_thread(seconds: float) -> Run:
    """The run of one leaf, which ends after these seconds."""
    alone = partial(threads_as_workers, map)
    return Run(map, map, map, alone, perf_counter() + seconds, None)


def leaves_of(
    bags: Bags, L: Array, most_rows: int, rng: Generator, deadline: float = np.inf
) -> tuple[Splits, list[Indices]]:
    """A tree with leaves of at most ``most_rows`` rows, and the rows of each leaf.

    Settings are chosen in each leaf by its held-out rows. Leaves are therefore made larger, in the
    end one leaf of all rows, while some leaf has fewer than ``Sizes.leaf_held_out_rows`` rows that
    some member holds out, or is fitted on.
    """
    X = bags.x[:, :-1]
    seen = bags.seen[bags.groups[bags.judging]]
    needed = [rows for k in bags.members for rows in bags.split(k) if len(rows)]
    while True:
        splits = grow(X, seen, L, most_rows, rng, deadline)
        where = splits(X)
        parts = [np.flatnonzero(where == leaf) for leaf in range(splits.n_leaves)]
        counts = [np.bincount(where[rows], minlength=len(parts)) for rows in needed]
        present = [len(rows) > 0 for rows in parts]
        fewest = np.min(counts, axis=0)[present].min()
        if splits.n_leaves == 1 or fewest >= bags.sizes.leaf_held_out_rows:
            return splits, parts
        most_rows *= 2


def affordable_rows(bags: Bags, L: Array, rng: Generator, run: Run) -> int | None:
    """The most rows of a leaf such that all leaves are fitted before the deadline, if any."""
    n = len(bags.y)
    most = bags.sizes.most_centres
    m = most // TRIAL_DIVISOR
    # A copy of the generator, so that a limit which is far away changes nothing.
    own = deepcopy(rng)
    trials = [np.sort(own.permutation(n)[:m]) for _ in range(TRIALS)]
    began = perf_counter()

    def made(rows: Indices) -> LeafRows:
        return LeafRows(bags.restricted(rows), L, deepcopy(own), run.deadline - perf_counter())

    list(run.workers(fit_leaf, made, trials))
    ended = perf_counter()
    seconds = MARGIN * (ended - began) / TRIALS

    def cost(rows: int) -> float:
        leaves = 2 ** ceil(log2(n / rows))
        return float(leaves * seconds * (n / leaves / m) ** 2)

    sizes = [most // divisor for divisor in DIVISORS]
    return next((rows for rows in sizes if cost(rows) <= run.deadline - ended), None)
