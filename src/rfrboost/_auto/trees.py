"""Tree members: layers of random trees, each fitted to the residuals that are left.

Every member is boosted by itself on the rows of its bag. A tree is drawn as SWIM draws neurons: its
thresholds are random, and those that tell the present residuals apart are preferred. It is grown by
scikit-learn's ``ExtraTreeRegressor`` on the rows of the bag or a sample of them: a node draws one
random threshold for each column and takes the split that explains most of the residuals, those of
all outputs together; the leaf that gains most is split next, until there are ``LEAVES``. Every
fifth tree looks for the best threshold of half of the columns instead: it finds sharp thresholds,
while random ones keep the trees from being alike. A leaf's value is then Σ w·residual / (Σ
w·curvature + λ) over the rows of the bag in that leaf: one Newton step, which for squared error, of
curvature 1, is ridge regression on the leaf indicators. (Leaves are disjoint, so that its Gram
matrix is diagonal.) For a loss whose curvature is zero in many rows or unbounded
(``Loss.curvatures`` is None), 1 stands for the curvature and the step length is searched for.

A layer is ``LAYER_TREES`` trees for each member. Held-out rows stop the layers of all members
together (:class:`~rfrboost._auto.members.HeldOutCurve`).

Shapes: x (n, D + 1) is homogeneous, y is (n, k), raw predictions are (n, members, d). Trees see the
columns in single precision, here and in the fitted model (:mod:`rfrboost._model.forest`). Trees
cannot follow a slope beyond the training rows, and have no input gradients.
"""

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.random import Generator, RandomState
from sklearn.tree import ExtraTreeRegressor

from rfrboost._auto.bags import Bags
from rfrboost._auto.layer import step_length
from rfrboost._auto.members import HeldOutCurve, Run
from rfrboost._model.forest import Forest, as_one_member, of_grown
from rfrboost._model.history import LayerRecord
from rfrboost._model.losses import Loss
from rfrboost._numerics.blas import product
from rfrboost._numerics.threads import OutOfTimeError, check_clock
from rfrboost._typing import Array, Indices

# Number of trees that a member grows before its held-out loss is computed again. Early stopping
# counts layers: without a gain it waits for PATIENCE of them, 20 trees.
LAYER_TREES = 5

# The most leaves of a tree, no more than the 64 bits of a mask in _model/forest.py, and the fewest
# rows of the sample in a leaf.
LEAVES = 64
LEAF_ROWS = 3

# The share of a leaf's value that is added to the predictions. 0.15 needs a third fewer trees, and
# was worse on almost all tables where trees matter.
LEARNING_RATE = 0.1

# The most columns that a node draws thresholds for: with hundreds of columns a tree would take far
# longer, and hardly be better.
NODE_COLUMNS = 48

# Every fifth tree looks for the best threshold of each column that a node draws: one in each layer,
# because such a tree takes several times as long. A node of it draws this share of the columns, at
# least BEST_COLUMNS.
BEST_EVERY = 5
BEST_SHARE = 0.5
BEST_COLUMNS = 4

# Before best thresholds are sought, each column is rounded to multiples of 2^−16 times the power of
# two above its root mean square. Otherwise thresholds lie between numbers that differ by rounding
# alone, and a model that computes in single precision (24 bits), as ONNX files do, would lead such
# rows to other leaves.
GRID_BITS = 16

# The most columns of residuals by which splits are chosen. If there are more outputs than that,
# this many random linear combinations of them tell rows apart as well, in less time.
MIXTURES = 32

# The splits of a tree are found on all rows of a member, but at most MOST_GROWING_ROWS, drawn anew
# for each tree: more hardly change the splits. On tables of few rows, where every member draws for
# itself, they are found on this share of the rows, so that trees differ.
GROWING_SHARE = 0.8
MOST_GROWING_ROWS = 20_000

# Bits of the whole numbers that residuals and weights are rounded to. A sum of their products over
# MOST_GROWING_ROWS rows has 24 + 14 + 15 = 53 bits, and is exact in double precision.
TARGET_BITS = 24
WEIGHT_BITS = 14

