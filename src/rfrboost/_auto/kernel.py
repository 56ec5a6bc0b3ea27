"""Kernel members: ridge regression on bumps, in the metric that boosted members have learned.

A bump is a mixture of exp(−distance/reach) of two distances, Euclidean and absolute
(:mod:`rfrboost._model.bumps`); ``mix`` is the share of the absolute one. If every training row is
the centre of a bump the fit has a dual form, (K + s·diag(1/w))a = y with the n × n matrix K of
bumps between rows (:class:`DualRidge`). With more than ``Sizes.most_centres`` rows,
:mod:`rfrboost._auto.local_kernels` cuts them into leaves and fits each leaf by this module. If
smaller leaves would have too few held-out rows, a leaf has more rows than that: then a sample of
them are centres, whose bumps are features like any others (Nyström, :class:`PrimalRidge`). Mix,
reach and penalty are chosen on a sample by the error on held-out rows.

New rows are predicted by the mean of the members. A fit to all rows is more accurate than the mean
of fits to four fifths of them. So where the members share a kernel, their coefficients are moved,
all alike, until their mean is that of a fit to all rows (:func:`moved`). How far members differ
from each other stays as it was, and out-of-fold predictions do not see the fit to all rows.

Kernel members minimise squared error, with class indicators as targets in classification. A loss
for which that is not the best raw prediction up to scale and shift (``Loss.least_squares`` is
false), such as the pinball loss, has no kernel members. Predictions are (n, d), coefficients C are
(centres, d).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import reduce
from time import perf_counter
from typing import Any

import numpy as np
from numpy.random import Generator

from rfrboost._auto.bags import Bags
from rfrboost._auto.members import Run
from rfrboost._model.bumps import Bumps, bumps_around, bumps_of, two_valued
from rfrboost._model.features import FeatureMap
from rfrboost._numerics.blas import gram, product
from rfrboost._numerics.least_squares import solve, solve_kernel
from rfrboost._numerics.threads import OutOfTimeError, Team, check_clock
from rfrboost._typing import Array, Indices

# The most rows of each of two samples, one to fit and one to hold out, on which settings are
# compared. Every setting costs the factorisation of an 800 × 800 matrix, and there are up to 18.
SAMPLE_ROWS = 800

# Number of pairs of rows whose median distance is the unit of distance: enough to know the rank of
# that median to within two per cent.
PAIRS = 1000

# Reaches of bumps that are compared, in units of the median distance: over that distance the bumps
# fall to 37 or to 78 per cent.
REACHES = (1.0, 4.0)

# Penalties that are compared, per row of the sample. Values of the kernel are between 0 and 1, so
# that the same powers of ten suit all tables; refined_penalty tries smaller and larger ones.
PENALTIES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)

# The smallest penalty, per row. With less, K + sI is singular in single precision.
SMALLEST_PENALTY = 1e-9

# The most rows times centres times columns for which distances are computed before the deadline is
# checked again: about half a second on one thread.
STRIP_ENTRIES = 2**30

# Added to the diagonal of normal equations, as a share of its mean: somewhat more than the rounding
# error of a sum over 2,500 centres in double precision, 2500·2⁻⁵².
DIAGONAL_FLOOR = 1e-12


@dataclass(frozen=True)
class KernelLayer:
    """The predictions F·C + c of a group's members, d columns for each of them.

    ``features`` are bumps, or sums of bumps leaf by leaf.
    """

    group: tuple[int, ...]
    features: FeatureMap
    C: Array
    c: Array


@dataclass(frozen=True)
class KernelFit:
    """A layer for each group, and out-of-fold predictions (rows of ``Bags.held_out``, d)."""

    layers: tuple[KernelLayer, ...]
    out_of_fold: Array


@dataclass(frozen=True)
class Choice:
    """The settings of all members: share of the absolute distance, reach, and the penalty s.

    s is added to a sum of squared errors over rows, not to their mean.
    """

    mix: float
    reach: float
    penalty: float


@dataclass(frozen=True)
class MemberFit:
    """A member's coefficients, its intercept, the rows it holds out, and predictions for them."""

    C: Array
    c: Array
    held: Indices
    held_out: Array


