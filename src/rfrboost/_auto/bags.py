"""Bags: which rows each member of an ensemble is fitted on, and which it holds out.

The rows are cut into folds. Member k is fitted on all folds but fold k, and its layers are judged
by the rows of fold k. Into which fold a row falls depends on the content of the rows and on the
seed, not on their order. Copies of a row are separate observations and may fall into different
folds; a row with a weight of two is one observation and stays in one fold.

Shapes: x is (n, D+1), rows in homogeneous coordinates (z, 1); y is (n, k); w is (n,).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.random import Generator

from rfrboost._numerics.arrays import content_order
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._typing import Array, Indices

# Number of folds if there is one member only. It holds out the first of them: a fifth of the rows.
ONE_MEMBER_FOLDS = 5


@dataclass(frozen=True)
class Bags:
    """Rows sorted by fold, and the members that are fitted on them.

    ``x`` (n, D+1), ``y`` (n, k) and ``w`` (n,) are the rows, their targets and their weights, whose
    mean is one. ``folds`` are the rows of each fold. ``members`` are the folds that a member holds
    out: all folds, or only the first. ``held_out`` are the rows of these folds, for which there are
    out-of-fold predictions. ``groups`` are the members that share a draw of random features, and
    ``seen`` for each group the rows that some of its members are fitted on, from which features may
    be drawn. ``origin`` leads back to the rows as they were handed in: ``x[origin]`` is in that
    order.
    """

    x: Array
    y: Array
    w: Array
    folds: tuple[slice, ...]
    members: tuple[int, ...]
    held_out: Indices
    groups: tuple[tuple[int, ...], ...]
    seen: dict[tuple[int, ...], Indices]
    origin: Indices
    sizes: Sizes

    def batches(self) -> Iterator[tuple[int, slice]]:
        """All rows in batches, each with the number of its fold; no batch crosses two folds."""
        for k, fold in enumerate(self.folds):
            for begin in range(fold.start, fold.stop, self.sizes.batch_rows):
                yield k, slice(begin, min(begin + self.sizes.batch_rows, fold.stop))

    def training(self, member: int) -> Indices:
        """The rows that a member is fitted on."""
        return rows_outside(self.folds[member], len(self.y))

    def out_of_fold(self, raw: Array) -> Array:
        """The out-of-fold predictions (rows of ``held_out``, d) among all predictions
        ``raw`` (n, members, d)."""
        return np.vstack([raw[self.folds[k], k] for k in self.members])

    def draw(self, rows: Indices, size: int, rng: Generator) -> Indices:
        """Draw ``size`` of these rows, with replacement, in proportion to weight."""
        cumulative = np.cumsum(self.w[rows])
        drawn = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
        chosen: Indices = rows[np.minimum(drawn, len(rows) - 1)]
        return chosen

    def sample(self, rows: Indices, size: int, rng: Generator) -> Indices:
        """Sample ``size`` of these rows without replacement, heavy rows with a higher chance.

        All of them are returned if there are no more than ``size``.
        """
        if len(rows) <= size:
            return rows
        waiting = rng.standard_exponential(len(rows)) / np.maximum(self.w[rows], 1e-300)
        return np.sort(rows[np.argpartition(waiting, size)[:size]])

    def restricted(self, rows: Indices) -> "Bags":
        """The same folds and members on some of the rows, given in rising order, as one group."""
        edges = [np.searchsorted(rows, [fold.start, fold.stop]) for fold in self.folds]
        folds = tuple(slice(int(a), int(b)) for a, b in edges)
        return Bags(
            x=self.x[rows],
            y=np.asfortranarray(self.y[rows]),
            w=self.w[rows],
            folds=folds,
            members=self.members,
            held_out=rows_of(folds, self.members),
            groups=(self.members,),
            seen={self.members: seen_by(self.members, folds, len(rows))},
            origin=np.arange(len(rows)),
            sizes=self.sizes,
        )


def bag(
    x: Array,
    y: Array,
    w: Array | None,
    n_bags: int,
    strata: bool,
    rng: Generator,
    sizes: Sizes = SIZES,
) -> Bags:
    """Cut rows into ``n_bags`` folds, one for each member.

    With ``strata``, y are class indicators and each class is spread evenly over the folds. With one
    bag, rows are cut into ``ONE_MEMBER_FOLDS`` folds and the only member holds out the first. There
    are never more folds than rows.
    """
    n_bags = min(n_bags, len(y))
    order = content_order(x, y, rng)
    order = order[rng.permutation(len(order))]
    if strata:
        codes = y[order] @ np.arange(1, y.shape[1] + 1)
        order = order[np.argsort(codes, kind="stable")]
    fold = np.empty(len(order), np.intp)
    fold[order] = np.arange(len(order)) % (n_bags if n_bags > 1 else ONE_MEMBER_FOLDS)
    return sorted_by_fold(x, y, w, order, fold, n_bags, sizes)


def bag_apart(
    x: Array,
    y: Array,
    w: Array | None,
    held: tuple[Array, Array],
    rng: Generator,
    sizes: Sizes = SIZES,
) -> Bags:
    """One member, fitted on all rows; it holds out the validation rows ``held`` = (x, y).

    Validation rows have no weights; each counts as much as an average row.
    """
    n, m = len(y), len(held[1])
    x = np.vstack([x, held[0]])
    y = np.vstack([y, held[1]])
    w = np.r_[np.ones(n) if w is None else w / np.sort(w).mean(), np.ones(m)]
    fold = np.r_[np.ones(n, np.intp), np.zeros(m, np.intp)]
    return sorted_by_fold(x, y, w, content_order(x, y, rng), fold, 1, sizes)


def sorted_by_fold(
    x: Array,
    y: Array,
    w: Array | None,
    order: Indices,
    fold: Indices,
    n_members: int,
    sizes: Sizes,
) -> Bags:
    """Sort rows by ``fold``, and by ``order`` within each fold; scale weights to a mean of one."""
    order = order[np.argsort(fold[order], kind="stable")]
    edges = np.searchsorted(fold[order], np.arange(fold.max() + 2))
    folds = tuple(slice(int(a), int(b)) for a, b in pairwise(edges))
    members = tuple(range(n_members))
    shared = len(order) >= sizes.shared_draw_rows
    groups = (members,) if shared else tuple((k,) for k in members)
    return Bags(
        x=x[order],
        y=np.asfortranarray(y[order]),
        w=np.ones(len(y)) if w is None else w[order] / w[order].mean(),
        folds=folds,
        members=members,
        held_out=rows_of(folds, members),
        groups=groups,
        seen={group: seen_by(group, folds, len(order)) for group in groups},
        origin=np.argsort(order),
        sizes=sizes,
    )


def rows_of(folds: tuple[slice, ...], some: tuple[int, ...]) -> Indices:
    """The rows of some folds."""
    return np.concatenate([np.r_[folds[k]] for k in some])


def rows_outside(fold: slice, n: int) -> Indices:
    """The rows of all other folds."""
    rows: Indices = np.r_[0 : fold.start, fold.stop : n]
    return rows


def seen_by(group: tuple[int, ...], folds: tuple[slice, ...], n: int) -> Indices:
    """The rows that some member of a group is fitted on: with several members, all n rows."""
    return rows_outside(folds[group[0]], n) if len(group) == 1 else np.arange(n)
