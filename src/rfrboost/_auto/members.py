"""Boosting all members of an ensemble together: Algorithm 2 of the paper, in prediction space.

Rows are cut into folds, as in cross-validation. A bag is all folds but one; rows are not drawn with
replacement. A member is the model that is fitted on a bag, and it holds out the fold left out.

Φ is the members' raw predictions themselves, so that the head is the identity and a layer is
Φ_t = Φ_{t−1} + η α_t A_t f_t(x): regress the negative gradient of the loss on random features of x,
and move along the fit by a step that lowers the loss. (A_t and its intercept are C and c in
:mod:`rfrboost._auto.layer`.) Members of a group share a draw of features and its Gram matrices: the
Gram matrix of a member is the sum over all folds but the one it holds out. A model is boosted for
each of several ridge penalties, all on the same features. How many layers are kept under each
penalty is decided by the loss on held-out rows.

Predictions of all members are arrays (n, members, d). One layer is in
:mod:`rfrboost._auto.layer`; this module decides how many there are, by the rule of early stopping
(:class:`Stopping`, :class:`HeldOutCurve`) that tree members follow too. Fits with a set number of
layers do not use it: see :mod:`rfrboost._paper.boost`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator

from rfrboost._auto.bags import Bags
from rfrboost._auto.layer import (
    GroupDraws,
    GroupLayer,
    Settings,
    fit_group_layer,
    linear_layers,
)
from rfrboost._model.history import LayerRecord, Watch
from rfrboost._model.losses import Loss
from rfrboost._numerics.threads import OutOfTimeError, Team
from rfrboost._typing import Array

# Number of layers without an improvement after which a fit stops. Held-out losses of single layers
# are noisy; with fewer layers fits stop too early on small tables.
PATIENCE = 4
# A loss counts as an improvement if it is lower than the best so far by more than this share of it.
# Smaller gains are not worth the time of another layer.
IMPROVEMENT = 1e-3
# Number of layers that are fitted before early stopping begins: where few inputs matter, the first
# layers only find out which ones. It has to be larger than PATIENCE.
FEWEST_LAYERS = 6

# A family, or one of its penalties, is given up if its held-out loss is expected to stay more than
# this share above the lowest of all others. The half was compared with a quarter on ten tables, and
# is the more careful of the two: see docs/automatic.md.
BEHIND = 0.5

# ``workers(work, made, items)`` are the results of ``work(made(item))`` for every item, in order.
# ``made`` is called in this process, ``work`` possibly in another, on another machine.
Workers = Callable[[Callable[[Any], Any], Callable[[Any], Any], list[Any]], Iterable[Any]]

# How good out-of-fold predictions (rows of ``Bags.held_out``, d) are, the higher the better.
HeldOutScore = Callable[[Array], float]


def threads_as_workers(
    team: Team, work: Callable[[Any], Any], made: Callable[[Any], Any], items: list[Any]
) -> Iterable[Any]:
    """``work(made(item))`` for every item, by the threads of a team."""
    return team(lambda item: work(made(item)), items)


class Snapshot(Protocol):
    """Where finished families are kept, each under the name of the phase that fitted it."""

    def read(self, phase: str) -> tuple[Any, int] | None:
        """The family of a phase and the ``streams`` written with it; None if it is not kept."""

    def write(self, phase: str, family: Any, streams: int) -> None:
        """Keep a family, and how many streams the fit's random generator has spawned by now."""


@dataclass(frozen=True)
class Run:
    """The threads that a fit uses, its time limit, the observer of its layers, and its snapshot.

    ``team`` is for work outside groups, ``across_groups`` for one task per group, ``within_group``
    for the tasks of one group. A team must not be used from inside its own tasks: with several
    groups ``within_group`` is plain ``map``, with one group ``across_groups`` is. ``workers`` fit
    the leaves of kernel members: the threads of ``team``, or those of a cluster. ``deadline`` is
    when all families have to be fitted, a reading of ``time.perf_counter`` in seconds. ``watch``,
    unless it is None, gets the record of the best penalty's layer after each round; no more layers
    are added once it returns false. If ``score`` is None, only the loss counts. ``snapshot``,
    unless it is None, keeps the families that are finished.
    """

    team: Team
    across_groups: Team
    within_group: Team
    workers: Workers
    deadline: float
    watch: Watch | None
    score: HeldOutScore | None = None
    snapshot: Snapshot | None = None