def fit_kernel(
    bags: Bags, metrics: tuple[Array, ...], rng: Generator, run: Run
) -> KernelFit | None:
    """Fit all members, each group in its own metric; None if the deadline passes meanwhile."""
    try:
        return fit_in_time(bags, metrics, rng, run)
    except OutOfTimeError:
        return None


def fit_in_time(bags: Bags, metrics: tuple[Array, ...], rng: Generator, run: Run) -> KernelFit:
    """Fit all members; raises ``OutOfTimeError`` if the deadline passes meanwhile."""
    spans = two_valued(bags.x[:, :-1])
    shapes = []
    for group, L in zip(bags.groups, metrics, strict=True):
        check_clock(run.deadline)
        shapes.append(bumps_in(bags, group, L, spans, rng))
    judging = bags.judging
    choice = choose(bags, bags.judge, shapes[judging], rng, run)
    check_clock(run.deadline)
    bumps = [replace(shape, reach=choice.reach, mix=choice.mix) for shape in shapes]
    ridge = DualRidge if every_row_a_centre(bags) else PrimalRidge
    first: Ridge = ridge(bags, bags.groups[judging], bumps[judging], run.team, run.deadline)
    penalty = refined_penalty(bags, bags.judge, first, choice.penalty, run)

    def fit_group(i: int) -> tuple[tuple[Array, Array] | None, list[MemberFit]]:
        group = bags.groups[i]
        own = first
        if i != judging:
            own = ridge(bags, group, bumps[i], run.within_group, run.deadline)

        def fit(member: int | None) -> Any:
            check_clock(run.deadline)
            return own.fit_all(penalty) if member is None else own.fit(member, penalty)

        # The fit to all rows first, because it takes longest.
        fits = list(run.within_group(fit, [None, *group] if bags.together else group))
        return (fits.pop(0) if bags.together else None), fits

    layers = []
    raw = np.zeros((len(bags.y), len(bags.members), bags.y.shape[1]))
    by_group = list(run.across_groups(fit_group, range(len(bags.groups))))
    for group, features, (of_all_rows, fits) in zip(bags.groups, bumps, by_group, strict=True):
        Cs = np.stack([fit.C for fit in fits])
        cs = np.stack([fit.c for fit in fits])
        if of_all_rows is not None:
            C, c = of_all_rows
            Cs, cs = moved(Cs, C), moved(cs, c)
        layers.append(KernelLayer(group, features, np.hstack([*Cs]).astype(np.float32), cs.ravel()))
        for k, fit in zip(group, fits, strict=True):
            raw[fit.held, k] = fit.held_out
    return KernelFit(tuple(layers), bags.out_of_fold(raw))


def moved(values: Array, mean: Array) -> Array:
    """The values of all members (members, …), moved by the same amount so that they have a mean."""
    result: Array = values + (mean - values.mean(axis=0))
    return result


def every_row_a_centre(bags: Bags) -> bool:
    """Whether no group is fitted on more than ``Sizes.most_centres`` rows."""
    return max(map(len, bags.seen.values())) <= bags.sizes.most_centres


def bumps_in(bags: Bags, group: tuple[int, ...], L: Array, spans: Array, rng: Generator) -> Bumps:
    """Bumps around rows that the group is fitted on, in its metric L; mix and reach are set later.

    ``spans`` (D,) are the distances between the two values of columns that have two, else 0.
    """
    X = bags.x[:, :-1]
    seen = bags.seen[group]
    pairs = bags.draw(seen, 2 * PAIRS, rng)
    sizes = bags.sizes
    few = len(seen) <= sizes.most_centres
    centres = seen if few else sampled(seen, bags.w, sizes.drawn_centres, rng)
    return bumps_around(X[centres], X[pairs[:PAIRS]], X[pairs[PAIRS:]], L, spans)


