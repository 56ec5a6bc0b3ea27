"""Tree members: layers of oblivious trees, each fitted to the residuals that are left.

Every member is boosted by itself on the rows of its bag. A tree is drawn as SWIM draws neurons: its
thresholds lie between training rows, and those that tell the present residuals apart are preferred.
Level by level, of all thresholds of some columns that one is taken which explains most of the
residuals of a sample of rows. The leaves' values are then the ridge regression of the residuals on
the leaf indicators over all rows of the bag: leaves are disjoint, so that its Gram matrix is
diagonal. For losses with a curvature it is one Newton step instead.

A layer is ``LAYER_TREES`` trees for each member. Held-out rows stop the layers of all members
together, by the rule of :mod:`rfrboost._paper.stopping`.

Shapes: x (n, D + 1) is homogeneous, y is (n, k), raw predictions are (n, members, d). Columns are
binned once: bin b of a column holds the values above b of its borders, so that a question "above
border b?" is "bin above b?".
"""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rfrboost._auto.bags import Bags
from rfrboost._auto.layer import step_length
from rfrboost._auto.members import Run, held_out_loss, held_out_score, layer_record
from rfrboost._model.history import LayerRecord
from rfrboost._model.losses import Loss
from rfrboost._model.trees import Trees
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import product
from rfrboost._numerics.threads import OutOfTimeError, check_clock
from rfrboost._paper.stopping import Stopping
from rfrboost._typing import Array, Indices

#: bins of columns, in single bytes
Bins = NDArray[np.uint8]

# Trees that a member grows between two looks at its held-out rows.
LAYER_TREES = 20

# Questions of a tree, so that it has 64 leaves.
HEIGHT = 6

# The share of its fit that a tree moves the predictions by.
LEARNING_RATE = 0.12

# Bins of a column. Borders between them are the only thresholds that trees may ask for.
BINS = 32

# Columns that a tree may ask about: half of them by what they explained so far.
TREE_COLUMNS = 16

# Rows that are drawn, with replacement, to decide about the questions of a tree: a share of all, up
# to a number from which on more rows hardly change the answer.
GROWING_SHARE = 0.8
MOST_GROWING_ROWS = 20_000

# Ridge penalty of a leaf's value, in rows of the average curvature at the start.
LEAF_PENALTY = 1.0

# One histogram holds the number of rows of a bin in its upper digits, in multiples of this, and the
# sum of their residuals, as whole numbers, in its lower digits: half the work, and exact.
COUNT_UNIT = 2.0**36
SUM_BITS = 34


@dataclass(frozen=True)
class TreesFit:
    """All trees as one feature map, the members' predictions for held-out rows, and records."""

    features: Trees
    constants: Array
    out_of_fold: Array
    records: tuple[LayerRecord, ...]


@dataclass(frozen=True)
class Binned:
    """The rows in bins: ``bins`` (D, n) and the ``borders`` of every column, in rising order."""

    bins: Bins
    borders: tuple[Array, ...]
    counts: Indices


@dataclass
class Forest:
    """The trees of one member so far, its predictions (n, d) and what columns have explained."""

    member: int
    rng: Generator
    raw: Array
    explained: Array
    columns: list[Indices]
    cuts: list[Indices]
    values: list[Array]


def fit_trees(
    bags: Bags, start: Array, loss: Loss, n_layers: int, rng: Generator, run: Run
) -> TreesFit | None:
    """Grow trees for all members from predictions ``start`` (members, d), layer by layer.

    None if no layer lowers the held-out loss before the deadline.
    """
    try:
        binned = binned_rows(bags, run.deadline)
    except OutOfTimeError:
        return None
    if binned.counts.max(initial=1) == 1:
        return None
    n = len(bags.y)
    forests = [
        Forest(k, own, np.tile(start[i], (n, 1)), np.zeros(len(binned.counts)), [], [], [])
        for i, (k, own) in enumerate(zip(bags.members, rng.spawn(len(bags.members)), strict=True))
    ]
    raw = np.stack([forest.raw for forest in forests], axis=1)
    start_loss = held_out_loss(bags, raw, loss)
    stopping = Stopping(start_loss, best_score=held_out_score(bags, raw, run))
    enough = loss.enough * start_loss
    penalty = LEAF_PENALTY * average_curvature(bags, forests[0].raw, loss)
    best = bags.out_of_fold(raw)
    records: list[LayerRecord] = []
    for layer in range(1, n_layers + 1):
        began = perf_counter()
        list(run.team(lambda forest: grow_layer(bags, binned, forest, loss, penalty), forests))
        raw = np.stack([forest.raw for forest in forests], axis=1)
        records.append(layer_record(bags, raw, loss, layer, 1.0, perf_counter() - began))
        mean = records[-1].loss
        if stopping.improves(mean, layer, held_out_score(bags, raw, run)):
            best = bags.out_of_fold(raw)
        if run.watch is not None and not run.watch.layer(records[-1]):
            break
        now = perf_counter()
        if stopping.stalled(layer) or mean <= enough or 2 * now - began >= run.deadline:
            break
    if stopping.best_layers == 0:
        return None
    kept = stopping.best_layers * LAYER_TREES
    features = trees_of(forests, binned, kept)
    return TreesFit(features, start, best, tuple(records[: stopping.best_layers]))


