"""Bags: which rows each member of an ensemble is fitted on, and which it holds out.

The rows are cut into folds. A member is fitted on some of them and holds out others, and its layers
are judged by the rows it holds out. As a rule member k is fitted on all folds but fold k
(:func:`bag`). Into which fold a row falls depends on the content of the rows and on the seed, not
on their order. Copies of a row are separate observations and may fall into different folds; a row
with a weight of two is one observation and stays in one fold.

Any other splits into rows to fit and rows to hold out are possible too (:func:`bag_split`): rows
that every member treats alike are then one fold. Where members are fitted on all rows but those
they hold out, as under splits by group, all of them predict new rows together. Otherwise, as under
splits by time, where the first member knows the oldest rows only, one more member is fitted on all
rows: it alone predicts new rows, and the others say when to stop and how large its errors are.

Shapes: x is (n, D+1), rows in homogeneous coordinates (z, 1), which are sorted in place; y is
(n, k); w is (n,).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.random import Generator

from rfrboost._numerics.arrays import content_order
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._typing import Array, Indices, Mask

# Number of folds if there is one member only. It holds out the first of them: a fifth of the rows.
ONE_MEMBER_FOLDS = 5

# The most folds with which members share draws of random features: there is a Gram matrix for each,
# 2 MB for 512 features. Splits that overlap cut rows into many folds.
MOST_SHARED_FOLDS = 100

# Numbers that are copied at a time when rows are sorted: 128 MB.
SORTED_ENTRIES = 2**24

# Some of the folds, for each member.
Some = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Splits:
    """For each member the rows it is fitted on and those it holds out: masks (members, n)."""

    fitted: Mask
    held: Mask

    def at(self, rows: Mask) -> "Splits":
        """The same splits of some of the rows."""
        return Splits(self.fitted[:, rows], self.held[:, rows])

    def folds(self) -> tuple[Array, Indices]:
        """What members do with each fold (folds, members), and the fold of every row (n,).

        0 stands for holding it out, 2 for being fitted on it, 1 for neither.
        """
        kinds, fold = np.unique(1 - self.held.T + self.fitted.T, axis=0, return_inverse=True)
        return kinds, fold.ravel()


@dataclass(frozen=True)
class Bags:
    """Rows sorted by fold, and the members that are fitted on them.

    ``x`` (n, D+1), ``y`` (n, k) and ``w`` (n,) are the rows, their targets and their weights, whose
    mean is one. ``folds`` are the rows of each fold; ``fitted`` are, for each member, the folds it
    is fitted on, and ``held`` those it holds out; ``holders`` are, for each fold that is held out,
    the members that do so. ``members`` are the members' numbers, and ``kept`` those of them that
    predict new rows. The rows held out by ``judge``, a member of the group with the number
    ``judging``, choose settings that all members share. ``held_out`` are the rows that some member
    holds out, for which there are out-of-fold predictions. ``groups`` are the members that share a
    draw of random features, and ``seen`` for each group the rows that some of its members are
    fitted on, from which features may be drawn. ``origin`` leads back to the rows as they were
    handed in: ``x[origin]`` is in that order.
    """

    x: Array
    y: Array
    w: Array
    folds: tuple[slice, ...]
    fitted: tuple[tuple[int, ...], ...]
    held: tuple[tuple[int, ...], ...]
    holders: dict[int, list[int]]
    kept: tuple[int, ...]
    judge: int
    judging: int
    members: tuple[int, ...]
    held_out: Indices
    groups: tuple[tuple[int, ...], ...]
    seen: dict[tuple[int, ...], Indices]
    origin: Indices
    sizes: Sizes

    @property
    def together(self) -> bool:
        """Whether the members share their draws, predict new rows together, and every row is one
        that some of them are fitted on: then a fit to all rows may stand for their mean."""
        every_row = union(self.fitted, self.members) == tuple(range(len(self.folds)))
        alike = len(self.groups) == 1 and self.kept == self.members
        return alike and every_row and len(self.members) > 1

    def batches(self) -> Iterator[tuple[int, slice]]:
        """All rows in batches, each with the number of its fold; no batch crosses two folds."""
        for k, fold in enumerate(self.folds):
            for begin in range(fold.start, fold.stop, self.sizes.batch_rows):
                yield k, slice(begin, min(begin + self.sizes.batch_rows, fold.stop))

    def split(self, member: int) -> tuple[Indices, Indices]:
        """The rows that a member is fitted on, and those that it holds out."""
        return rows_of(self.folds, self.fitted[member]), rows_of(self.folds, self.held[member])

    def out_of_fold(self, raw: Array) -> Array:
        """The out-of-fold predictions (rows of ``held_out``, d) among all predictions
        ``raw`` (n, members, d): the mean over the members that hold a row out."""
        held = self.holders.items()
        return np.vstack([raw[self.folds[k]][:, own].mean(axis=1) for k, own in held])

    def draw(self, rows: Indices, size: int, rng: Generator) -> Indices:
        """Draw ``size`` of these rows, with replacement, in proportion to weight."""
        cumulative = np.cumsum(self.w[rows])
        drawn = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
        chosen: Indices = rows[np.minimum(drawn, len(rows) - 1)]
        return chosen

    def restricted(self, rows: Indices) -> "Bags":
        """The same folds and members on some of the rows, given in rising order, as one group."""
        edges = [np.searchsorted(rows, [fold.start, fold.stop]) for fold in self.folds]
        folds = tuple(slice(int(a), int(b)) for a, b in edges)
        return replace(
            self,
            x=self.x[rows],
            y=np.asfortranarray(self.y[rows]),
            w=self.w[rows],
            folds=folds,
            held_out=rows_of(folds, union(self.held, self.members)),
            judging=0,
            groups=(self.members,),
            seen={self.members: rows_of(folds, union(self.fitted, self.members))},
            origin=np.arange(len(rows)),
        )


def bag(
    x: Array,
    y: Array,
    w: Array | None,
    n_bags: int,
    strata: bool,
    rng: Generator,
    sizes: Sizes = SIZES,
    one_label: bool = True,
) -> Bags:
    """Cut rows into ``n_bags`` folds, one for each member.

    With ``strata``, y are class indicators and each class is spread evenly over the folds; or, if
    not ``one_label``, indicators of labels of which a row may have several, and rare labels are
    spread. With one bag, rows are cut into ``ONE_MEMBER_FOLDS`` folds and the only member holds out
    the first. There are never more folds than rows.
    """
    n_bags = min(n_bags, len(y))
    order = content_order(x, y, rng)
    order = order[rng.permutation(len(order))]
    if strata:
        codes = y[order] @ np.arange(1, y.shape[1] + 1) if one_label else -commonness(y[order])
        order = order[np.argsort(codes, kind="stable")]
    fold = np.empty(len(order), np.intp)
    n_folds = n_bags if n_bags > 1 else ONE_MEMBER_FOLDS
    fold[order] = np.arange(len(order)) % n_folds
    return sorted_by_fold(x, y, w, order, fold, *all_but_own(n_bags, n_folds), sizes)


def commonness(y: Array) -> Array:
    """How many rows have the rarest label of each row (n,), by indicators of labels (n, L).

    For rows without a label that is n. The order of labels does not matter.
    """
    counts: Array = np.where(y > 0, y.sum(axis=0), len(y)).min(axis=1)
    return counts


def bag_split(
    x: Array, y: Array, w: Array | None, splits: Splits, rng: Generator, sizes: Sizes = SIZES
) -> Bags:
    """Members by given splits; rows that all members treat alike become a fold."""
    order = content_order(x, y, rng)
    order = order[rng.permutation(len(order))]
    kinds, fold = splits.folds()
    fitted = [tuple(map(int, np.flatnonzero(kind == 2))) for kind in kinds.T]
    held = [tuple(map(int, np.flatnonzero(kind == 0))) for kind in kinds.T]
    if (kinds == 1).any():
        fitted.append(tuple(range(len(kinds))))
        held.append(())
    return sorted_by_fold(x, y, w, order, fold, tuple(fitted), tuple(held), sizes)


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
    order = content_order(x, y, rng)
    return sorted_by_fold(x, y, w, order, fold, *all_but_own(1, 2), sizes)


def all_but_own(n_members: int, n_folds: int) -> tuple[Some, Some]:
    """The folds that members are fitted on, and hold out: member k holds out fold k."""
    fitted = tuple(tuple(i for i in range(n_folds) if i != k) for k in range(n_members))
    return fitted, tuple((k,) for k in range(n_members))


def sorted_by_fold(
    x: Array,
    y: Array,
    w: Array | None,
    order: Indices,
    fold: Indices,
    fitted: Some,
    held: Some,
    sizes: Sizes,
) -> Bags:
    """Sort rows by ``fold``, and by ``order`` within each fold; scale weights to a mean of one.

    ``x`` itself is sorted: of a table that fills the memory there must not be a copy.
    ``fitted`` and ``held`` are the folds of each member. A member that holds out nothing is the
    only one that is kept; of the others, the one that is fitted on most rows is then the judge.
    """
    order = order[np.argsort(fold[order], kind="stable")]
    edges = np.searchsorted(fold[order], np.arange(fold.max() + 2))
    folds = tuple(slice(int(a), int(b)) for a, b in pairwise(edges))
    members = tuple(range(len(fitted)))
    shared = len(order) >= sizes.shared_draw_rows and len(folds) <= MOST_SHARED_FOLDS
    groups = (members,) if shared else tuple((k,) for k in members)
    of_all_rows = tuple(k for k in members if not held[k])
    judges = [k for k in members if held[k]] if of_all_rows else [0]
    judge = max(judges, key=lambda k: len(rows_of(folds, fitted[k])))
    sort_rows(x, order)
    return Bags(
        x=x,
        y=np.asfortranarray(y[order]),
        w=np.ones(len(y)) if w is None else w[order] / w[order].mean(),
        folds=folds,
        fitted=fitted,
        held=held,
        holders=holders_of(held),
        kept=of_all_rows or members,
        judge=judge,
        judging=next(i for i, group in enumerate(groups) if judge in group),
        members=members,
        held_out=rows_of(folds, union(held, members)),
        groups=groups,
        seen={group: rows_of(folds, union(fitted, group)) for group in groups},
        origin=np.argsort(order),
        sizes=sizes,
    )


def sort_rows(x: Array, order: Indices) -> None:
    """Put the rows of an array in an order, in place: some columns at a time are copied."""
    width = max(SORTED_ENTRIES // len(x), 1)
    for begin in range(0, x.shape[1], width):
        some = slice(begin, begin + width)
        x[:, some] = x[order, some]


def union(folds: Some, members: tuple[int, ...]) -> tuple[int, ...]:
    """The folds of some members, in rising order."""
    return tuple(sorted({k for member in members for k in folds[member]}))


def holders_of(held: Some) -> dict[int, list[int]]:
    """For each fold that some member holds out, in rising order, the members that do."""
    found: dict[int, list[int]] = {k: [] for k in union(held, tuple(range(len(held))))}
    for member, folds in enumerate(held):
        for k in folds:
            found[k].append(member)
    return found


def rows_of(folds: tuple[slice, ...], some: tuple[int, ...]) -> Indices:
    """The rows of some folds."""
    return np.concatenate([np.empty(0, np.intp), *(np.r_[folds[k]] for k in some)])