@dataclass(frozen=True)
class Boosted:
    """The layers kept under one penalty, each a layer for every group.

    ``out_of_fold`` (rows of ``Bags.held_out``, d) are their predictions for held-out rows, ``loss``
    is the mean loss of these and ``score`` their score, if the fit has one. ``metrics`` are the
    distance metrics L (see :class:`~rfrboost._auto.layer.GroupDraws`), one for each group, in which
    the last of the layers was drawn; the tuple is empty for linear members, which draw nothing.
    """

    layers: tuple[tuple[GroupLayer, ...], ...]
    out_of_fold: Array
    loss: float
    metrics: tuple[Array, ...]
    penalty: float
    records: tuple[LayerRecord, ...]
    score: float = 0.0


@dataclass
class Stopping:
    """The best held-out loss so far, and the number of layers that gave it.

    Where held-out rows have a score too, a higher score is better whatever the loss, by however
    little; the loss decides between equal scores.
    """

    best_loss: float = np.inf
    best_layers: int = 0
    best_score: float = 0.0

    def improves(self, loss: float, n_layers: int, score: float = 0.0) -> bool:
        """Whether loss and score after ``n_layers`` are better than the best; if so, keep them.

        A loss is better if it is lower by more than IMPROVEMENT.
        """
        if score != self.best_score:
            if score < self.best_score:
                return False
            self.best_score, self.best_loss, self.best_layers = score, loss, n_layers
            return True
        margin = IMPROVEMENT * abs(self.best_loss) if self.best_loss < np.inf else 0.0
        if not loss < self.best_loss - margin:
            return False
        self.best_loss = loss
        self.best_layers = n_layers
        return True

    def stalled(self, n_layers: int) -> bool:
        """Whether the last PATIENCE layers, of at least FEWEST_LAYERS, brought no improvement."""
        return n_layers >= FEWEST_LAYERS and n_layers - self.best_layers >= PATIENCE


class HeldOutCurve:
    """The held-out loss of the layers that are added to predictions ``start``, one by one.

    ``records`` are those of all layers so far. ``stopping`` knows the best number of layers, with
    its loss and score, and ``out_of_fold`` (rows of ``Bags.held_out``, d) are the predictions after
    that number. ``stalled`` is true if the last layers have brought no improvement.
    """

    def __init__(
        self, bags: Bags, start: Array, loss: Loss, score: HeldOutScore | None = None
    ) -> None:
        self.bags = bags
        self.loss = loss
        self.score = score
        self.out_of_fold = bags.out_of_fold(start)
        self.records: list[LayerRecord] = []
        self.stalled = False
        self.stopping = Stopping(
            mean_loss(bags, self.out_of_fold, loss),
            best_score=score_of(self.out_of_fold, score),
        )

    def add(self, raw: Array, step_length: float, seconds: float) -> bool:
        """Record predictions ``raw`` (n, members, d) after another layer that took ``seconds``.

        Returns whether they improve on the best so far (:meth:`Stopping.improves`).
        """
        out_of_fold = self.bags.out_of_fold(raw)
        number = len(self.records) + 1
        mean = mean_loss(self.bags, out_of_fold, self.loss)
        norm = gradient_norm(self.bags, out_of_fold, self.loss)
        self.records.append(LayerRecord(number, mean, step_length, norm, seconds))
        better = self.stopping.improves(mean, number, score_of(out_of_fold, self.score))
        if better:
            self.out_of_fold = out_of_fold
        self.stalled = self.stopping.stalled(number)
        return better

    def far_behind(self, rival: float, layers_left: int) -> bool:
        """Whether the loss is expected to stay more than ``BEHIND`` above a loss ``rival``.

        Each of the ``layers_left`` is expected to gain as much as the last PATIENCE layers did on
        average. That is generous, because gains shrink from layer to layer. It is never so before
        FEWEST_LAYERS layers, nor where a score decides instead of the loss.
        """
        losses = [record.loss for record in self.records]
        if self.score is not None or len(losses) < FEWEST_LAYERS:
            return False
        gain = max(losses[-1 - PATIENCE] - losses[-1], 0.0) / PATIENCE
        return losses[-1] - gain * layers_left > rival + BEHIND * abs(rival)


