"""Trees as random features: sums of leaf values, for what neurons and bumps fit badly.

An inner node of a tree is a split: it compares one column with a threshold. Where a target jumps at
thresholds or depends on interacting categories, few splits describe it. A leaf indicator is a
random feature like any other, and its coefficients are the leaf's values. All trees of a member are
kept as one sum, so that :class:`Forest` is a feature map with one feature for each member and
output.

Nodes have numbers: first the splits of all trees, Q of them, then all leaves. A row goes to the
second child of a split if its column is above the threshold, else to the first. Columns are
compared in single precision, as trees were grown.

Shapes: m members, T trees for each of them, d outputs; rows are (x, 1), of shape (n, D + 1).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import product
from rfrboost._typing import Array, Indices

#: numbers of nodes and columns
Numbers = NDArray[np.int32]
#: sets of leaves: bit i says whether the leaf at place i of a tree is among them
Masks = NDArray[np.uint64]

# Rows whose sums are computed at a time: what is known of them stays in a processor's cache.
SUMMED_ROWS = 1024
# Pairs of a row and a tree that are followed at a time.
FOLLOWED = 2**14

# Levels that all pairs are followed before those at a leaf are left out: most have many more to go.
STEPS = 4

# The fewest rows whose leaves are found by masks, at least some for each column, and the most
# columns: with fewer rows the calls, with more columns the tables take longer than following the
# splits.
MASKED_ROWS = 64
MASKED_ROWS_A_COLUMN = 4
MASKED_COLUMNS = 80
# Bits of a mask, hence the most leaves of a tree, and trees whose masks are in one table. With more
# trees tables grow, with fewer there are more calls.
MASK_BITS = 64
MASKED_TREES = 32
# The most trees of a forest with masks, about 50 MB: tables grow with the square of their number.
MOST_MASKED = 2048


@dataclass(frozen=True)
class Forest:
    """The sums of m·d features: for each member and output, the values of the row's leaves.

    ``columns`` and ``thresholds`` (Q,) are the splits, and ``children`` (Q, 2) the numbers of
    the nodes they lead to, which are always larger than their own. ``roots`` (m, T) are the first
    nodes of all trees, ``values`` (leaves, d) those of the leaves, in single precision.
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

        A leaf leads to itself.
        """
        leaves = np.arange(len(self.values)) + len(self.columns)
        columns = np.concatenate([self.columns, np.zeros(len(leaves))]).astype(np.intp)
        never = np.full(len(leaves), np.inf, self.thresholds.dtype)
        thresholds = np.concatenate([self.thresholds, never])
        children = np.concatenate([self.children.ravel(), leaves.repeat(2)]).astype(np.intp)
        return columns, thresholds, children

    @cached_property
    def masks(self) -> "LeafMasks | None":
        """Tables by which the leaves of many rows are found; None if the trees do not allow it."""
        return leaf_masks(self)

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle holds: the trees alone, without what is kept for predicting."""
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

    def leaf_numbers(self, x: Array) -> Indices:
        """The leaf that each row of x (n, D) falls into, for every tree (n, m·T)."""
        numbers = np.empty((len(x), self.roots.size), np.intp)
        for begin in range(0, len(x), SUMMED_ROWS):
            some = slice(begin, min(begin + SUMMED_ROWS, len(x)))
            for trees, leaves in self._leaves(in_single(x[some])):
                numbers[some, trees] = leaves
        return numbers

    def _leaves(self, x: Array) -> Iterator[tuple[slice, Indices]]:
        """The leaves (n, T) of all rows in some trees of one member after the other.

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
        """The leaf of each row and root (T, n): pairs of both are followed level by level."""
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
        """The chain rule at rows (x, 1): steps are flat almost everywhere, so that it is zero."""
        return lambda cotangent: np.zeros((len(rows), rows.shape[1] - 1))


@dataclass(frozen=True)
class LeafMasks:
    """The leaves of many rows by sets of bits (QuickScorer: Lucchese et al., 2015).

    A split whose threshold a row is above rules out the leaves below its first child. Of the leaves
    that no split rules out, the leftmost is the row's. What the splits of a tree by one column rule
    out together depends only on how many of their thresholds the row is above: it is looked up in a
    table, one look-up for each column instead of one step for each split.

    ``thresholds`` has all thresholds of each column, in order. A thousand trees of 64 leaves take
    about 20 MB, from the first large batch on; files and pickles do not hold them.
    """

    thresholds: dict[int, Array]
    groups: list["MaskedTrees"]

    def leaves(self, x: Array) -> Iterator[tuple[slice, Indices]]:
        """The leaves (n, T) of all rows of x (n, D) in the trees of each group."""
        above = {j: np.searchsorted(t, x[:, j]) for j, t in self.thresholds.items()}
        for group in self.groups:
            yield group.trees, group.leaves(len(x), above)


@dataclass(frozen=True)
class MaskedTrees:
    """Masks of some trees.

    ``tables`` has two arrays for each column that these trees split by. The second, of shape
    (b + 1, T), holds the masks of the leaves that are left if a row is above 0, 1, …, b of their b
    thresholds. The first says which line of it applies if a row is above 0, 1, … of the thresholds
    of the whole forest. ``leaf_at`` (T·64,) has the number of the
    leaf at each place of each tree.
    """

    trees: slice
    tables: dict[int, tuple[NDArray[np.uint16], Masks]]
    leaf_at: Indices

    def leaves(self, n: int, above: dict[int, Indices]) -> Indices:
        """The leaf of each row in each tree (n, T).

        ``above`` has for each column how many thresholds of the forest each row is above, (n,).
        """
        count = self.trees.stop - self.trees.start
        left = np.full((n, count), ~np.uint64(0))
        some = np.empty_like(left)
        for j, (place, masks) in self.tables.items():
            masks.take(place.take(above[j]), axis=0, out=some, mode="clip")
            left &= some
        # The lowest bit that is left is a power of two: a float64 has its exponent from bit 52 on.
        np.negative(left, out=some)
        some &= left
        lowest = (some.astype(np.float64).view(np.int64) >> 52) - 1023
        lowest += np.arange(count) * MASK_BITS
        return self.leaf_at.take(lowest)


def leaf_masks(forest: Forest) -> LeafMasks | None:
    """Masks of all trees; None if one has too many leaves, if there are too many trees or columns,
    or if a node is in several or no trees."""
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

    ``every`` are the thresholds of all trees, in order; ``thresholds``, ``tree`` and ``masks`` are
    those of these trees' splits.
    """
    own, place = np.unique(thresholds, return_inverse=True)
    table = np.full((len(own) + 1, count), ~np.uint64(0))
    np.bitwise_and.at(table, (place + 1, tree), masks)
    passed = np.concatenate([[0], np.searchsorted(own, every, side="right")])
    return passed.astype(np.uint16), np.bitwise_and.accumulate(table, axis=0)


