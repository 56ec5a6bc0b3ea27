"""Row blocks of a bagged fit: features computed once a draw, and Gram matrices by fold.

One layer of a bagged fit: features drawn for a group of members, and how each moves by them.
"""

from dataclasses import dataclass, replace
from itertools import product as combinations
from typing import Any

import numpy as np
from numpy.random import Generator

from rfrboost._auto.bags import Bags
from rfrboost._model.features import DenseFeatures, FeatureMap
from rfrboost._model.losses import Loss
from rfrboost._model.metric import DENSE_COLUMNS, InMetric, learned_metric, metric_rows
from rfrboost._model.samplers import Sampler
from rfrboost._numerics.arrays import frozen, largest_entry
from rfrboost._numerics.blas import column_scales, product
from rfrboost._numerics.least_squares import Moments, merged, solve
from rfrboost._numerics.precision import bagged_dtype
from rfrboost._numerics.threads import Team
from rfrboost._paper.line_search import minimize_convex, newton_step
from rfrboost._rows.chunks import FeatureCache
from rfrboost._typing import Array, Indices

# Blocks whose moments are summed before the next ones are begun: they are p² numbers each.
AT_ONCE = 8


class FeatureBlocks:
    """A group's rows in blocks, and the features of the present draw on them.

    Blocks of one *bucket* are summed into one Gram: a fold, or for a member that shares with
    nobody all rows it is fitted on. Those it holds out come last and have no bucket. Blocks are
    shared out to a ``team``, and summed in their own order.
    """

    def __init__(self, bags: Bags, group: tuple[int, ...], team: Team) -> None:
        self.team = team
        self.n_buckets = 1 if len(group) == 1 else len(bags.folds)
        self.order: Indices | slice = slice(None)
        self.blocks: list[tuple[int | None, slice]] = list(bags.blocks())
        if len(group) == 1:
            train, held = bags.training(group[0]), np.r_[bags.folds[group[0]]]
            self.order = np.concatenate([train, held])
            batch_rows = bags.sizes.batch_rows
            ends = [(0, 0, len(train)), (None, len(train), len(self.order))]
            self.blocks = [
                (bucket, slice(i, min(i + batch_rows, stop)))
                for bucket, start, stop in ends
                for i in range(start, stop, batch_rows)
            ]
        self.x = bags.x[self.order]
        self.cache = FeatureCache(bags.sizes.cached_bytes)

    def first_pass(self, features: FeatureMap, R: Array, w: Array) -> list[Moments]:
        """Compute the features and their moments with R (n, columns), a bucket each."""
        R, w = R[self.order], w[self.order]
        weighted = not (w == 1).all()

        def moments(s: slice) -> Moments:
            own = Moments(features.width, R.shape[1], rr=False)
            own.add(self._features(features, s), R[s], w[s] if weighted else None)
            return own

        buckets: dict[int, Moments] = {}
        summed = [(bucket, s) for bucket, s in self.blocks if bucket is not None]
        for i in range(0, len(summed), AT_ONCE):
            some = summed[i : i + AT_ONCE]
            parts = list(self.team(moments, [s for _, s in some]))
            for (bucket, _), part in zip(some, parts, strict=True):
                if bucket in buckets:
                    buckets[bucket].take(part)
                else:
                    buckets[bucket] = part
        return [buckets[bucket] for bucket in range(self.n_buckets)]

    def second_pass(self, features: FeatureMap, C: Array) -> Array:
        """F·C for all rows, in the order of the bags."""
        moved, C = np.empty((len(self.x), C.shape[1]), order="F"), C.astype(features.dtype)

        def move(s: slice) -> None:
            moved[s] = product(self._features(features, s), C)

        list(self.team(move, [s for _, s in self.blocks]))
        if isinstance(self.order, slice):
            return moved
        back = np.empty_like(moved)
        back[self.order] = moved
        return back

    def _features(self, features: FeatureMap, s: slice) -> Array:
        """The features of a batch, kept for the second pass as far as there is room."""
        return self.cache.features(
            features, (s.start, s.stop), lambda out: features(self.x[s], out)
        )