@dataclass(eq=False)
class Candidate:
    """A penalty, all members' predictions (n, members, d) under it, and its layers so far.

    ``metrics`` are the distance metrics of all groups at the best number of layers.
    """

    penalty: float
    raw: Array
    curve: HeldOutCurve
    metrics: tuple[Array, ...]
    layers: list[tuple[GroupLayer, ...]] = field(default_factory=list)

    def add(
        self, layer: tuple[GroupLayer, ...], metrics: tuple[Array, ...], seconds: float
    ) -> None:
        """Add a layer by which the predictions have been moved already."""
        self.layers.append(layer)
        length = float(np.mean([of_group.step_length for of_group in layer]))
        if self.curve.add(self.raw, length, seconds):
            self.metrics = metrics

    def last_loss(self) -> float:
        """The held-out loss after the last layer."""
        return self.curve.records[-1].loss

    def may_improve(self, enough: float, rival: float, layers_left: int) -> bool:
        """Whether to add a layer: not if the loss has stalled, is far behind or ≤ ``enough``."""
        if self.curve.stalled or self.curve.far_behind(rival, layers_left):
            return False
        return self.curve.stopping.best_loss > enough

    def kept(self) -> Boosted:
        """The layers up to the best number of them, without those that came after."""
        best = self.curve.stopping
        return Boosted(
            layers=tuple(self.layers[: best.best_layers]),
            out_of_fold=self.curve.out_of_fold,
            loss=best.best_loss,
            metrics=self.metrics,
            penalty=self.penalty,
            records=tuple(self.curve.records[: best.best_layers]),
            score=best.best_score,
        )


def fit_linear(
    bags: Bags, start: Array, loss: Loss, penalties: tuple[float, ...], run: Run
) -> tuple[Boosted, Array]:
    """The linear members under the best penalty, and their predictions (n, members, d).

    They are one layer with learning rate 1, whose features are the columns of x. There is no layer,
    and predictions are those of ``start`` (n, members, d), if no penalty lowers the held-out loss
    by more than ``IMPROVEMENT``.
    """
    first = held_out_loss(bags, start, loss)
    best = Boosted(
        layers=(),
        out_of_fold=bags.out_of_fold(start),
        loss=first,
        metrics=(),
        penalty=penalties[0],
        records=(),
    )
    best_raw = start
    for penalty, own, raw in linear_layers(bags, start, loss, penalties, run.team, run.deadline):
        reached = held_out_loss(bags, raw, loss)
        if reached < best.loss and Stopping(first).improves(reached, 1):
            best_raw = raw
            best = replace(
                best,
                layers=((own,),),
                out_of_fold=bags.out_of_fold(raw),
                loss=reached,
                penalty=penalty,
            )
    return best, best_raw


