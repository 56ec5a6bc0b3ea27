"""One layer of an ensemble, for one group of members: Φ_t = Φ_{t−1} + η α A f(x).

Random features f are drawn once per layer for a group. Two passes over its rows follow. The first
computes the features batch by batch and sums up Gram matrices fold by fold, from which each
member's ridge regression of its residuals is solved: C of shape (p, columns) and c of shape
(columns,), where the columns are d outputs for each member of the group, under each penalty. The
second pass computes F·C + c, along which each member takes its step α. Features are kept between
the passes as far as memory allows.

The first layer of all is linear, without random features (:func:`linear_layers`): ridge regression
on the columns of x or, with fewer rows than columns, its dual form, which has the same solution.

How many layers there are is decided in :mod:`rfrboost._auto.members`. A single network
(``n_layers`` a number) is not fitted here but by :mod:`rfrboost._paper.boost`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product as combinations
from time import perf_counter

import numpy as np
from numpy.random import Generator

from rfrboost._auto.bags import Bags
from rfrboost._auto.linear import LinearSolver, affordable, row_solver
from rfrboost._model.features import Columns, DenseFeatures, FeatureMap
from rfrboost._model.losses import Loss
from rfrboost._model.metric import DENSE_COLUMNS, learned_metric, metric_rows
from rfrboost._model.samplers import InMetric, Sampler, is_axis_aligned
from rfrboost._numerics.arrays import largest_entry
from rfrboost._numerics.blas import column_scales, product
from rfrboost._numerics.least_squares import Moments, moments_of, ridges
from rfrboost._numerics.precision import UNIT_ROUNDOFF
from rfrboost._numerics.threads import OutOfTimeError, Team
from rfrboost._paper.line_search import minimize_convex, newton_step
from rfrboost._rows.chunks import FeatureCache
from rfrboost._typing import Array, Indices

# Batches whose moments are computed before they are added up: work for eight threads. Each is a
# p × p matrix, 2 MB for 512 features; their memory must not grow with the number of rows.
BATCHES_AT_ONCE = 8
# The time of a layer, both passes and the equations between them, as a multiple of the first pass's
# time. From a part of the first pass it tells whether the layer will end before the deadline.
BOTH_PASSES = 1.6
# With many columns, features are drawn from fewer rows and input gradients taken at fewer rows, to
# save time. Even then there are this many rows for each feature (one pair), and this many probes.
FEWEST_DRAWN = 2
FEWEST_PROBES = 32
# Number of layers that are drawn by Settings.first. While these are fitted, little is known of
# which inputs matter.
FIRST_LAYERS = 3
# Number of predictions of linear members that are computed at a time (64 MB), under as many
# penalties as that allows: one product of many columns is faster than many of few.
PREDICTIONS_AT_ONCE = 2**23
# The largest step length α. One is the full step of the regression; where a loss has hardly any
# curvature along the move, the best α may be infinite. The limit only has to be far above one.
LONGEST_STEP = 64.0


@dataclass(frozen=True)
class Settings:
    """The settings of one family of boosted members.

    ``n_layers`` is the largest number of layers, ``learning_rate`` is η, and ``n_features`` is p.
    Models under each of ``penalties`` are boosted side by side on shared features, each with its
    own predictions. ``first`` draws the features of the first ``FIRST_LAYERS`` layers, ``sampler``
    those of all others. With ``learns_metric`` features are drawn in a distance metric learned from
    the layers before.
    """

    n_layers: int
    learning_rate: float
    n_features: int
    penalties: tuple[float, ...]
    first: Sampler
    sampler: Sampler
    learns_metric: bool


@dataclass(frozen=True)
class GroupLayer:
    """A layer of a group: F·C + c is added to its members' predictions, d columns for each member.

    Unlike the C and c of the regression, these include α and η; ``step_length`` is the mean α.
    """

    group: tuple[int, ...]
    features: FeatureMap
    C: Array
    c: Array
    step_length: float


class GroupFeatures:
    """The rows of a group in batches, and the features of the present layer on them.

    A group of several members has a sum of moments for each fold. A member that draws alone has one
    sum only, of all rows it is fitted on; the rows it holds out come last, and rows that it neither
    fits nor holds out are left out. ``batches`` are pairs of the index of a sum (None for rows in
    no sum) and a slice of the rows. ``parts`` are, for each member of the group, the indices of the
    sums it is fitted on. A ``team`` of threads computes batches, which are added up in their order,
    so that the number of threads changes no bit. ``deadline`` is a reading of ``perf_counter``.
    """

    def __init__(
        self, bags: Bags, group: tuple[int, ...], team: Team, deadline: float = np.inf
    ) -> None:
        self.team = team
        self.deadline = deadline
        self.n_rows = len(bags.y)
        self.n_sums = len(bags.folds)
        self.parts = tuple(bags.fitted[k] for k in group)
        self.order: Indices | slice = slice(None)
        self.batches: list[tuple[int | None, slice]] = list(bags.batches())
        if len(group) == 1:
            train, held = bags.split(group[0])
            batch_rows = bags.sizes.batch_rows
            self.n_sums = 1
            self.parts = ((0,),)
            self.order = np.concatenate([train, held])
            ends = [(0, 0, len(train)), (None, len(train), len(self.order))]
            self.batches = [
                (index, slice(i, min(i + batch_rows, stop)))
                for index, start, stop in ends
                for i in range(start, stop, batch_rows)
            ]
        self.x = bags.x[self.order]
        self.cache = FeatureCache(bags.sizes.cached_bytes)

    def first_pass(self, features: FeatureMap, R: Array, w: Array) -> list[Moments]:
        """Compute the features, and the sums of their moments with R (n, columns) and weights w.

        Raises ``OutOfTimeError`` as soon as both passes cannot end before the deadline.
        """
        R = R[self.order]
        w = w[self.order]
        weighted = not (w == 1).all()

        def moments(s: slice) -> Moments:
            batch = (self._features(features, s), R[s], w[s] if weighted else None)
            return moments_of([batch], features.width, R.shape[1])

        sums: dict[int, Moments] = {}
        fitted = [(index, s) for index, s in self.batches if index is not None]
        began = perf_counter()
        for i in range(0, len(fitted), BATCHES_AT_ONCE):
            spent = perf_counter() - began
            expected = BOTH_PASSES * spent * len(fitted) / i if i else 0.0
            if began + expected >= self.deadline:
                raise OutOfTimeError
            some = fitted[i : i + BATCHES_AT_ONCE]
            parts = list(self.team(moments, [s for _, s in some]))
            for (index, _), part in zip(some, parts, strict=True):
                if index in sums:
                    sums[index].take(part)
                else:
                    sums[index] = part
        return [sums[index] for index in range(self.n_sums)]

    def second_pass(self, features: FeatureMap, C: Array) -> Array:
        """F·C (n, columns), without c, for rows in the order of the bags; 0 for rows left out."""
        moves = np.empty((len(self.x), C.shape[1]), order="F")
        C = C.astype(features.dtype)

        def move(s: slice) -> None:
            moves[s] = product(self._features(features, s), C)

        list(self.team(move, [s for _, s in self.batches]))
        if isinstance(self.order, slice):
            return moves
        in_order = np.zeros((self.n_rows, C.shape[1]), order="F")
        in_order[self.order] = moves
        return in_order

    def _features(self, features: FeatureMap, s: slice) -> Array:
        """The features of a batch, from the cache if they are there."""
        return self.cache.features(features, (s.start, s.stop), partial(features, self.x[s]))


class GroupDraws:
    """Draws the features of one group, in a distance metric learned from the group's own layers.

    ``L`` is that metric: distances are ‖(x − x')L‖. It is (D, D), or its diagonal (D,) for more
    than ``DENSE_COLUMNS`` columns, and learned from ``gradients`` (probes, D, d): the input
    gradients, averaged over members, of all layers so far, summed. Of each layer it is the one
    under the penalty with the lowest loss at the time. ``probes`` (probes, D + 1) are rows drawn
    with replacement, in proportion to weight.
    """

    def __init__(
        self,
        bags: Bags,
        group: tuple[int, ...],
        settings: Settings,
        rng: Generator,
        team: Team,
        deadline: float = np.inf,
    ) -> None:
        D = bags.x.shape[1] - 1
        d = bags.y.shape[1]
        seen = bags.seen[group]
        most_probes = max(bags.sizes.gradient_entries // (D * d), FEWEST_PROBES)
        n_probes = min(metric_rows(d), len(seen), most_probes)
        self.group = group
        self.settings = settings
        self.rng = rng
        self.team = team
        self.probes = bags.x[bags.draw(seen, n_probes, rng)]
        self.gradients = np.zeros((len(self.probes), D, 1))
        self.L: Array = np.eye(D) if D <= DENSE_COLUMNS else np.ones(D)
        self.rows = GroupFeatures(bags, group, team, deadline)
        self.largest_input = largest_entry(bags.x)
        self.single_precision_entries = bags.sizes.single_precision_entries
        self.n_drawn = 0
        self.learned = False

    def draw(self, bags: Bags, targets: Array) -> FeatureMap:
        """Draw features for these residuals, ``targets`` (n, d)."""
        p = self.settings.n_features
        early = self.n_drawn < FIRST_LAYERS
        sampler = self.settings.first if early else self.settings.sampler
        self.n_drawn += 1
        most = max(bags.sizes.drawn_entries // self.probes.shape[1], FEWEST_DRAWN * p)
        rows = bags.draw(bags.seen[self.group], min(sampler.n_rows(p), most), self.rng)
        if self.learned:
            # Axis-aligned samplers take only a scale for each column, because a full metric would
            # mix columns.
            L = column_scales(self.L) if is_axis_aligned(sampler) else self.L
            sampler = InMetric(sampler, L)
        return sampler.sample(bags.x[rows, :-1], targets[rows], p, self.rng)

    def in_single(self, features: FeatureMap) -> bool:
        """Whether input gradients and factorisations are in single precision, as the features are.

        Single-precision rounding depends on the order of the rows and can change which row pairs
        the sampler draws, so only fits large enough to save time by it accept that.
        """
        worthwhile = len(self.rows.x) * features.width >= self.single_precision_entries
        return bool(worthwhile and features.dtype == np.float32)

    def learn_metric(self, layer: GroupLayer) -> None:
        """Add a layer's input gradients, averaged over members, at the probes; renew the metric.

        Only ``DenseFeatures`` have the weights and slopes that a metric is learned from.
        """
        features = layer.features
        if not (self.settings.learns_metric and isinstance(features, DenseFeatures)):
            return
        d = layer.C.shape[1] // len(self.group)
        C = layer.C.reshape(len(layer.C), len(self.group), d).mean(axis=1)
        dtype = np.dtype(np.float32 if self.in_single(features) else np.float64)
        slopes = features.slopes(self.probes.astype(dtype, copy=False))
        directions = features.weights[:-1].T.astype(dtype)
        C = C.astype(dtype)
        room = slopes if d == 1 else np.empty_like(slopes)
        added = [product(np.multiply(slopes, C[:, j], out=room), directions) for j in range(d)]
        self.gradients = self.gradients + np.stack(added, axis=2)
        self.L = learned_metric(self.gradients)
        self.learned = True


def fit_group_layer(
    bags: Bags,
    penalties: tuple[float, ...],
    raws: list[Array],
    lead: int,
    loss: Loss,
    draws: GroupDraws,
    previous: GroupLayer | None,
) -> list[GroupLayer]:
    """Draw features for a group, fit them under each penalty, and move the predictions.

    ``raws`` are the predictions (n, members, d) under each penalty, which are changed in place.
    Features are drawn for the residuals of ``raws[lead]``, in a metric that is renewed by the
    ``previous`` layer under that penalty (None before the first). Returns a layer for each penalty.
    """
    group = draws.group
    if previous is not None:
        draws.learn_metric(previous)
    features = draws.draw(bags, residuals(bags, raws[lead], group, loss))
    dtype = bagged_dtype(min(penalties), features.width, features.bound)
    features = features.astype(dtype, draws.largest_input)
    # Before the first layer the predictions under all penalties are equal, and so are residuals.
    pairs = list(combinations(raws[:1] if previous is None else raws, group))
    R = list(draws.team(lambda pair: member_residuals(bags, pair[0], pair[1], loss), pairs))
    sums = draws.rows.first_pass(features, np.concatenate(R, axis=1), bags.w)
    d = raws[0].shape[2]
    columns = np.arange(len(pairs) * d).reshape(-1, len(group), d)
    columns = np.broadcast_to(columns, (len(penalties), len(group), d))
    single = draws.in_single(features)
    C, c = solve_members(sums, draws.rows.parts, columns, penalties, draws.team, single)
    moves = draws.rows.second_pass(features, C) + c
    layers = []
    for i, raw in enumerate(raws):
        own = slice(i * len(group) * d, (i + 1) * len(group) * d)
        rate = draws.settings.learning_rate
        steps = take_steps(bags, raw, moves[:, own], loss, group, rate, draws.team)
        length = float(steps.mean()) / rate
        layers.append(GroupLayer(group, features, C[:, own] * steps, c[own] * steps, length))
    return layers


def bagged_dtype(l2: float, n_features: int, bound: float) -> type[np.floating]:
    """As :func:`~rfrboost._numerics.precision.gram_dtype`, with 1 in place of its factor SAFETY.

    The next layer is fitted to residuals that contain a layer's rounding errors, and corrects them.
    """
    safe = np.isfinite(bound) and l2 >= UNIT_ROUNDOFF * n_features * bound**2
    return np.float32 if safe else np.float64


def linear_layers(
    bags: Bags,
    start: Array,
    loss: Loss,
    penalties: tuple[float, ...],
    team: Team,
    deadline: float = np.inf,
) -> Iterator[tuple[float, GroupLayer, Array]]:
    """For each penalty: the layer of linear members, and predictions moved by it with a full step.

    The members are fitted to the negative gradients of predictions ``start`` (n, members, d). Under
    a time limit :func:`~rfrboost._auto.linear.affordable` may leave out penalties and rows.
    """
    D = bags.x.shape[1] - 1
    every = 1
    if not np.isinf(deadline):
        every, penalties = affordable(bags, penalties, deadline)
    rows = np.arange(0, len(bags.y), every)
    some = bags if every == 1 else bags.restricted(rows)
    R = [member_residuals(some, start[rows], k, loss) for k in some.members]
    rows_fitted = max(len(some.split(k)[0]) for k in some.members)
    solver = row_solver if rows_fitted < D else column_solver
    solve_under = solver(some, np.concatenate(R, axis=1), team)
    width = start.shape[1] * start.shape[2]
    at_once = max(1, PREDICTIONS_AT_ONCE // (len(start) * width))
    for first in range(0, len(penalties), at_once):
        under = penalties[first : first + at_once]
        C, c = solve_under(under)
        moves = np.empty((len(start), C.shape[1]), order="F")

        def move(s: slice, C: Array = C, moves: Array = moves) -> None:
            moves[s] = product(bags.x[s, :-1], C)

        list(team(move, [s for _, s in bags.batches()]))
        moves += c
        for i, penalty in enumerate(under):
            own = slice(i * width, (i + 1) * width)
            raw = start.copy()
            steps = take_steps(bags, raw, moves[:, own], loss, bags.members, 1.0, team)
            length = float(steps.mean())
            scaled = (C[:, own] * steps, c[own] * steps)
            yield penalty, GroupLayer(bags.members, Columns(D), *scaled, length), raw


def column_solver(bags: Bags, R: Array, team: Team) -> LinearSolver:
    """Ridge regressions by sums over the rows of every fold, (D, D) each.

    R (n, members·d) are the targets of all members.
    """
    weights = None if (bags.w == 1).all() else bags.w
    columns = np.arange(R.shape[1]).reshape(len(bags.members), -1)
    batches = list(bags.batches())

    def moments(k: int) -> Moments:
        own = [
            (bags.x[s, :-1], R[s], None if weights is None else weights[s])
            for fold, s in batches
            if fold == k
        ]
        return moments_of(own, bags.x.shape[1] - 1, R.shape[1])

    sums = list(team(moments, range(len(bags.folds))))

    def solve_under(penalties: tuple[float, ...]) -> tuple[Array, Array]:
        repeated = np.broadcast_to(columns, (len(penalties), *columns.shape))
        return solve_members(sums, bags.fitted, repeated, penalties, team)

    return solve_under


def residuals(bags: Bags, raw: Array, group: tuple[int, ...], loss: Loss) -> Array:
    """Negative gradients (n, d), at predictions ``raw`` (n, members, d), to draw features for.

    A lone member's are at its own predictions. A group's are at out-of-fold predictions; for rows
    that no member holds out, at the mean of all members.
    """
    if len(group) == 1:
        return -loss.gradient(raw[:, group[0]], bags.y)
    mean = raw.mean(axis=1)
    mean[bags.held_out] = bags.out_of_fold(raw)
    return -loss.gradient(mean, bags.y)


def member_residuals(bags: Bags, raw: Array, member: int, loss: Loss) -> Array:
    """The negative gradients of a member's predictions.

    They are 0 for the rows that it holds out (its sums leave them out anyway).
    """
    R = -loss.gradient(raw[:, member], bags.y)
    for k in bags.held[member]:
        R[bags.folds[k]] = 0.0
    return R


def solve_members(
    sums: list[Moments],
    parts: tuple[tuple[int, ...], ...],
    columns: Indices,
    penalties: tuple[float, ...],
    team: Team,
    single: bool = False,
) -> tuple[Array, Array]:
    """The ridge regressions of all members, each by the sums of the folds it is fitted on.

    ``parts`` are the indices of these sums for each member, and ``columns`` (penalties, members, d)
    the columns of R that each of them is fitted to. Returns C (p, penalties·members·d) and c, with
    columns in the same order. If there is one sum only it is that of a lone member, and is centred
    in place. ``single`` factorises in single precision.
    """
    C = np.empty((len(sums[0].f), columns.size))
    c = np.empty(columns.size)
    fitted = np.arange(columns.size).reshape(columns.shape)

    def fit(member: int) -> None:
        own_sums = [sums[k] for k in parts[member]]
        own = fitted[:, member].ravel()
        shared = len(sums) > 1
        C[:, own], c[own] = ridges(own_sums, penalties, columns[:, member], single, shared)

    list(team(fit, range(columns.shape[1])))
    return C, c


def take_steps(
    bags: Bags,
    raw: Array,
    moves: Array,
    loss: Loss,
    group: tuple[int, ...],
    learning_rate: float,
    team: Team,
) -> Array:
    """Move the predictions of each member of a group by η·α times its ``moves``, in place.

    Returns η·α for every column of ``moves``.
    """
    d = moves.shape[1] // len(group)
    steps = np.empty(moves.shape[1])

    def take_step(i: int) -> None:
        k = group[i]
        own = slice(i * d, (i + 1) * d)
        alpha = step_lengths(bags, k, raw[:, k], moves[:, own], loss)
        steps[own] = alpha * learning_rate
        raw[:, k] += steps[own] * moves[:, own]

    list(team(take_step, range(len(group))))
    return steps


def step_lengths(bags: Bags, member: int, raw: Array, moves: Array, loss: Loss) -> Array | float:
    """α of every output (d,) where outputs are separate, else one α for all of them."""
    if not loss.separate_outputs:
        return step_length(bags, member, raw, moves, loss)
    outputs = [[j] for j in range(moves.shape[1])]
    lengths = [
        step_length(replace(bags, y=bags.y[:, j]), member, raw[:, j], moves[:, j], loss)
        for j in outputs
    ]
    return np.array(lengths)


def step_length(bags: Bags, member: int, raw: Array, moves: Array, loss: Loss) -> float:
    """α ≈ argmin Σ w·l(raw + α·moves, y) over the rows that the member is fitted on.

    α is 1 for squared error. For the log loss, whose curvature is bounded and nowhere zero, it is
    one Newton step. For all other losses it is searched for, because a Newton step may be far off:
    Huber's loss and the pinball loss have curvature in few rows only, and that of Poisson's loss
    grows exponentially.
    """
    if loss.quadratic:
        return 1.0
    train, _ = bags.split(member)
    raw = raw[train]
    y = bags.y[train]
    w = bags.w[train]
    moves = moves[train]

    def derivatives(alpha: float) -> tuple[float, float]:
        slope, curvature = loss.slope_and_curvature(raw + alpha * moves, y, moves)
        return float(w @ slope), float(w @ curvature)

    if not loss.least_squares or loss.degree is not None:
        return min(minimize_convex(derivatives), LONGEST_STEP)
    return newton_step(derivatives, LONGEST_STEP)
