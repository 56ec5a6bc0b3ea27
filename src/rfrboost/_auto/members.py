"""Boosting all members of a bagged fit side by side: Algorithm 2 in the space of predictions.

Φ is the members' raw predictions themselves, so that the head is the identity and a layer is
Φ_t = Φ_{t−1} + η α_t A_t f_t(x): regress the negative gradient of the loss on random features of
x, and go along the fit by a step that lowers the loss. Members that share a draw share its Gram
matrices: that of a member is the sum over all folds but its own. Several penalties go side by side
on the same features, each with its own predictions; how many layers each of them keeps is decided
by the loss on the rows that members hold out.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter

import numpy as np
from numpy.random import Generator

from rfrboost._auto.bags import Bags
from rfrboost._auto.layer import Drawer, Piece, Settings, fit_piece
from rfrboost._model.history import LayerRecord, Watch
from rfrboost._model.losses import Loss
from rfrboost._numerics.threads import Team
from rfrboost._paper.stopping import Stopping
from rfrboost._typing import Array


@dataclass(frozen=True)
class Run:
    """How a fit is carried out: by whom, in how many seconds, and who is told of every layer."""

    team: Team
    left: Callable[[], float]
    watch: Watch

    def more_time(self) -> bool:
        """Whether there are seconds left."""
        return self.left() > 0

    def over_groups(self, bags: Bags) -> tuple[Team, Team]:
        """Who shares out groups, and who the work within one: a team is not asked twice."""
        return (self.team, map) if len(bags.groups) > 1 else (map, self.team)


@dataclass(frozen=True)
class Boosted:
    """The layers kept under a penalty, what they predict for held-out rows and how well, and the
    metric that every group had when the last of them was drawn."""

    layers: tuple[tuple[Piece, ...], ...]
    out_of_fold: Array
    loss: float
    metrics: tuple[Array, ...]
    penalty: float
    rounds: tuple[LayerRecord, ...]


@dataclass(eq=False)
class Candidate:
    """A penalty, all members' predictions (n, members, d) under it, and its layers so far."""

    penalty: float
    raw: Array
    loss: float
    best: Boosted
    stopping: Stopping
    layers: list[tuple[Piece, ...]] = field(default_factory=list)
    rounds: list[LayerRecord] = field(default_factory=list)

    def grow(self, layer: tuple[Piece, ...], record: LayerRecord) -> None:
        """Take in a layer that has moved the predictions already."""
        self.layers.append(layer)
        self.rounds.append(record)
        self.loss = record.loss

    def judge(self, bags: Bags, metrics: tuple[Array, ...]) -> None:
        """Keep the layers so far, if they are the best yet."""
        if self.stopping.improves(self.loss, len(self.layers)):
            layers, rounds = tuple(self.layers), tuple(self.rounds)
            oof = bags.out_of_fold(self.raw)
            self.best = Boosted(layers, oof, self.loss, metrics, self.penalty, rounds)

    def goes_on(self, enough: float) -> bool:
        """Whether another layer may still help."""
        return not self.stopping.stalled(len(self.layers)) and self.best.loss > enough


def boost_members(
    bags: Bags,
    start: Array,
    loss: Loss,
    settings: Settings,
    rng: Generator,
    run: Run,
) -> list[Boosted]:
    """Boost from ``start`` (n, members, d), each penalty until its held-out loss stops falling.

    The results are sorted by that loss; at least one is there, perhaps without layers.
    """
    across, within = run.over_groups(bags)
    drawers = [
        Drawer.of(bags, group, settings, own, within)
        for group, own in zip(bags.groups, rng.spawn(len(bags.groups)), strict=True)
    ]
    began = held_out_loss(bags, start, loss)
    nothing = Boosted(
        (), bags.out_of_fold(start), began, tuple(d.L for d in drawers), settings.penalties[0], ()
    )
    everyone = [
        Candidate(penalty, start.copy(), began, nothing, Stopping(began))
        for penalty in settings.penalties
    ]
    candidates, leader = everyone, everyone[0]
    enough = loss.enough * constant_loss(bags, loss)

    for _ in range(settings.n_layers):
        clock = perf_counter()
        penalties = tuple(candidate.penalty for candidate in candidates)
        raws, lead = [candidate.raw for candidate in candidates], candidates.index(leader)
        pieces = list(across(partial(fit_piece, bags, penalties, raws, lead, loss), drawers))
        seconds = perf_counter() - clock
        metrics = tuple(drawer.L for drawer in drawers)
        for candidate, layer in zip(candidates, zip(*pieces, strict=True), strict=True):
            candidate.grow(layer, record_of(bags, candidate, layer, loss, seconds))
            candidate.judge(bags, metrics)
        run.watch(min(candidates, key=held_out).rounds[-1])
        candidates = [candidate for candidate in candidates if candidate.goes_on(enough)]
        if not candidates or not run.more_time():
            break
        leader = min(candidates, key=held_out)
        pairs = zip(drawers, leader.layers[-1], strict=True)
        list(across(lambda both: both[0].learn(both[1]), pairs))
    helped = [candidate.best for candidate in everyone if candidate.best.layers]
    return sorted(helped, key=held_out) or [nothing]


def held_out(judged: "Candidate | Boosted") -> float:
    """What to compare by."""
    return judged.loss


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


def record_of(
    bags: Bags, candidate: Candidate, layer: tuple[Piece, ...], loss: Loss, seconds: float
) -> LayerRecord:
    """What a layer just fitted did to held-out rows; a step is as long as its members' mean."""
    rows = bags.held_out()
    gradient = loss.gradient(bags.out_of_fold(candidate.raw), bags.y[rows])
    norm = float(np.sqrt(bags.w[rows] @ np.square(gradient).sum(axis=1) / bags.w[rows].sum()))
    length = float(np.mean([piece.length for piece in layer]))
    mean = held_out_loss(bags, candidate.raw, loss)
    return LayerRecord(len(candidate.layers) + 1, mean, length, norm, seconds)