class BucketGrams:
    """Ridge regressions that leave out one bucket each."""

    def __init__(self, buckets: list[Moments], team: Team) -> None:
        self.buckets, self.team = buckets, team

    def solve(
        self, n_members: int, penalties: tuple[float, ...], single: bool = False
    ) -> tuple[Array, Array]:
        """C and c, a column for each of R's: penalty by penalty, member by member."""
        width = len(self.buckets[0].r)
        C, c = np.empty((len(self.buckets[0].f), width)), np.empty(width)
        columns = np.arange(width).reshape(len(penalties), n_members, -1)

        def fit(member: int) -> None:
            sums = self._without(member)
            sums.center()
            for penalty, own in zip(penalties, columns[:, member], strict=True):
                C[:, own] = solve(sums.ff, sums.weight * penalty, sums.fr[:, own], single)
                c[own] = (sums.r[own] - np.einsum("i,ij->j", sums.f, C[:, own])) / sums.weight

        list(self.team(fit, range(n_members)))
        return C, c

    def _without(self, member: int) -> Moments:
        """The moments of all buckets but a member's own, if there is more than one."""
        if len(self.buckets) == 1:
            return self.buckets[0]
        return merged(bucket for k, bucket in enumerate(self.buckets) if k != member)


# Layers that only begin to find out which inputs matter.
FIRST_LAYERS = 3


# The longest step, in units of the regression's own.
LONGEST = 64.0


@dataclass(frozen=True)
class Settings:
    """What a bagged fit is told: the most layers, η, p, the penalties tried and the samplers.

    ``first`` draws the first few layers, ``sampler`` the others.
    """

    n_layers: int
    learning_rate: float
    n_features: int
    penalties: tuple[float, ...]
    first: Sampler
    sampler: Sampler
    learns_metric: bool


@dataclass(frozen=True)
class Piece:
    """One draw's share of a layer: its features, and C and c for the members that share it.

    ``length`` is their mean α.
    """

    group: tuple[int, ...]
    features: DenseFeatures
    C: Array
    c: Array
    length: float = 1.0


@dataclass
class Drawer:
    """Draws the features of one group, in the metric its own layers suggest."""

    group: tuple[int, ...]
    settings: Settings
    blocks: FeatureBlocks
    probes: Array
    slope: Array
    L: Array
    rng: Generator
    team: Team
    single_entries: int
    drawn: int = 0
    learned: bool = False

    @classmethod
    def of(
        cls,
        bags: Bags,
        group: tuple[int, ...],
        settings: Settings,
        rng: Generator,
        team: Team,
    ) -> "Drawer":
        D = bags.x.shape[1] - 1
        seen = bags.seen(group)
        n_probes = min(metric_rows(bags.y.shape[1]), len(seen))
        probes = bags.x[bags.draw(seen, n_probes, rng)]
        L = np.eye(D) if D <= DENSE_COLUMNS else np.ones(D)
        blocks = FeatureBlocks(bags, group, team)
        slope = np.zeros((len(probes), D, 1))
        single = bags.sizes.single_precision_entries
        return cls(group, settings, blocks, probes, slope, L, rng, team, single)

    def draw(self, bags: Bags, targets: Array) -> DenseFeatures:
        """Features for these targets (n, d)."""
        early, p = self.drawn < FIRST_LAYERS, self.settings.n_features
        sampler = self.settings.first if early else self.settings.sampler
        self.drawn += 1
        if self.learned:
            turns = not getattr(sampler, "axis_aligned", False)
            sampler = InMetric(sampler, self.L if turns else column_scales(self.L))
        rows = bags.draw(bags.seen(self.group), sampler.n_rows(p), self.rng)
        drawn: Any = sampler.sample(bags.x[rows, :-1], targets[rows], p, self.rng)
        return drawn

    def in_single(self, features: DenseFeatures) -> bool:
        """Whether slopes and factorisations are in single precision too: where that pays.

        Rounding decides which pairs are drawn next; small tables are spared it, so that the order
        of their rows does not matter.
        """
        worthwhile = len(self.blocks.x) * features.width >= self.single_entries
        return bool(worthwhile and features.dtype == np.float32)

    def learn(self, piece: Piece) -> None:
        """Add a layer's input gradients, averaged over members, at the probes; renew the metric.

        Features without a derivative say nothing about it.
        """
        if not (self.settings.learns_metric and hasattr(piece.features, "slopes")):
            return
        d = piece.C.shape[1] // len(self.group)
        C = piece.C.reshape(len(piece.C), len(self.group), d).mean(axis=1)
        dtype = np.dtype(np.float32 if self.in_single(piece.features) else np.float64)
        slopes = piece.features.slopes(self.probes.astype(dtype, copy=False))
        directions, C = piece.features.weights[:-1].T.astype(dtype), C.astype(dtype)
        room = slopes if d == 1 else np.empty_like(slopes)
        added = [product(np.multiply(slopes, C[:, j], out=room), directions) for j in range(d)]
        self.slope = self.slope + np.stack(added, axis=2)
        self.L, self.learned = learned_metric(self.slope), True