# The largest value of a column, below the largest float32 of 3.4e38: larger ones are moved to it.
LARGEST_INPUT = 1e38

# The ridge penalty λ of a leaf's value, as a number of rows: it counts like one more row of weight
# 1 and residual 0 in the leaf, with the average curvature before the first tree.
LEAF_PENALTY = 1.0


@dataclass(frozen=True)
class TreesFit:
    """The trees of each member, out-of-fold predictions (rows of ``Bags.held_out``, d), records."""

    members: tuple[Forest, ...]
    out_of_fold: Array
    records: tuple[LayerRecord, ...]


@dataclass
class Growth:
    """The trees of one member so far, each as a forest of one tree, and its predictions (n, d).

    ``state`` is what scikit-learn draws with. It is seeded by ``rng`` for every tree; a new one for
    each would take a quarter of the time in which a tree of few rows is grown.
    """

    member: int
    rng: Generator
    raw: Array
    trees: list[Forest]
    state: RandomState = field(default_factory=RandomState)


def fit_trees(
    bags: Bags,
    start: Array,
    loss: Loss,
    n_layers: int,
    rng: Generator,
    run: Run,
    rival: float = np.inf,
) -> TreesFit | None:
    """Grow at most ``n_layers`` layers of trees for all members.

    Each member starts at a constant prediction: ``start`` is (members, d). Layers end as those of
    boosted families do, also if the held-out loss is far behind ``rival``, the loss of another
    family. Returns None if no layer lowers the held-out loss before the deadline.
    """
    X = np.clip(bags.x[:, :-1], -LARGEST_INPUT, LARGEST_INPUT).astype(np.float32)
    grid = grid_of(X, bags.w)
    n = len(bags.y)
    members = [
        Growth(k, own, np.tile(start[i], (n, 1)), [])
        for i, (k, own) in enumerate(zip(bags.members, rng.spawn(len(bags.members)), strict=True))
    ]
    raw = np.stack([own.raw for own in members], axis=1)
    curve = HeldOutCurve(bags, raw, loss, run.score)
    enough = loss.enough * curve.stopping.best_loss
    penalty = LEAF_PENALTY * average_curvature(bags, members[0].raw, loss)
    for left in reversed(range(n_layers)):
        began = perf_counter()
        try:
            list(run.team(lambda own: grow_layer(bags, X, grid, own, loss, penalty, run), members))
        except OutOfTimeError:
            break
        raw = np.stack([own.raw for own in members], axis=1)
        curve.add(raw, 1.0, perf_counter() - began)
        record = curve.records[-1]
        if run.watch is not None and not run.watch.layer(record):
            break
        if curve.stalled or record.loss <= enough or curve.far_behind(rival, left):
            break
        if 2 * perf_counter() - began >= run.deadline:
            break
    layers = curve.stopping.best_layers
    if layers == 0:
        return None
    forests = tuple(as_one_member(own.trees[: layers * LAYER_TREES]) for own in members)
    return TreesFit(forests, curve.out_of_fold, tuple(curve.records[:layers]))


def average_curvature(bags: Bags, raw: Array, loss: Loss) -> float:
    """The mean curvature of the loss at predictions (n, d); 1 if the loss gives no curvatures."""
    curvatures = loss.curvatures(loss.gradient(raw, bags.y), bags.y)
    return 1.0 if curvatures is None else float(curvatures.mean())


# One layer of one member