def slices_of_members(roots: Numbers, step: int) -> Iterator[slice]:
    """At most ``step`` trees of one member at a time; roots (m, T) are counted row by row."""
    members, count = roots.shape
    for member in range(members):
        for begin in range(0, count, step):
            yield slice(member * count + begin, member * count + min(begin + step, count))


def in_single(x: Array) -> Array:
    """Rows in single precision; numbers that are too large become infinite, and stay as large."""
    with np.errstate(over="ignore"):
        return x.astype(np.float32)


def of_grown(tree: Any, values: Array) -> Forest:
    """A tree of scikit-learn's (its attribute ``tree_``) as a forest of one member and one tree.

    Its splits come first, then its leaves, each in scikit-learn's order, in which parents are
    before children. ``values`` (nodes, d) are those of all nodes; only those of leaves are kept.
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
    """The largest numbers in single precision that are not above these.

    A number in single precision is above both or above neither.
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
    """The trees of all members as those of one, whose values are multiplied by leads (m·d, k)."""
    members, count = forest.roots.shape
    by_member = leads.reshape(members, -1, leads.shape[1])
    member = owners(forest) // count
    values = np.empty((len(forest.values), leads.shape[1]))
    for i in range(members):
        own = member == i
        values[own] = product(forest.values[own].astype(float), by_member[i])
    return replace(forest, roots=whole(forest.roots.reshape(1, -1)), values=frozen(values))


def owners(forest: Forest) -> Indices:
    """The number of the tree that each leaf belongs to; trees are counted member by member."""
    return places(forest)[0][len(forest.columns) :]


def places(forest: Forest) -> tuple[Indices, Indices, Indices]:
    """Of each node: its tree, the place of its first leaf in the tree, and how many leaves it has.

    Leaves have places from left to right, from 0 on. Trees are counted member by member.
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
    """Read-only whole numbers of four bytes."""
    narrow = numbers.astype(np.int32)
    narrow.flags.writeable = False
    return narrow