def boost_members(
    bags: Bags,
    start: Array,
    loss: Loss,
    settings: Settings,
    rng: Generator,
    run: Run,
    rival: float = np.inf,
) -> list[Boosted]:
    """Boost from predictions ``start`` (n, members, d), under all penalties side by side.

    Layers are added under a penalty until its held-out loss has stalled (:class:`Stopping`), until
    it is at most the share ``loss.enough`` of a constant prediction's loss, or until it is far
    behind the lowest, that of other families (``rival``) or of another penalty. All layers end when
    ``run.watch`` says so, or when another that takes as long as the last would not end before the
    deadline. Returns a :class:`Boosted` for each penalty that lowered the held-out loss by more
    than ``IMPROVEMENT`` (or raised ``run.score``, where there is one), best first; if none did, one
    without layers.
    """
    groups = [
        GroupDraws(bags, group, settings, own, run.within_group, run.deadline)
        for group, own in zip(bags.groups, rng.spawn(len(bags.groups)), strict=True)
    ]
    metrics = tuple(group.L for group in groups)
    everyone = [
        Candidate(penalty, start.copy(), HeldOutCurve(bags, start, loss, run.score), metrics)
        for penalty in settings.penalties
    ]
    candidates = everyone
    leader = everyone[0]
    enough = loss.enough * constant_loss(bags, loss)

    for left in reversed(range(settings.n_layers)):
        began = perf_counter()
        try:
            layers = next_layers(bags, candidates, leader, loss, groups, run)
        except OutOfTimeError:
            break
        seconds = perf_counter() - began
        metrics = tuple(group.L for group in groups)
        for candidate, layer in zip(candidates, layers, strict=True):
            candidate.add(layer, metrics, seconds)
        leading = min(candidates, key=Candidate.last_loss).curve.records[-1]
        if run.watch is not None and not run.watch.layer(leading):
            break
        rival = min(rival, *(own.curve.stopping.best_loss for own in everyone))
        candidates = [own for own in candidates if own.may_improve(enough, rival, left)]
        if not candidates or perf_counter() + seconds >= run.deadline:
            break
        leader = min(candidates, key=Candidate.last_loss)
    found = [candidate.kept() for candidate in everyone]
    improved = [boosted for boosted in found if boosted.layers]
    return sorted(improved, key=lambda boosted: (-boosted.score, boosted.loss)) or found[:1]


def next_layers(
    bags: Bags,
    candidates: list[Candidate],
    leader: Candidate,
    loss: Loss,
    groups: list[GroupDraws],
    run: Run,
) -> list[tuple[GroupLayer, ...]]:
    """Fit another layer for all groups, and move the predictions of all candidates by it.

    Features are drawn for the residuals of the ``leader``, and shared by all candidates. Returns a
    layer for each candidate.
    """
    penalties = tuple(candidate.penalty for candidate in candidates)
    raws = [candidate.raw for candidate in candidates]
    lead = candidates.index(leader)
    previous = leader.layers[-1] if leader.layers else (None,) * len(groups)

    def fit(pair: tuple[GroupDraws, GroupLayer | None]) -> list[GroupLayer]:
        return fit_group_layer(bags, penalties, raws, lead, loss, *pair)

    by_group = run.across_groups(fit, zip(groups, previous, strict=True))
    return list(zip(*by_group, strict=True))


def held_out_loss(bags: Bags, raw: Array, loss: Loss) -> float:
    """The mean loss of the out-of-fold predictions among ``raw`` (n, members, d)."""
    return mean_loss(bags, bags.out_of_fold(raw), loss)


def mean_loss(bags: Bags, out_of_fold: Array, loss: Loss) -> float:
    """The weighted mean of the loss over held-out rows; infinite if it is not finite."""
    rows = bags.held_out
    values = loss.value(out_of_fold, bags.y[rows])
    mean = float(bags.w[rows] @ values / bags.w[rows].sum())
    return mean if np.isfinite(mean) else np.inf


def gradient_norm(bags: Bags, out_of_fold: Array, loss: Loss) -> float:
    """The root of the weighted mean of ‖∇l‖² over held-out rows."""
    rows = bags.held_out
    gradient = loss.gradient(out_of_fold, bags.y[rows])
    return float(np.sqrt(bags.w[rows] @ np.square(gradient).sum(axis=1) / bags.w[rows].sum()))


def score_of(out_of_fold: Array, score: HeldOutScore | None) -> float:
    """The score of out-of-fold predictions; 0 without a score, −∞ if a prediction is not finite."""
    if score is None:
        return 0.0
    return score(out_of_fold) if np.isfinite(out_of_fold).all() else -np.inf


def constant_loss(bags: Bags, loss: Loss) -> float:
    """The weighted mean of |l| for the constant prediction ``loss.start``.

    It is the scale that other losses are compared to.
    """
    b = loss.start(bags.y, bags.w)
    return float(bags.w @ np.abs(loss.value(np.tile(b, (len(bags.y), 1)), bags.y)) / bags.w.sum())
