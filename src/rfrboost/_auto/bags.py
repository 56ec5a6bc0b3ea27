"""Which rows every member of a bagged fit holds out, and what the members share.

Rows are cut into folds; member k is fitted on all folds but its own, which says when it should
stop. Which row falls where depends on the rows there are, not on their order. Copies of a row are
observations like any others and may fall into different folds; a weight stays in one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.random import Generator

from rfrboost._numerics.arrays import content_order
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._typing import Array, Indices

# Folds that rows are cut into where only one of them is held out.
SINGLE = 5


@dataclass(frozen=True)
class Bags:
    """Rows sorted by fold: x is (n, D+1) and homogeneous, y (n, k), w their weights.

    ``folds`` are the rows of each fold; ``members`` the folds that a member holds out (all, or the
    first of several); ``groups`` the members that share their draws; ``origin`` the place of every
    row that was handed in.
    """

    x: Array
    y: Array
    w: Array
    folds: tuple[slice, ...]
    members: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    origin: Indices
    sizes: Sizes

    def blocks(self) -> Iterator[tuple[int, slice]]:
        """All rows in blocks that lie within one fold each, with the number of the fold."""
        for k, fold in enumerate(self.folds):
            for begin in range(fold.start, fold.stop, self.sizes.batch_rows):
                yield k, slice(begin, min(begin + self.sizes.batch_rows, fold.stop))

    def training(self, member: int) -> Indices:
        """The rows that a member is fitted on."""
        held = self.folds[member]
        return np.r_[0 : held.start, held.stop : len(self.y)]

    def seen(self, group: tuple[int, ...]) -> Indices:
        """The rows that some member of a group is fitted on: those it may draw features from."""
        return self.training(group[0]) if len(group) == 1 else np.arange(len(self.y))

    def held_out(self) -> Indices:
        """The rows that some member holds out: those that have out-of-fold predictions."""
        return np.concatenate([np.r_[self.folds[k]] for k in self.members])

    def out_of_fold(self, raw: Array) -> Array:
        """For every held-out row what its member predicts; ``raw`` is (n, members, d)."""
        return np.vstack([raw[self.folds[k], k] for k in self.members])

    def draw(self, rows: Indices, size: int, rng: Generator) -> Indices:
        """``size`` of these rows, with replacement, in proportion to weight."""
        cumulative = np.cumsum(self.w[rows])
        drawn = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
        return rows[np.minimum(drawn, len(rows) - 1)]

    def sample(self, rows: Indices, size: int, rng: Generator) -> Indices:
        """Up to ``size`` different ones of these rows, heavier ones first in line."""
        if len(rows) <= size:
            return rows
        waiting = rng.standard_exponential(len(rows)) / np.maximum(self.w[rows], 1e-300)
        return np.sort(rows[np.argpartition(waiting, size)[:size]])


def bag(
    x: Array,
    y: Array,
    w: Array | None,
    n_bags: int,
    strata: bool,
    rng: Generator,
    sizes: Sizes = SIZES,
) -> Bags:
    """Cut rows into ``n_bags`` folds, one a member, each class shared out evenly if ``strata``.

    With one bag, rows are cut as for five and there is one member, which holds out the first fold.
    There are never more folds than rows.
    """
    n_bags = min(n_bags, len(y))
    order = content_order(x, y, rng)
    order = order[rng.permutation(len(order))]
    if strata:
        codes = y[order] @ np.arange(1, y.shape[1] + 1)
        order = order[np.argsort(codes, kind="stable")]
    fold = np.empty(len(order), np.intp)
    fold[order] = np.arange(len(order)) % (n_bags if n_bags > 1 else SINGLE)
    return sorted_by_fold(x, y, w, order, fold, n_bags, sizes)


def bag_apart(
    x: Array,
    y: Array,
    w: Array | None,
    held: tuple[Array, Array],
    rng: Generator,
    sizes: Sizes = SIZES,
) -> Bags:
    """One member, fitted on all rows; it holds out rows ``held``, which are appended."""
    n, m = len(y), len(held[1])
    x, y = np.vstack([x, held[0]]), np.vstack([y, held[1]])
    w = np.r_[np.ones(n) if w is None else w / w.mean(), np.ones(m)]
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
    """Bags of these rows, in ``order`` within each fold; weights are scaled to a mean of one."""
    order = order[np.argsort(fold[order], kind="stable")]
    edges = np.searchsorted(fold[order], np.arange(fold.max() + 2))
    folds = tuple(slice(int(a), int(b)) for a, b in pairwise(edges))
    members = tuple(range(n_members))
    return Bags(
        x=x[order],
        y=np.asfortranarray(y[order]),
        w=np.ones(len(y)) if w is None else w[order] / w.mean(),
        folds=folds,
        members=members,
        groups=(members,) if len(order) >= sizes.shared_draw_rows else tuple((k,) for k in members),
        origin=np.argsort(order),
        sizes=sizes,
    )
