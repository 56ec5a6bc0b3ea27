"""Trees as random features: sums of leaf values, for what neurons and bumps fit badly.

An inner node of a tree is a split: it compares one column with a threshold. Where a target jumps at
thresholds or depends on interacting categories, few splits describe it. A leaf indicator is a
random feature like any other, and its coefficients are the leaf's values. :class:`Forest` is a
feature map of their sums: one feature for each member and output, the sum over the member's trees.
The trees are grown in :mod:`rfrboost._auto.trees`. Their derivatives are zero, so that no metric
can be learned from them.

Nodes are counted from 0: first the splits of all trees, Q of them, then all leaves. A row goes to
the second child of a split if its column is above the threshold, else to the first. Columns are
compared in single precision, as trees were grown. Of a few rows the path through every tree is
followed; the leaves of many rows are looked up in tables (:class:`LeafMasks`).

Shapes: m members, T trees for each of them, d outputs; rows are (x, 1), of shape (n, D + 1).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import product
from rfrboost._typing import Array, Indices

#: indices of nodes and columns
Numbers = NDArray[np.int32]
#: sets of leaves: bit i says whether a tree's i-th leaf, counted from the left, is in the set
Masks = NDArray[np.uint64]

# Rows whose sums are computed at a time, so that their columns, leaves and sums stay in a
# processor's cache.
SUMMED_ROWS = 1024
# Pairs of a row and a tree that are followed at a time: 128 KB for each array of their nodes, which
# stays in a processor's cache too.
FOLLOWED = 2**14

# Number of levels after which pairs that have reached a leaf are left out. Leaving them out takes
# time as well, and most pairs have many more levels to go.
STEPS = 4

# Leaves are found by masks if there are at least this many rows, and this many for each column of
# x, and if trees split by at most this many columns. With fewer rows or more columns, looking up
# takes longer than following the splits.
MASKED_ROWS = 24
MASKED_ROWS_A_COLUMN = 2
MASKED_COLUMNS = 80
# Bits of a mask, hence the most leaves of a tree with masks.
MASK_BITS = 64
# Trees whose masks are in one table. With more trees tables grow, with fewer there are more calls.
MASKED_TREES = 32
# The most trees of a forest with masks, which then take about 50 MB. The arrays that have an entry
# for every threshold of the forest in every table grow with the square of the number of trees.
MOST_MASKED = 2048


@dataclass(frozen=True)
class Forest:
    """A feature map of m·d features: for each member and output, the sum of a row's leaf values.

    ``columns`` and ``thresholds`` (Q,) are the splits, and ``children`` (Q, 2) the indices of the
    nodes they lead to, which are always larger than their own. ``roots`` (m, T) are the indices of
    the first nodes of all trees. ``values`` (leaves, d) are the values of the leaves, in single
    precision unless they were made by :func:`led`.
    """

    columns: Numbers
    thresholds: Array
    children: Numbers
    roots: Numbers
    values: Array

    # What every feature map states (see FeatureMap); sums are always in double precision.
    bound: ClassVar[float] = np.inf
    dtype: ClassVar[np.dtype] = np.dtype(np.float64)

    @property
    def width(self) -> int:
        return int(len(self.roots) * self.values.shape[1])

    def astype(self, dtype: type[np.floating], largest_input: float) -> "Forest":
        return self

    @cached_property
    def depth(self) -> int:
        """The most splits between a root and a leaf."""
        nodes = np.unique(self.roots)
        splits = nodes[nodes < len(self.columns)]
        depth = 0
        while len(splits):
            depth += 1
            nodes = np.unique(self.children[splits])
            splits = nodes[nodes < len(self.columns)]
        return depth

    @cached_property
    def nodes(self) -> tuple[Indices, Array, Indices]:
        """Columns and thresholds (nodes,) of all nodes, and the two children of each (2·nodes,).

        Both children of a leaf are the leaf itself, so that following it changes nothing.
        """
        leaves = np.arange(len(self.values)) + len(self.columns)
        columns = np.concatenate([self.columns, np.zeros(len(leaves))]).astype(np.intp)
        never = np.full(len(leaves), np.inf, self.thresholds.dtype)
        thresholds = np.concatenate([self.thresholds, never])
        children = np.concatenate([self.children.ravel(), leaves.repeat(2)]).astype(np.intp)
        return columns, thresholds, children

    @cached_property
    def masks(self) -> "LeafMasks | None":
        """Tables by which the leaves of many rows are found, or None: see :func:`leaf_masks`."""
        return leaf_masks(self)

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle holds: the trees alone, without the arrays cached for predictions."""
        return {own.name: self.__dict__[own.name] for own in fields(self)}

    def __call__(self, rows: Array, out: Array) -> None:
        members, d = len(self.roots), self.values.shape[1]
        for begin in range(0, len(rows), SUMMED_ROWS):
            some = slice(begin, min(begin + SUMMED_ROWS, len(rows)))
            x = in_single(rows[some, :-1])
            sums = np.zeros((len(x), members, d))
            for trees, leaves in self._leaves(x):
                values = self.values.take(leaves.ravel(), axis=0).reshape(*leaves.shape, d)
                sums[:, trees.start // self.roots.shape[1]] += values.sum(axis=1, dtype=float)
            out[some] = sums.reshape(len(x), -1)

    def add_compiled(self, trees: ModuleType, rows: Array, total: Array) -> None:
        """Add to ``total`` (n, d) the leaf values of all trees; for forests of one member only."""
        x = in_single(rows[:, :-1])
        n, D = x.shape
        if n >= max(MASKED_ROWS, MASKED_ROWS_A_COLUMN * D) and self.masks is not None:
            above = self.masks.above(x)
            for group in self.masked_values:
                trees.add_masked(above, *group, total)
        else:
            trees.add_followed(x, *self.walk, total)

    @cached_property
    def walk(self) -> tuple[Any, ...]:
        """Columns, thresholds, children (2·Q,), roots and values, as compiled sums take them."""
        arrays = self.columns, self.thresholds, self.children.ravel(), self.roots.ravel()
        return *map(np.array, arrays), np.array(self.values)

    @cached_property
    def masked_values(self) -> list[tuple[Any, ...]]:
        """The tables of all groups of trees with masks, as compiled sums take them."""
        assert self.masks is not None
        number = {j: i for i, j in enumerate(self.masks.thresholds)}
        return [group.flat(number, self.values) for group in self.masks.groups]

    def leaf_numbers(self, x: Array) -> Indices:
        """The index among all leaves of the leaf that each row of x (n, D) is in, for every tree.

        The result is (n, m·T); trees are counted member by member.
        """
        numbers = np.empty((len(x), self.roots.size), np.intp)
        for begin in range(0, len(x), SUMMED_ROWS):
            some = slice(begin, min(begin + SUMMED_ROWS, len(x)))
            for trees, leaves in self._leaves(in_single(x[some])):
                numbers[some, trees] = leaves
        return numbers

    def _leaves(self, x: Array) -> Iterator[tuple[slice, Indices]]:
        """Pairs of a slice of trees of one member, and the leaves (n, trees) of all rows in them.

        Trees are counted member by member; x (n, D) is in single precision.
        """
        n, D = x.shape
        if n >= max(MASKED_ROWS, MASKED_ROWS_A_COLUMN * D) and self.masks is not None:
            yield from self.masks.leaves(x)
            return
        step = max(FOLLOWED // max(n, 1), 1)
        for trees in slices_of_members(self.roots, step):
            yield trees, self._followed(x, self.roots.ravel()[trees]).T

    def _followed(self, x: Array, roots: Numbers) -> Indices:
        """The leaves (roots, n) that rows reach from these roots (roots,), level by level."""
        columns, thresholds, children = self.nodes
        n, D = x.shape
        splits = len(self.columns)
        flat = np.ascontiguousarray(x).ravel()
        reached = roots.astype(np.intp).repeat(n)
        pairs = np.arange(len(reached))
        starts = np.tile(np.arange(n) * D, len(roots))
        node = reached
        for level in range(self.depth):
            above = flat.take(columns.take(node) + starts) > thresholds.take(node)
            node = children.take(node + node + above)
            if level % STEPS == STEPS - 1:
                reached[pairs] = node
                going = np.flatnonzero(node < splits)
                pairs, starts, node = pairs.take(going), starts.take(going), node.take(going)
                if not len(node):
                    break
        reached[pairs] = node
        return reached.reshape(len(roots), n) - splits

    def pullback(self, rows: Array) -> Callable[[Array], Array]:
        """The chain rule at rows (x, 1): sums of leaf values are constant almost everywhere, so
        that all derivatives are zero."""
        return lambda cotangent: np.zeros((len(rows), rows.shape[1] - 1))


@dataclass(frozen=True)
class LeafMasks:
    """Finds the leaves of many rows by sets of bits (QuickScorer: Lucchese et al., 2015).

    If a row is above the threshold of a split, it is in none of the leaves below the split's first
    child: the split rules them out. Of the leaves that no split rules out, the leftmost is the
    row's. Which leaves all splits of a tree by one column rule out depends only on how many of
    their thresholds the row is above. It is looked up in a table, with one look-up for each column
    instead of one step for each split.

    ``thresholds`` has all thresholds of each column, in order. The tables of a thousand trees of 64
    leaves take about 20 MB. They are made at the first prediction for many rows; files and pickles
    do not hold them.
    """

    thresholds: dict[int, Array]
    groups: list["MaskedTrees"]

    def above(self, x: Array) -> Indices:
        """How many thresholds of each column (columns, n) each row of x (n, D) is above."""
        counts = [np.searchsorted(t, x[:, j]) for j, t in self.thresholds.items()]
        return np.array(counts, np.intp).reshape(len(counts), len(x))

    def leaves(self, x: Array) -> Iterator[tuple[slice, Indices]]:
        """Pairs of a slice of trees, and the leaves (n, trees) of the rows x (n, D) in them."""
        above = {j: np.searchsorted(t, x[:, j]) for j, t in self.thresholds.items()}
        for group in self.groups:
            yield group.trees, group.leaves(len(x), above)


@dataclass(frozen=True)
class MaskedTrees:
    """Masks of the slice ``trees`` of a forest's trees, here T of them.

    ``tables`` has two arrays for each column that these trees split by, at b different thresholds.
    The second, (b + 1, T), has the masks of the leaves that are left if a row is above 0, 1, …, b
    of these thresholds. The first says which of its rows to take if a row is above 0, 1, … of the
    column's thresholds in the whole forest. ``leaf_at`` (T·64,) is the index among all leaves of
    the i-th leaf of each tree.
    """

    trees: slice
    tables: dict[int, tuple[NDArray[np.uint16], Masks]]
    leaf_at: Indices

    def leaves(self, n: int, above: dict[int, Indices]) -> Indices:
        """The leaves (n, T) of n rows in these trees.

        ``above`` has for each column how many thresholds of the forest each row is above, (n,).
        """
        count = self.trees.stop - self.trees.start
        left = np.full((n, count), ~np.uint64(0))
        some = np.empty_like(left)
        for j, (place, masks) in self.tables.items():
            masks.take(place.take(above[j]), axis=0, out=some, mode="clip")
            left &= some
        # left & −left is the lowest bit that is set, a power of two. Its exponent, the index of the
        # leaf in the tree, is read from the bits of a float64: from bit 52 on, plus 1023.
        np.negative(left, out=some)
        some &= left
        lowest = (some.astype(np.float64).view(np.int64) >> 52) - 1023
        lowest += np.arange(count) * MASK_BITS
        return self.leaf_at.take(lowest)

    def flat(self, number: dict[int, int], values: Array) -> tuple[Any, ...]:
        """The tables as arrays: see :func:`rfrboost._kernels.trees.add_masked`.

        ``number`` is the place of each column among the forest's, ``values`` are (leaves, d).
        """
        count = self.trees.stop - self.trees.start
        places = [place for place, _ in self.tables.values()]
        masks = [table for _, table in self.tables.values()]
        starts = np.cumsum([0, *map(len, places)])[:-1]
        firsts = np.cumsum([0, *map(len, masks)])[:-1]
        columns = np.array([number[j] for j in self.tables], np.intp)
        own = values[self.leaf_at].reshape(count, MASK_BITS, -1).transpose(2, 0, 1)
        return (
            columns,
            starts.astype(np.intp),
            np.concatenate([*places, np.empty(0, np.uint16)]),
            firsts.astype(np.intp),
            np.concatenate([*masks, np.empty((0, count), np.uint64)]),
            np.ascontiguousarray(own),
        )


def leaf_masks(forest: Forest) -> LeafMasks | None:
    """Masks of all trees; None if a tree has more than MASK_BITS leaves, if there are more than
    MOST_MASKED trees or MASKED_COLUMNS columns, or if a node is in several trees or in none."""
    if forest.roots.size > MOST_MASKED:
        return None
    splits = len(forest.columns)
    columns = np.unique(forest.columns)
    owner, first, size = places(forest)
    first_children = forest.children[:, 0]
    apart = (owner[forest.children] == owner[:splits, None]).all()
    once = np.bincount(forest.children.ravel(), minlength=len(owner))
    once[forest.roots] += 1
    if not (apart and (once == 1).all()) or size.max() > MASK_BITS or len(columns) > MASKED_COLUMNS:
        return None
    one = np.uint64(1)
    below = (one << size[first_children].astype(np.uint64)) - one
    masks = ~(below << first[first_children].astype(np.uint64))
    thresholds = {int(j): np.unique(forest.thresholds[forest.columns == j]) for j in columns}
    groups = []
    for trees in slices_of_members(forest.roots, MASKED_TREES):
        own = (owner >= trees.start) & (owner < trees.stop)
        tree = owner - trees.start
        leaf = np.flatnonzero(own[splits:])
        leaf_at = np.zeros((trees.stop - trees.start, MASK_BITS), np.intp)
        leaf_at[tree[splits + leaf], first[splits + leaf]] = leaf
        tables = {}
        for j, every in thresholds.items():
            by_column = np.flatnonzero(own[:splits] & (forest.columns == j))
            if len(by_column):
                of_tree = forest.thresholds[by_column], tree[by_column], masks[by_column]
                tables[j] = mask_table(every, *of_tree, len(leaf_at))
        groups.append(MaskedTrees(trees, tables, leaf_at.ravel()))
    return LeafMasks(thresholds, groups)


def mask_table(
    every: Array, thresholds: Array, tree: Indices, masks: Masks, count: int
) -> tuple[NDArray[np.uint16], Masks]:
    """The table of one column for ``count`` trees: see :class:`MaskedTrees`.

    ``every`` are the column's thresholds in all trees, in order. For the splits of these trees by
    the column, ``thresholds`` are their thresholds, ``tree`` (from 0 on) the trees that they are
    in, and ``masks`` the leaves that are left if a row is above the threshold.
    """
    own, place = np.unique(thresholds, return_inverse=True)
    table = np.full((len(own) + 1, count), ~np.uint64(0))
    np.bitwise_and.at(table, (place + 1, tree), masks)
    passed = np.concatenate([[0], np.searchsorted(own, every, side="right")])
    return passed.astype(np.uint16), np.bitwise_and.accumulate(table, axis=0)


def slices_of_members(roots: Numbers, step: int) -> Iterator[slice]:
    """Slices of at most ``step`` trees of one member; roots (m, T) are counted row by row."""
    members, count = roots.shape
    for member in range(members):
        for begin in range(0, count, step):
            yield slice(member * count + begin, member * count + min(begin + step, count))


def in_single(x: Array) -> Array:
    """Rows in single precision; too large numbers become infinite, above every threshold as before
    (or below every one)."""
    with np.errstate(over="ignore"):
        return x.astype(np.float32)


def of_grown(tree: Any, values: Array) -> Forest:
    """A tree of scikit-learn's (its attribute ``tree_``) as a forest of one member and one tree.

    Its splits come first, then its leaves, each in scikit-learn's order, in which parents come
    before their children. ``values`` (nodes, d) are given for all nodes; those of leaves are kept.
    """
    left, right = tree.children_left, tree.children_right
    is_leaf = left < 0
    splits = np.flatnonzero(~is_leaf)
    leaves = np.flatnonzero(is_leaf)
    number = np.empty(len(left), np.intp)
    number[np.concatenate([splits, leaves])] = np.arange(len(left))
    children = np.stack([number[left[splits]], number[right[splits]]], axis=1)
    return Forest(
        whole(tree.feature[splits]),
        frozen(rounded_down(tree.threshold[splits])),
        whole(children),
        whole(np.zeros((1, 1), np.intp)),
        frozen(values[leaves].astype(np.float32)),
    )


def rounded_down(thresholds: Array) -> Array:
    """The largest numbers in single precision that are not above these thresholds.

    A column in single precision is above the old threshold exactly if it is above the new one.
    """
    near = thresholds.astype(np.float32)
    below: Array = np.where(near > thresholds, np.nextafter(near, np.float32(-np.inf)), near)
    return below


def as_one_member(forests: list[Forest]) -> Forest:
    """The trees of several forests as those of one member."""
    joined = side_by_side(forests)
    roots = joined.roots.reshape(1, -1)
    return Forest(joined.columns, joined.thresholds, joined.children, roots, joined.values)


def side_by_side(forests: list[Forest]) -> Forest:
    """The members of several forests, which have equally many trees, as those of one forest."""
    splits = np.cumsum([0, *(len(forest.columns) for forest in forests)])
    leaves = np.cumsum([0, *(len(forest.values) for forest in forests)])

    def renumbered(nodes: Numbers, i: int) -> Numbers:
        own = len(forests[i].columns)
        places: Numbers = np.where(
            nodes < own, nodes + splits[i], nodes - own + splits[-1] + leaves[i]
        )
        return places

    children = [renumbered(forest.children, i) for i, forest in enumerate(forests)]
    roots = [renumbered(forest.roots, i) for i, forest in enumerate(forests)]
    return Forest(
        whole(np.concatenate([forest.columns for forest in forests])),
        frozen(np.concatenate([forest.thresholds for forest in forests])),
        whole(np.concatenate(children)),
        whole(np.concatenate(roots)),
        frozen(np.concatenate([forest.values for forest in forests])),
    )


def of_roots(forest: Forest, roots: Indices | Numbers) -> Forest:
    """The trees with these roots (m, T), without the nodes of others."""
    splits = len(forest.columns)
    reached = np.zeros(splits + len(forest.values), bool)
    nodes: Indices = np.unique(roots)
    while len(nodes):
        reached[nodes] = True
        nodes = np.unique(forest.children[nodes[nodes < splits]])
    number = np.cumsum(reached) - 1
    kept = reached[:splits]
    return Forest(
        whole(forest.columns[kept]),
        frozen(forest.thresholds[kept]),
        whole(number[forest.children[kept]]),
        whole(number[roots]),
        frozen(forest.values[reached[splits:]]),
    )


def led(forest: Forest, leads: Array) -> Forest:
    """The trees of all members as those of one member that has k outputs.

    ``leads`` (m·d, k) are the coefficients by which a network multiplies the forest's features: the
    values of a member's leaves are multiplied by its d rows of them.
    """
    members, count = forest.roots.shape
    by_member = leads.reshape(members, -1, leads.shape[1])
    member = owners(forest) // count
    values = np.empty((len(forest.values), leads.shape[1]))
    for i in range(members):
        own = member == i
        values[own] = product(forest.values[own].astype(float), by_member[i])
    return replace(forest, roots=whole(forest.roots.reshape(1, -1)), values=frozen(values))


def owners(forest: Forest) -> Indices:
    """The index of the tree that each leaf belongs to; trees are counted member by member."""
    return places(forest)[0][len(forest.columns) :]


def places(forest: Forest) -> tuple[Indices, Indices, Indices]:
    """For each node: its tree, the place of its first leaf in the tree, and its number of leaves.

    The place of a leaf is its index in its tree, from left to right. Trees are counted member by
    member. A node in no tree has tree 0.
    """
    splits = len(forest.columns)
    owner, first, size = np.zeros((3, splits + len(forest.values)), np.intp)
    size[splits:] = 1
    nodes = forest.roots.ravel()
    owner[nodes] = np.arange(len(nodes))
    levels = []
    while len(nodes := nodes[nodes < splits]):
        levels.append(nodes)
        children = forest.children[nodes]
        owner[children] = owner[nodes][:, None]
        nodes = children.ravel()
    for nodes in reversed(levels):
        size[nodes] = size[forest.children[nodes]].sum(axis=1)
    for nodes in levels:
        one, other = forest.children[nodes].T
        first[one] = first[nodes]
        first[other] = first[nodes] + size[one]
    return owner, first, size


def whole(numbers: NDArray[np.integer]) -> Numbers:
    """A read-only copy of indices as whole numbers of four bytes."""
    narrow = numbers.astype(np.int32)
    narrow.flags.writeable = False
    return narrow