def grow_layer(
    bags: Bags, X: Array, grid: Array, own: Growth, loss: Loss, penalty: float, run: Run
) -> None:
    """Add ``LAYER_TREES`` trees to a member, and move its predictions by them.

    Raises ``OutOfTimeError`` at the first tree after the deadline.
    """
    train, _ = bags.split(own.member)
    w = bags.w[train]
    for _ in range(LAYER_TREES):
        check_clock(run.deadline)
        gradient = loss.gradient(own.raw, bags.y)
        curvatures = loss.curvatures(gradient, bags.y)
        residuals = -gradient
        best = len(own.trees) % BEST_EVERY == BEST_EVERY - 1
        share = GROWING_SHARE if len(bags.groups) > 1 else 1.0
        grown = grow(X, train, share, residuals, bags.w, own.rng, grid if best else None, own.state)
        node = grown.apply(X)
        curved = np.ones_like(residuals) if curvatures is None else curvatures
        values = node_values(
            node[train], grown.node_count, residuals[train], curved[train], w, penalty
        )
        if curvatures is None:
            values *= step_length(bags, own.member, own.raw, values[node], loss)
        values *= LEARNING_RATE
        own.raw += values[node]
        own.trees.append(of_grown(grown, values))


def grid_of(X: Array, w: Array) -> Array:
    """The powers of two (D,) to whose multiples columns are rounded: see ``GRID_BITS``."""
    deviations = np.sqrt(np.einsum("i,ij,ij->j", w, X, X) / w.sum())
    exponents = np.where(deviations > 0, np.frexp(deviations)[1], 0)
    grid: Array = np.ldexp(1.0, exponents - GRID_BITS)
    return grid


def grow(
    X: Array,
    train: Indices,
    share: float,
    residuals: Array,
    w: Array,
    rng: Generator,
    grid: Array | None,
    state: RandomState,
) -> Any:
    """A tree that tells the residuals (n, d) apart, grown on this share of the rows ``train``.

    Without a ``grid`` thresholds are random. With one (D,), columns are rounded to its multiples,
    and each node takes the best threshold of those columns that it draws. Residuals and weights are
    rounded to whole numbers of a unit. In nodes of few rows several splits separate the rows alike:
    their sums are then equal to the bit, and rounding errors do not decide between them. ``state``
    is seeded by ``rng``. Returns scikit-learn's arrays of the tree.
    """
    size = min(int(np.ceil(share * len(train))), MOST_GROWING_ROWS)
    rows = np.sort(rng.permutation(train)[:size])
    targets = residuals[rows]
    d = targets.shape[1]
    if d > MIXTURES:
        targets = product(targets, rng.standard_normal((d, MIXTURES)))
    x = X[rows]
    columns = min(X.shape[1], NODE_COLUMNS)
    if grid is not None:
        x = (np.rint(x / grid) * grid).astype(x.dtype)
        columns = min(columns, max(int(BEST_SHARE * columns), BEST_COLUMNS))
    state.seed(int(rng.integers(2**31)))
    tree = ExtraTreeRegressor(
        splitter="random" if grid is None else "best",
        max_leaf_nodes=LEAVES,
        min_samples_leaf=LEAF_ROWS,
        max_features=columns,
        random_state=state,
    )
    weights = whole_numbers(w[rows], WEIGHT_BITS)
    even = bool((weights == weights[0]).all())
    targets = np.ascontiguousarray(whole_numbers(targets, TARGET_BITS))
    tree.fit(x, targets, None if even else weights, check_input=False)
    return tree.tree_


def whole_numbers(values: Array, bits: int) -> Array:
    """Values in units of a power of two, rounded; the largest of them then has ``bits`` bits."""
    largest = float(np.abs(values).max())
    exponent = np.frexp(largest)[1] if largest > 0 else 0
    return np.rint(np.ldexp(values, bits - exponent))


def node_values(
    node: Indices, n_nodes: int, residuals: Array, curvatures: Array, w: Array, penalty: float
) -> Array:
    """Σ w·residual / (Σ w·curvature + λ) over each node's rows (n_nodes, d); 0 without rows.

    ``node`` (n,) is the index of the leaf that each row is in.
    """
    d = residuals.shape[1]
    where = (node[:, None] * d + np.arange(d)).ravel()
    weights = w[:, None]
    sums = np.bincount(where, (weights * residuals).ravel(), n_nodes * d)
    curvature = np.bincount(where, (weights * curvatures).ravel(), n_nodes * d)
    return (sums / (curvature + penalty)).reshape(-1, d)
