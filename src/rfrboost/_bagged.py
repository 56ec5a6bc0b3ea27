"""Boosting all members of a bagged fit side by side: Algorithm 2 in the space of predictions.

Φ is the members' raw predictions themselves, so that the head is the identity and a layer is
Φ_t = Φ_{t−1} + η α_t A_t f_t(x): regress the negative gradient of the loss on random features of
x, and go along the fit by a step that lowers the loss. Members that share a draw share its Gram
matrices: that of a member is the sum over all folds but its own. Several penalties are tried at
once, each with its own predictions, and the losing ones dropped on the way; how many layers are
kept is decided by the loss on the rows that members hold out.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.random import Generator

from rfrboost._bags import Bags
from rfrboost._blas import product
from rfrboost._blocks import BucketGrams, FeatureBlocks
from rfrboost._boost import LayerRecord, Watch
from rfrboost._features import DenseFeatures, Sampler
from rfrboost._linesearch import minimize_convex
from rfrboost._losses import Loss
from rfrboost._metric import DENSE_COLUMNS, METRIC_ROWS, InMetric, column_scales, learned_metric
from rfrboost._precision import bagged_dtype
from rfrboost._rows import largest_entry
from rfrboost._typing import Array, frozen

# After how many layers how many penalties are left.
HALVING = {2: 3, 4: 2, 8: 1}
# Layers without an improvement of the held-out loss (by more than this share) before the end.
PATIENCE = 4
IMPROVEMENT = 1e-3
# Layers before that counts: where few inputs matter, the first ones only find out which.
FEWEST = 6
# The longest step, in units of the regression's own.
LONGEST = 64.0


@dataclass(frozen=True)
class Settings:
    """What a bagged fit is told: the most layers, η, p, the penalties tried and the sampler."""

    n_layers: int
    learning_rate: float
    n_features: int
    penalties: tuple[float, ...]
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


@dataclass(frozen=True)
class Boosted:
    """The chosen layers, what they predict for held-out rows, and the metric of every group."""

    layers: tuple[tuple[Piece, ...], ...]
    out_of_fold: Array
    metrics: tuple[Array, ...]
    penalty: float | None
    rounds: tuple[LayerRecord, ...]


@dataclass
class Candidate:
    """A penalty, all members' predictions (n, members, d) under it, and its layers so far."""

    penalty: float
    raw: Array
    loss: float
    layers: list[tuple[Piece, ...]] = field(default_factory=list)