def choose(bags: Bags, member: int, shape: Bumps, rng: Generator, run: Run) -> Choice:
    """The best setting on a sample of the rows that ``member`` is fitted on and holds out.

    First reach and penalty are chosen with both distances in equal shares; then each distance alone
    is tried, under that penalty and its two neighbours.
    """
    fitted, held = bags.split(member)
    train = sampled(fitted, bags.w, SAMPLE_ROWS, rng)
    test = sampled(held, bags.w, SAMPLE_ROWS, rng)
    trial = Trial(bags, shape, train, test, run.deadline)
    penalties = [len(train) * penalty for penalty in PENALTIES]

    def compared(shapes: list[tuple[float, float]], some: list[float]) -> dict[Choice, float]:
        errors = list(run.team(lambda own: trial.errors(own[0], own[1], some), shapes))
        return {
            Choice(*own, penalty): error
            for own, by_penalty in zip(shapes, errors, strict=True)
            for penalty, error in zip(some, by_penalty, strict=True)
        }

    found = compared([(0.5, reach) for reach in REACHES], penalties)
    first = min(found, key=found.__getitem__)
    i = penalties.index(first.penalty)
    near = penalties[max(i - 1, 0) : i + 2]
    found = {first: found[first], **compared([(mix, first.reach) for mix in (0.0, 1.0)], near)}
    return min(found, key=found.__getitem__)


def sampled(rows: Indices, w: Array, size: int, rng: Generator) -> Indices:
    """Sample ``size`` of these rows without replacement, heavy rows with a higher chance.

    ``w`` are the weights of all rows. All of ``rows`` are returned if they are at most ``size``.
    """
    if len(rows) <= size:
        return rows
    waiting = rng.standard_exponential(len(rows)) / np.maximum(w[rows], 1e-300)
    return np.sort(rows[np.argpartition(waiting, size)[:size]])


class Trial:
    """Fits on rows ``train`` and their errors on rows ``test``; distances are computed once."""

    def __init__(
        self, bags: Bags, shape: Bumps, train: Indices, test: Indices, deadline: float = np.inf
    ) -> None:
        X = bags.x[:, :-1]
        self.among = both_distances(shape, X[train], X[train], deadline)
        self.across = both_distances(shape, X[test], X[train], deadline)
        self.mean = bags.y[train].mean(axis=0)
        self.y = bags.y[train] - self.mean
        self.y_test = bags.y[test]

    def errors(self, mix: float, reach: float, penalties: list[float]) -> list[float]:
        """The sum of squared errors of bumps of one shape, under each penalty."""
        K = bumps_of(*self.among, reach, mix)
        across = bumps_of(*self.across, reach, mix)

        def error(penalty: float) -> float:
            a = solve_kernel(K, [slice(0, len(K))], penalty, self.y)
            wrong = product(across, a.astype(np.float32)) + self.mean - self.y_test
            return float(np.square(wrong).sum())

        return [error(penalty) for penalty in penalties]


def both_distances(shape: Bumps, A: Array, B: Array, deadline: float) -> tuple[Array, Array]:
    """The Euclidean and the absolute distances between rows; raises if the deadline passes."""
    rows = rows_of_strip(B, len(A))
    parts = []
    for begin in range(0, len(A), rows):
        check_clock(deadline)
        parts.append(shape.distances.both(A[begin : begin + rows], B))
    euclidean, absolute = zip(*parts, strict=True)
    return np.vstack(euclidean), np.vstack(absolute)