def fit_piece(
    bags: Bags,
    penalties: tuple[float, ...],
    raws: list[Array],
    lead: int,
    loss: Loss,
    drawer: Drawer,
) -> list[Piece]:
    """Draw features for a group, and move the predictions under every penalty along their fit."""
    group, begin = drawer.group, drawer.drawn == 0
    features = drawer.draw(bags, residuals(bags, raws[lead], group, loss))
    dtype = bagged_dtype(min(penalties), features.width, features.bound)
    features = features.astype(dtype, largest_entry(bags.x))
    # At the beginning all penalties have the same predictions to go on from.
    every = list(combinations(raws[:1] if begin else raws, group))
    R = list(drawer.team(lambda both: member_residuals(bags, both[0], both[1], loss), every))
    buckets = drawer.blocks.first_pass(features, np.concatenate(R, axis=1), bags.w)
    if begin:
        for bucket in buckets:
            bucket.repeat(len(raws))
    grams = BucketGrams(buckets, drawer.team)
    C, c = grams.solve(len(group), penalties, single=drawer.in_single(features))
    moves = drawer.blocks.second_pass(features, C) + c
    cut = np.split(np.arange(C.shape[1]), len(raws))
    return [
        move(bags, raw, Piece(group, features, C[:, i], c[i]), moves[:, i], loss, drawer)
        for raw, i in zip(raws, cut, strict=True)
    ]


def residuals(bags: Bags, raw: Array, group: tuple[int, ...], loss: Loss) -> Array:
    """What the draw should explain: for a group the held-out residuals, else a member's own."""
    if len(group) == 1:
        return -loss.gradient(raw[:, group[0]], bags.y)
    mean = raw.mean(axis=1)
    mean[bags.held_out()] = bags.out_of_fold(raw)
    return -loss.gradient(mean, bags.y)


def member_residuals(bags: Bags, raw: Array, member: int, loss: Loss) -> Array:
    """A member's negative gradients; 0 on rows that it holds out."""
    R = -loss.gradient(raw[:, member], bags.y)
    R[bags.folds[member]] = 0.0
    return R


def move(bags: Bags, raw: Array, piece: Piece, moves: Array, loss: Loss, drawer: Drawer) -> Piece:
    """Let every member go along its own fit; the piece with its step in it."""
    d = moves.shape[1] // len(piece.group)
    factors = np.empty(moves.shape[1])

    def go(i: int) -> None:
        columns, k = slice(i * d, (i + 1) * d), piece.group[i]
        alpha = step_length(bags, k, raw[:, k], moves[:, columns], loss)
        factors[columns] = alpha * drawer.settings.learning_rate
        raw[:, k] += factors[columns] * moves[:, columns]

    list(drawer.team(go, range(len(piece.group))))
    length = float(factors.mean()) / drawer.settings.learning_rate
    return replace(piece, C=frozen(piece.C * factors), c=frozen(piece.c * factors), length=length)


def step_length(bags: Bags, member: int, raw: Array, moves: Array, loss: Loss) -> float:
    """α ≈ argmin Σ w·l(raw + α·move, y) over the rows the member is fitted on.

    With a log-loss, whose curvature is everywhere and bounded, one Newton step comes near enough.
    Elsewhere it may not: Huber's loss and the pinball loss have their curvature in a few rows
    only, and Poisson's grows exponentially.
    """
    if loss.quadratic:
        return 1.0
    train = bags.training(member)
    raw, y, w, moves = raw[train], bags.y[train], bags.w[train], moves[train]

    def derivatives(alpha: float) -> tuple[float, float]:
        slope, curvature = loss.slope_and_curvature(raw + alpha * moves, y, moves)
        return float(w @ slope), float(w @ curvature)

    if not loss.least_squares or loss.degree is not None:
        return min(minimize_convex(derivatives), LONGEST)
    return newton_step(derivatives, LONGEST)
