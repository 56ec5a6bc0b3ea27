"""One layer of a bagged fit: features drawn for a group of members, and how each moves by them."""

from dataclasses import dataclass, replace
from itertools import product as combinations
from typing import Any

import numpy as np
from numpy.random import Generator

from rfrboost._bags import Bags
from rfrboost._blas import product
from rfrboost._blocks import BucketGrams, FeatureBlocks
from rfrboost._features import DenseFeatures, Sampler
from rfrboost._linesearch import minimize_convex
from rfrboost._losses import Loss
from rfrboost._metric import (
    DENSE_COLUMNS,
    InMetric,
    column_scales,
    learned_metric,
    metric_rows,
)
from rfrboost._precision import WORTHWHILE, bagged_dtype
from rfrboost._rows import largest_entry
from rfrboost._threads import Team
from rfrboost._typing import Array, frozen

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
        return cls(group, settings, blocks, probes, slope, L, rng, team)

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
        worthwhile = len(self.blocks.x) * features.width >= WORTHWHILE
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
    R = drawer.team(lambda both: member_residuals(bags, both[0], both[1], loss), every)
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

    drawer.team(go, range(len(piece.group)))
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
    slope, curvature = derivatives(0.0)
    return float(np.clip(-slope / curvature, 0.0, LONGEST)) if curvature > 0 else 0.0