def rows_of_strip(centres: Array, most: int) -> int:
    """Rows whose distances to all centres (m, D) are computed before the deadline is checked."""
    return int(np.clip(STRIP_ENTRIES // max(centres.size, 1), 1, most))


def refined_penalty(bags: Bags, member: int, problem: "Ridge", penalty: float, run: Run) -> float:
    """Divide the penalty by ten while one member's held-out error falls, or else multiply it.

    The penalty was chosen on a sample, which has fewer rows than the data, and fewer duplicates.
    """
    lowest = SMALLEST_PENALTY * len(bags.y)

    def error(s: float) -> float:
        fit = problem.fit(member, s)
        wrong = fit.held_out - bags.y[fit.held]
        return float(bags.w[fit.held] @ np.square(wrong).sum(axis=1))

    # The first two fits are computed side by side; the problem keeps them for the search below.
    list(run.team(error, [s for s in (0.1 * penalty, penalty) if s > lowest]))
    best = penalty
    least = error(penalty)
    for factor in (0.1, 10.0):
        while best * factor > lowest and perf_counter() < run.deadline:
            tried = error(best * factor)
            if not tried < least:
                break
            best *= factor
            least = tried
        if best != penalty:
            break
    return best


class Ridge(ABC):
    """The ridge regressions of a group's members; each fit is computed once and kept."""

    def __init__(self, bags: Bags, bumps: Bumps) -> None:
        self.bags = bags
        self.bumps = bumps
        self.done: dict[tuple[int, float], MemberFit] = {}

    def fit(self, member: int, penalty: float) -> MemberFit:
        """Fit a member on all rows but those it holds out."""
        if (member, penalty) not in self.done:
            self.done[member, penalty] = self._fit(member, penalty)
        return self.done[member, penalty]

    @abstractmethod
    def _fit(self, member: int, penalty: float) -> MemberFit: ...

    @abstractmethod
    def fit_all(self, penalty: float) -> tuple[Array, Array]:
        """Coefficients C and intercept c of a fit to all rows of the group."""


class DualRidge(Ridge):
    """Every row that the group is fitted on is a centre: (K + s·diag(1/w))a = y."""

    def __init__(
        self,
        bags: Bags,
        group: tuple[int, ...],
        bumps: Bumps,
        team: Team,
        deadline: float = np.inf,
    ) -> None:
        super().__init__(bags, bumps)
        self.seen = bags.seen[group]
        self.X = bags.x[:, :-1]
        strip_rows = bags.sizes.kernel_strip_rows
        self.K = bumps_among(bumps, self.X[self.seen], team, strip_rows, deadline)

    def _fit(self, member: int, penalty: float) -> MemberFit:
        bags = self.bags
        train, held = bags.split(member)
        C, mean = self._solve(train, penalty)
        every_row = len(self.seen) == len(bags.y)
        own = self.K[held] if every_row else self.bumps.between(self.X[held], self.X[self.seen])
        return MemberFit(C, mean, held, product(own, C.astype(np.float32)) + mean)

    def fit_all(self, penalty: float) -> tuple[Array, Array]:
        return self._solve(self.seen, penalty)

    def _solve(self, train: Indices, penalty: float) -> tuple[Array, Array]:
        """C, zero for the centres that are not among these rows, and c, their mean target."""
        bags = self.bags
        mean = np.average(bags.y[train], axis=0, weights=bags.w[train])
        centres = np.searchsorted(self.seen, train)
        a = dual_coefficients(self.K, centres, bags.y[train] - mean, bags.w[self.seen], penalty)
        C = np.zeros((len(self.seen), len(mean)))
        C[centres] = a
        return C, mean


class PrimalRidge(Ridge):
    """Few centres and many rows: (KᵀWK + s·M)C = KᵀWy.

    K (n, centres) are the bumps at all rows, M those at the centres, W = diag(w).
    """

    def __init__(
        self,
        bags: Bags,
        group: tuple[int, ...],
        bumps: Bumps,
        team: Team,
        deadline: float = np.inf,
    ) -> None:
        super().__init__(bags, bumps)
        m = bumps.width
        d = bags.y.shape[1]
        # A lone member needs one sum only, of the rows it is fitted on.
        shared = len(group) > 1
        self.parts = {k: bags.fitted[k] if shared else (0,) for k in group}
        sums = [np.r_[fold] for fold in bags.folds] if shared else [bags.split(group[0])[0]]
        strip_rows = bags.sizes.kernel_strip_rows
        batch_rows = rows_of_strip(bumps.centres, bags.sizes.batch_rows)
        self.M = bumps_among(bumps, bumps.centres, team, strip_rows, deadline).astype(float)
        self.ff = [np.zeros((m, m), order="F") for _ in sums]
        self.fr = [np.zeros((m, d + 1)) for _ in sums]
        y1 = np.hstack([bags.y, np.ones((len(bags.y), 1))])

        def add_rows(k: int) -> None:
            for i in range(0, len(sums[k]), batch_rows):
                check_clock(deadline)
                s = sums[k][i : i + batch_rows]
                root = np.sqrt(bags.w[s])[:, None]
                # In double precision: the condition of a Gram matrix is that of the kernel squared.
                X = bags.x[s, :-1]
                B = np.asfortranarray(bumps.between(X, bumps.centres), dtype=float)
                B *= root
                self.ff[k] += gram(B)
                self.fr[k] += product(B.T, root * y1[s])

        list(team(add_rows, range(len(sums))))
        self.sums = [bags.w[rows] @ y1[rows] for rows in sums]

    def _fit(self, member: int, penalty: float) -> MemberFit:
        C, mean = self._solve(self.parts[member], penalty)
        _, held = self.bags.split(member)
        return MemberFit(C, mean, held, self._predict(held, C) + mean)

    def fit_all(self, penalty: float) -> tuple[Array, Array]:
        return self._solve(tuple(range(len(self.sums))), penalty)

    def _solve(self, own: tuple[int, ...], penalty: float) -> tuple[Array, Array]:
        """C and c of the rows of some of the sums."""
        G, b, total = (
            reduce(np.add, [part[k] for k in own]) for part in (self.ff, self.fr, self.sums)
        )
        mean = total[:-1] / total[-1]
        G = np.asfortranarray(np.tril(G) + penalty * self.M)
        floor = DIAGONAL_FLOOR * float(np.trace(G)) / len(G)
        return solve(G, floor, b[:, :-1] - b[:, -1:] * mean), mean

    def _predict(self, rows: Indices, C: Array) -> Array:
        X = self.bags.x[rows, :-1]
        C = C.astype(np.float32)
        batch_rows = self.bags.sizes.batch_rows
        batches = [X[i : i + batch_rows] for i in range(0, len(X), batch_rows)]
        centres = self.bumps.centres
        parts = [product(self.bumps.between(rows, centres), C) for rows in batches]
        return np.vstack([np.empty((0, C.shape[1])), *parts])


def dual_coefficients(K: Array, rows: Indices, y: Array, w: Array, penalty: float) -> Array:
    """The a that minimises Σ w_i(y_i − (Ka)_i)² + s·aᵀKa over ``rows``, in rising order.

    K and w are those of all rows, y those of ``rows`` only. It solves (K + s·diag(1/w))a = y, here
    scaled by √w on both sides to stay symmetric.
    """
    runs = runs_of(rows)
    if (w == 1).all():
        return solve_kernel(K, runs, penalty, y)
    root = np.sqrt(w)
    single = root.astype(np.float32)
    root = root[rows][:, None]
    return root * solve_kernel(single[:, None] * K * single, runs, penalty, root * y)


def runs_of(rows: Indices) -> list[slice]:
    """Rows in rising order as slices of consecutive ones."""
    starts = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
    stops = np.append(starts[1:], len(rows))
    return [slice(int(rows[a]), int(rows[b - 1]) + 1) for a, b in zip(starts, stops, strict=True)]


def bumps_among(
    bumps: Bumps, X: Array, team: Team, strip_rows: int, deadline: float = np.inf
) -> Array:
    """The symmetric matrix (n, n) of bumps between rows X (n, D).

    It is computed in strips of at most ``strip_rows`` rows, up to the diagonal, and mirrored.
    """
    K = np.empty((len(X), len(X)), np.float32)
    strip_rows = rows_of_strip(X, strip_rows)

    def fill(i: int) -> None:
        check_clock(deadline)
        end = i + strip_rows
        strip = bumps.between(X[i:end], X[:end])
        K[i:end, :end] = strip
        K[:i, i:end] = strip[:, :i].T

    # The longest strips first, or one thread would still compute them when all others are done.
    list(team(fill, range(0, len(X), strip_rows)[::-1]))
    return K