def average_curvature(bags: Bags, raw: Array, loss: Loss) -> float:
    """The mean curvature of the loss at predictions (n, d): 1 where curvatures are not used."""
    curvatures = loss.curvatures(loss.gradient(raw, bags.y), bags.y)
    return 1.0 if curvatures is None else float(curvatures.mean())


def trees_of(forests: list[Forest], binned: Binned, kept: int) -> Trees:
    """The first ``kept`` trees of every member as one feature map."""
    columns: Indices = np.array([forest.columns[:kept] for forest in forests])
    cuts = np.array([forest.cuts[:kept] for forest in forests])
    longest = max(map(len, binned.borders))
    borders = np.array([np.pad(own, (0, longest - len(own))) for own in binned.borders])
    values = np.array([forest.values[:kept] for forest in forests])
    columns.flags.writeable = False
    return Trees(columns, frozen(borders[columns, cuts]), frozen(values))


# Bins


def binned_rows(bags: Bags, deadline: float = np.inf) -> Binned:
    """All rows in bins, whose borders are those of the rows that members are fitted on.

    Raises :class:`OutOfTimeError` at the first column after the deadline.
    """
    X = bags.x[:, :-1]
    fitted = np.unique(np.concatenate(list(bags.seen.values())))
    borders = []
    bins = np.empty((X.shape[1], len(X)), np.uint8)
    for j, column in enumerate(X.T):
        check_clock(deadline)
        borders.append(borders_between(column[fitted]))
        bins[j] = np.searchsorted(borders[j], column, side="left")
    return Binned(bins, tuple(borders), np.array([len(own) + 1 for own in borders]))


def borders_between(column: Array) -> Array:
    """At most ``BINS`` − 1 borders, each halfway between two neighbouring values.

    With few distinct values there is a border between any two; otherwise bins hold equally many
    rows. Halfway, so that rounding sends no row to the wrong side.
    """
    ordered = np.sort(column)
    last = np.flatnonzero(ordered[1:] > ordered[:-1])
    if len(last) >= BINS:
        places = np.arange(1, BINS) * len(ordered) // BINS
        last = last[np.unique(np.minimum(np.searchsorted(last, places), len(last) - 1))]
    borders: Array = ordered[last] / 2 + ordered[last + 1] / 2
    return borders


# One layer of one member


def grow_layer(bags: Bags, binned: Binned, forest: Forest, loss: Loss, penalty: float) -> None:
    """Add ``LAYER_TREES`` trees to a member, and move its predictions by them."""
    train = bags.training(forest.member)
    w = bags.w[train]
    for _ in range(LAYER_TREES):
        gradient = loss.gradient(forest.raw, bags.y)
        curvatures = loss.curvatures(gradient, bags.y)
        residuals = -gradient
        columns, cuts = draw_questions(bags, binned, forest, train, residuals)
        leaf = leaf_numbers(binned.bins, columns, cuts)
        curved = np.ones_like(residuals) if curvatures is None else curvatures
        values = leaf_values(leaf[train], residuals[train], curved[train], w, penalty)
        if curvatures is None:
            values *= step_length(bags, forest.member, forest.raw, values[leaf], loss)
        values *= LEARNING_RATE
        forest.raw += values[leaf]
        forest.columns.append(columns)
        forest.cuts.append(cuts)
        forest.values.append(values)


def draw_questions(
    bags: Bags, binned: Binned, forest: Forest, train: Indices, residuals: Array
) -> tuple[Indices, Indices]:
    """The questions of a tree, as columns and numbers of borders, for these residuals (n, d).

    Of several outputs a random mixture decides, another one for every tree.
    """
    rng = forest.rng
    size = min(int(np.ceil(GROWING_SHARE * len(train))), MOST_GROWING_ROWS)
    places, copies = drawn_rows(bags.w[train], size, rng)
    rows = train[places]
    targets = residuals[rows]
    if targets.shape[1] > 1:
        targets = product(targets, rng.standard_normal((targets.shape[1], 1)))
    chosen = tree_columns(binned.counts, forest.explained, rng)
    bins = binned.bins[chosen].take(rows, axis=1)
    places, cuts, gains = grow(bins, binned.counts[chosen], targets[:, 0], copies)
    columns = chosen[places]
    np.add.at(forest.explained, columns, gains)
    return columns, cuts


def drawn_rows(w: Array, size: int, rng: Generator) -> tuple[Indices, Array]:
    """Draw rows with replacement, in proportion to weight: those drawn, and how often each was."""
    cumulative = np.cumsum(w)
    drawn = np.searchsorted(cumulative, np.sort(rng.random(size)) * cumulative[-1], side="right")
    copies = np.bincount(np.minimum(drawn, len(w) - 1))
    rows = np.flatnonzero(copies)
    return rows, copies[rows].astype(float)


