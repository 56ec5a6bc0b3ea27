"""Trees as random features: sums of leaf values, for what neurons and bumps see badly.

A node asks "is column j above this threshold?". Thresholds, counters and categories that interact
are steps of few columns; trees represent them directly. A leaf indicator is a random feature like
any other, and its coefficients are the leaf's values. All trees of a member are kept as one sum, so
that :class:`Forest` is a feature map with one feature for each member and output.

Nodes have numbers: first the questions of all trees, Q of them, then all leaves. A row goes to the
second child of a question if its column is above the threshold, else to the first. Columns are
compared in single precision, as trees were grown.

Shapes: m members, T trees for each of them, d outputs; rows are (x, 1), of shape (n, D + 1).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import product
from rfrboost._typing import Array, Indices

#: numbers of nodes and columns
Numbers = NDArray[np.int32]

# Pairs of a row and a tree that are followed at a time, and rows of these: what is known of them
# stays in a processor's cache.
FOLLOWED = 2**14
FOLLOWED_ROWS = 256

# Levels that all pairs are followed before those at a leaf are left out: most have many more to go.
STEPS = 4


@dataclass(frozen=True)
class Forest:
    """The sums of m·d features: for each member and output, the values of the row's leaves.

    ``columns`` and ``thresholds`` (Q,) are the questions, and ``children`` (Q, 2) the numbers of
    the nodes they lead to, which are always larger than their own. ``roots`` (m, T) are the first
    nodes of all trees, ``values`` (leaves, d) those of the leaves, in single precision.
    """

    columns: Numbers
    thresholds: Array
    children: Numbers
    roots: Numbers
    values: Array

    # What every feature map states (see FeatureMap); sums are always in double precision.
    width: int = field(init=False, repr=False, compare=False)
    bound: ClassVar[float] = np.inf
    dtype: ClassVar[np.dtype] = np.dtype(np.float64)

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", int(len(self.roots) * self.values.shape[1]))

    def astype(self, dtype: type[np.floating], largest_input: float) -> "Forest":
        return self

    @cached_property
    def depth(self) -> int:
        """The most questions between a root and a leaf."""
        nodes = np.unique(self.roots)
        questions = nodes[nodes < len(self.columns)]
        depth = 0
        while len(questions):
            depth += 1
            nodes = np.unique(self.children[questions])
            questions = nodes[nodes < len(self.columns)]
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

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle holds: the trees alone, without what is kept for predicting."""
        return {own.name: self.__dict__[own.name] for own in fields(self)}

    def __call__(self, rows: Array, out: Array) -> None:
        members, d = len(self.roots), self.values.shape[1]
        for begin in range(0, len(rows), FOLLOWED_ROWS):
            some = slice(begin, min(begin + FOLLOWED_ROWS, len(rows)))
            x = in_single(rows[some, :-1])
            sums = out[some].reshape(len(x), members, d)
            for member in range(members):
                sums[:, member] = self._sums(x, self.roots[member])
            out[some] = sums.reshape(len(x), -1)

    def _sums(self, x: Array, roots: Numbers) -> Array:
        """The sums (n, d) over the trees with these roots; x (n, D) is in single precision."""
        total = np.zeros((len(x), self.values.shape[1]))
        step = max(FOLLOWED // len(x), 1)
        for begin in range(0, len(roots), step):
            leaf = self._leaves(x, roots[begin : begin + step])
            values = self.values.take(leaf.ravel(), axis=0)
            total += values.reshape(*leaf.shape, -1).sum(axis=0, dtype=float)
        return total

    def leaf_numbers(self, x: Array) -> Indices:
        """The leaf that each row of x (n, D) falls into, for every tree (n, m·T)."""
        x = in_single(x)
        parts = [
            self._leaves(x[begin : begin + FOLLOWED_ROWS], self.roots.ravel())
            for begin in range(0, len(x), FOLLOWED_ROWS)
        ]
        return np.hstack([np.empty((self.roots.size, 0), np.intp), *parts]).T

    def _leaves(self, x: Array, roots: Numbers) -> Indices:
        """The leaf of each row and tree (T, n): pairs of both are followed level by level."""
        columns, thresholds, children = self.nodes
        n, D = x.shape
        questions = len(self.columns)
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
                going = np.flatnonzero(node < questions)
                pairs, starts, node = pairs.take(going), starts.take(going), node.take(going)
                if not len(node):
                    break
        reached[pairs] = node
        return reached.reshape(len(roots), n) - questions

    def pullback(self, rows: Array) -> Callable[[Array], Array]:
        """The chain rule at rows (x, 1): steps are flat almost everywhere, so that it is zero."""
        return lambda cotangent: np.zeros((len(rows), rows.shape[1] - 1))


def in_single(x: Array) -> Array:
    """Rows in single precision; numbers that are too large become infinite, and stay as large."""
    with np.errstate(over="ignore"):
        return x.astype(np.float32)


def of_grown(tree: Any, values: Array) -> Forest:
    """A tree of scikit-learn's (its attribute ``tree_``) as a forest of one member and one tree.

    Its questions come first, parents before children, then its leaves. ``values`` (nodes, d) are
    those of all nodes; only those of leaves are kept.
    """
    order = [np.zeros(1, np.intp)]
    left, right = tree.children_left, tree.children_right
    while len(order[-1]):
        parents = order[-1][left[order[-1]] >= 0]
        order.append(np.stack([left[parents], right[parents]], axis=1).ravel())
    nodes = np.concatenate(order)
    is_leaf = left[nodes] < 0
    questions = nodes[~is_leaf]
    leaves = nodes[is_leaf]
    number = np.empty(len(nodes), np.intp)
    number[np.concatenate([questions, leaves])] = np.arange(len(nodes))
    children = np.stack([number[left[questions]], number[right[questions]]], axis=1)
    return Forest(
        whole(tree.feature[questions]),
        frozen(rounded_down(tree.threshold[questions])),
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
    questions = np.cumsum([0, *(len(forest.columns) for forest in forests)])
    leaves = np.cumsum([0, *(len(forest.values) for forest in forests)])

    def renumbered(nodes: Numbers, i: int) -> Numbers:
        own = len(forests[i].columns)
        places: Numbers = np.where(
            nodes < own, nodes + questions[i], nodes - own + questions[-1] + leaves[i]
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
    questions = len(forest.columns)
    reached = np.zeros(questions + len(forest.values), bool)
    nodes: Indices = np.unique(roots)
    while len(nodes):
        reached[nodes] = True
        nodes = np.unique(forest.children[nodes[nodes < questions]])
    number = np.cumsum(reached) - 1
    asked = reached[:questions]
    return Forest(
        whole(forest.columns[asked]),
        frozen(forest.thresholds[asked]),
        whole(number[forest.children[asked]]),
        whole(number[roots]),
        frozen(forest.values[reached[questions:]]),
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
    questions = len(forest.columns)
    owner = np.zeros(questions + len(forest.values), np.intp)
    nodes = forest.roots.ravel()
    owner[nodes] = np.arange(len(nodes))
    nodes = nodes[nodes < questions]
    while len(nodes):
        children = forest.children[nodes]
        owner[children] = owner[nodes][:, None]
        nodes = children[children < questions]
    return owner[questions:]


def whole(numbers: NDArray[np.integer]) -> Numbers:
    """Read-only whole numbers of four bytes."""
    narrow = numbers.astype(np.int32)
    narrow.flags.writeable = False
    return narrow