def boost_members(
    bags: Bags,
    start: Array,
    loss: Loss,
    settings: Settings,
    rng: Generator,
    more_time: Callable[[], bool],
    watch: Watch,
) -> Boosted:
    """Boost from ``start`` (n, members, d) until the held-out loss stops falling."""
    began = held_out_loss(bags, start, loss)
    candidates = [Candidate(penalty, start.copy(), began) for penalty in settings.penalties]
    leader = candidates[len(candidates) // 2]
    drawers = [Drawer.of(bags, group, settings, rng) for group in bags.groups]
    identity = tuple(drawer.L for drawer in drawers)
    best = Boosted((), bags.out_of_fold(start), identity, None, ())
    best_loss, rounds = began, []
    enough = loss.enough * constant_loss(bags, loss)

    for t in range(1, settings.n_layers + 1):
        clock = perf_counter()
        pieces = [fit_piece(bags, drawer, candidates, leader, loss, rng) for drawer in drawers]
        for candidate, layer in zip(candidates, zip(*pieces, strict=True), strict=True):
            candidate.layers.append(layer)
            candidate.loss = held_out_loss(bags, candidate.raw, loss)
        leader = min(candidates, key=lambda candidate: candidate.loss)
        rounds.append(record_of(bags, leader, loss, perf_counter() - clock))
        watch(rounds[-1])
        if leader.loss < best_loss - IMPROVEMENT * abs(best_loss):
            metrics = tuple(drawer.L for drawer in drawers)
            layers = tuple(leader.layers)
            oof = bags.out_of_fold(leader.raw)
            best = Boosted(layers, oof, metrics, leader.penalty, tuple(rounds))
            best_loss = leader.loss
        stalled = t >= FEWEST and t - len(best.layers) >= PATIENCE
        if stalled or best_loss <= enough or not more_time():
            break
        candidates = sorted(candidates, key=lambda c: c.loss)[: HALVING.get(t, len(candidates))]
        for drawer, of_leader in zip(drawers, leader.layers[-1], strict=True):
            drawer.learn(of_leader)
    return best


def held_out_loss(bags: Bags, raw: Array, loss: Loss) -> float:
    """The weighted mean of the loss over held-out rows."""
    rows = bags.held_out()
    values = loss.value(bags.out_of_fold(raw), bags.y[rows])
    mean = float(bags.w[rows] @ values / bags.w[rows].sum())
    return mean if np.isfinite(mean) else np.inf


def constant_loss(bags: Bags, loss: Loss) -> float:
    """What the best constant would lose on average, the least there is to gain from."""
    b = loss.start(bags.y, bags.w)
    return float(bags.w @ np.abs(loss.value(np.tile(b, (len(bags.y), 1)), bags.y)) / bags.w.sum())


def record_of(bags: Bags, leader: Candidate, loss: Loss, seconds: float) -> LayerRecord:
    """What the layer just fitted did to held-out rows; a step is as long as its members' mean."""
    rows = bags.held_out()
    gradient = loss.gradient(bags.out_of_fold(leader.raw), bags.y[rows])
    norm = float(np.sqrt(bags.w[rows] @ np.square(gradient).sum(axis=1) / bags.w[rows].sum()))
    length = float(np.mean([piece.length for piece in leader.layers[-1]]))
    return LayerRecord(len(leader.layers), leader.loss, length, norm, seconds)


@dataclass
class Drawer:
    """Draws the features of one group, in the metric its own layers suggest."""

    group: tuple[int, ...]
    settings: Settings
    blocks: FeatureBlocks
    probes: Array
    slope: Array
    L: Array
    learned: bool = False

    @classmethod
    def of(cls, bags: Bags, group: tuple[int, ...], settings: Settings, rng: Generator) -> "Drawer":
        D = bags.x.shape[1] - 1
        probes = bags.x[bags.draw(bags.seen(group), METRIC_ROWS, rng)]
        L = np.eye(D) if D <= DENSE_COLUMNS else np.ones(D)
        blocks = FeatureBlocks(bags, group)
        return cls(group, settings, blocks, probes, np.zeros((len(probes), D, 1)), L)

    def draw(self, bags: Bags, targets: Array, rng: Generator) -> DenseFeatures:
        """Features for these targets (n, d)."""
        sampler, p = self.settings.sampler, self.settings.n_features
        if self.learned:
            turns = not getattr(sampler, "axis_aligned", False)
            sampler = InMetric(sampler, self.L if turns else column_scales(self.L))
        rows = bags.draw(bags.seen(self.group), sampler.n_rows(p), rng)
        drawn: Any = sampler.sample(bags.x[rows, :-1], targets[rows], p, rng)
        return drawn

    def learn(self, piece: Piece) -> None:
        """Add a layer's input gradients, averaged over members, at the probes; renew the metric.

        Features without a derivative say nothing about it.
        """
        if not (self.settings.learns_metric and hasattr(piece.features, "slopes")):
            return
        d = piece.C.shape[1] // len(self.group)
        C = piece.C.reshape(len(piece.C), len(self.group), d).mean(axis=1)
        slopes = piece.features.slopes(self.probes)
        directions = piece.features.weights[:-1].T
        added = [product(slopes * C[:, j], directions.astype(float)) for j in range(d)]
        self.slope = self.slope + np.stack(added, axis=2)
        self.L, self.learned = learned_metric(self.slope), True


def fit_piece(
    bags: Bags,
    drawer: Drawer,
    candidates: list[Candidate],
    leader: Candidate,
    loss: Loss,
    rng: Generator,
) -> list[Piece]:
    """Draw features for a group, and move every candidate's predictions along its own fit."""
    group = drawer.group
    features = drawer.draw(bags, residuals(bags, leader, group, loss), rng)
    smallest = min(candidate.penalty for candidate in candidates)
    dtype = bagged_dtype(smallest, features.width, features.bound)
    features = features.astype(dtype, largest_entry(bags.x))
    R = [group_residuals(bags, candidate, group, loss) for candidate in candidates]
    grams = BucketGrams(drawer.blocks.first_pass(features, np.concatenate(R, axis=1), bags.w))
    C, c = grams.solve(len(group), tuple(candidate.penalty for candidate in candidates))
    moves = drawer.blocks.second_pass(features, C) + c
    cut = np.split(np.arange(C.shape[1]), len(candidates))
    return [
        move(bags, candidate, Piece(group, features, C[:, i], c[i]), moves[:, i], loss, drawer)
        for candidate, i in zip(candidates, cut, strict=True)
    ]


def residuals(bags: Bags, candidate: Candidate, group: tuple[int, ...], loss: Loss) -> Array:
    """What the draw should explain: for a group the held-out residuals, else a member's own."""
    if len(group) == 1:
        raw = candidate.raw[:, group[0]]
    else:
        raw = candidate.raw.mean(axis=1)
        raw[bags.held_out()] = bags.out_of_fold(candidate.raw)
    return -loss.gradient(raw, bags.y)


def group_residuals(bags: Bags, candidate: Candidate, group: tuple[int, ...], loss: Loss) -> Array:
    """The negative gradients of a group's members, side by side; 0 on rows that one holds out."""
    R = [-loss.gradient(candidate.raw[:, k], bags.y) for k in group]
    for k, own in zip(group, R, strict=True):
        own[bags.folds[k]] = 0.0
    return np.concatenate(R, axis=1)


def move(
    bags: Bags, candidate: Candidate, piece: Piece, moves: Array, loss: Loss, drawer: Drawer
) -> Piece:
    """Let every member go along its own fit; the piece with its step in it."""
    d = moves.shape[1] // len(piece.group)
    factors = np.empty(moves.shape[1])
    for i, k in enumerate(piece.group):
        columns = slice(i * d, (i + 1) * d)
        raw = candidate.raw[:, k]
        alpha = step_length(bags, k, raw, moves[:, columns], loss)
        factors[columns] = alpha * drawer.settings.learning_rate
        raw += factors[columns] * moves[:, columns]
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