def tree_columns(counts: Indices, explained: Array, rng: Generator) -> Indices:
    """The columns that a tree may ask about: all, or ``TREE_COLUMNS`` of them, drawn.

    Half of a column's chance is its share in what all columns have explained so far.
    """
    varying = np.flatnonzero(counts > 1)
    if len(varying) <= TREE_COLUMNS:
        return varying
    own = explained[varying]
    share = 0.5 * own / (own.sum() or 1.0) + 0.5 / len(varying)
    # The largest of log-shares with Gumbel noise are a draw without replacement.
    keys = np.log(share) + rng.gumbel(size=len(varying))
    return np.sort(varying[np.argpartition(-keys, TREE_COLUMNS)[:TREE_COLUMNS]])


def grow(
    bins: Bins, counts: Indices, targets: Array, copies: Array
) -> tuple[Indices, Indices, Array]:
    """The questions that explain most of the targets (n,), level by level.

    ``bins`` (c, n) are the bins of the columns that may be asked about, ``counts`` (c,) says how
    many bins each of them has, and ``copies`` (n,) how often each row counts. A level takes the
    question for which Σ S²/(N + λ) is largest, the sum over all leaves with their sums of targets S
    and numbers of rows N. Returns for every level the place of its column, its border, and how much
    larger it made that sum.
    """
    ends = np.cumsum(counts)
    starts = ends - counts
    total = int(ends[-1])
    keys = bins + starts[:, None]
    packed, unit = packed_targets(targets, copies)
    packed = np.tile(packed, len(counts))
    leaf = np.zeros(bins.shape[1], np.intp)
    before = 0.0
    places = np.empty(HEIGHT, np.intp)
    cuts = np.empty(HEIGHT, np.intp)
    gains = np.empty(HEIGHT)
    for level in range(HEIGHT):
        cells = (keys + leaf * total).ravel()
        sums = np.bincount(cells, packed, total << level).reshape(-1, total)
        explained = explained_by(sums.astype(float, copy=False), starts, ends)
        best = int(np.argmax(explained))
        place = int(np.searchsorted(ends, best, side="right"))
        places[level] = place
        cuts[level] = best - starts[place]
        gains[level] = max(explained[best] - before, 0.0) * unit**2
        before = float(explained[best])
        leaf = 2 * leaf + (keys[place] > best)
    return places, cuts, gains


def packed_targets(targets: Array, copies: Array) -> tuple[Array, float]:
    """The targets as whole numbers of a unit, with the number of rows in the upper digits.

    Sums of them, too, hold both: the sum of the targets and the number of the rows.
    """
    bits = SUM_BITS - int(copies.sum()).bit_length()
    unit = float(np.abs(targets).max()) / 2.0**bits or 1.0
    return copies * (np.rint(targets / unit) + COUNT_UNIT), unit


def explained_by(sums: Array, starts: Indices, ends: Indices) -> Array:
    """Σ S²/(N + λ) over all leaves after each question; −1 for the last bin of a column.

    ``sums`` (leaves, bins of all columns) are packed sums, which are changed in place. S is in
    units of the packed targets.
    """
    of_leaf = sums[:, : ends[0]].sum(axis=1, keepdims=True)
    # Summed up over all columns in one go, beginning anew where a leaf's sum is taken off.
    sums[:, starts[1:]] -= of_leaf
    left = sums.cumsum(axis=1)
    rows = np.rint(left / COUNT_UNIT)
    all_rows = np.rint(of_leaf / COUNT_UNIT)
    left -= rows * COUNT_UNIT
    right = (of_leaf - all_rows * COUNT_UNIT) - left
    left *= left
    left /= rows + LEAF_PENALTY
    right *= right
    right /= (all_rows + LEAF_PENALTY) - rows
    explained: Array = left.sum(axis=0)
    explained += right.sum(axis=0)
    explained[ends - 1] = -1.0
    return explained


def leaf_numbers(bins: Bins, columns: Indices, cuts: Indices) -> Indices:
    """The number of the leaf that each row falls into (n,)."""
    leaf = np.zeros(bins.shape[1], np.uint8)
    for column, cut in zip(columns, cuts, strict=True):
        leaf <<= 1
        leaf |= bins[column] > cut
    return leaf.astype(np.intp)


def leaf_values(
    leaf: Indices, residuals: Array, curvatures: Array, w: Array, penalty: float
) -> Array:
    """The values of all leaves (2^h, d): Σ w·residual / (Σ w·curvature + λ), sums over rows."""
    d = residuals.shape[1]
    size = d << HEIGHT
    where = (leaf[:, None] * d + np.arange(d)).ravel()
    weights = w[:, None]
    sums = np.bincount(where, (weights * residuals).ravel(), size)
    curvature = np.bincount(where, (weights * curvatures).ravel(), size)
    return (sums / (curvature + penalty)).reshape(-1, d)
