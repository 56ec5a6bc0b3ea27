"""Ridge regression on bumps around all training rows: a kernel machine in the learned metric.

With every row a centre the fit has a dual form, (K + nλI)a = y; where rows are too many for that,
bumps around a sample of them are features like any others (Nyström). The mixture of distances,
the bumps' reach and the penalty are chosen on a sample, by the error on held-out rows.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.random import Generator

from rfrboost._auto.bags import Bags
from rfrboost._auto.members import Run
from rfrboost._model.bumps import LARGEST, Bumps, bumps_of, measured, single, two_valued
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import gram, product
from rfrboost._numerics.least_squares import solve, solve_kernel
from rfrboost._numerics.threads import Team
from rfrboost._typing import Array, Indices

# Up to this many rows every row is a centre; of more, this many are drawn.
MOST_CENTRES = 5000


DRAWN_CENTRES = 2500


# Rows of the sample that settings are compared on, and pairs that distances are measured by.
SAMPLE_ROWS = 800


PAIRS = 1000


REACHES = (1.0, 4.0)


PENALTIES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)


# The least penalty, a row: below, single precision cannot tell K + sI from a singular matrix.
SMALLEST = 1e-9


# Rows of bumps computed at a time when there are more rows than centres.
CHUNK = 4096


# Rows of a square matrix of bumps that one of a team computes at a time.
STRIP = 512


# Added to the normal equations of few centres, in units of their mean diagonal: rounding.
FLOOR = 1e-12


@dataclass(frozen=True)
class KernelPiece:
    """Bumps, or what is summed of them leaf by leaf; C and c for the members that share them."""

    group: tuple[int, ...]
    features: Any
    C: Array
    c: Array


@dataclass(frozen=True)
class KernelFit:
    """The pieces and what their members predict for held-out rows."""

    pieces: tuple[KernelPiece, ...]
    out_of_fold: Array


@dataclass(frozen=True)
class Choice:
    """How bumps are shaped and how much they are held back (a penalty on a sum over rows)."""

    mix: float
    reach: float
    penalty: float


def fit_kernel(
    bags: Bags, metrics: tuple[Array, ...], rng: Generator, run: Run
) -> KernelFit | None:
    """Fit all members, each group in its own metric; None when time runs out on the way."""
    spans = two_valued(bags.x[:, :-1])
    shapes = [
        bumps_in(bags, group, L, spans, rng) for group, L in zip(bags.groups, metrics, strict=True)
    ]
    choice = choose(bags, bags.groups[0][0], shapes[0], rng, run.team)
    across, within = run.over_groups(bags)
    ridge = DualRidge if len(bags.seen(bags.groups[0])) <= MOST_CENTRES else PrimalRidge

    def problem(i: int, team: Team) -> "Ridge":
        shape = shapes[i]
        bumps = Bumps(shape.centres, shape.distances, choice.reach, choice.mix)
        return ridge(bags, bags.groups[i], bumps, team)

    first = problem(0, run.team)
    penalty = refined_penalty(bags, bags.groups[0][0], first, choice.penalty, run)

    def fit(i: int) -> list[MemberFit]:
        own = first if i == 0 else problem(i, within)
        fitted = within(lambda k: own.fit(k, penalty) if run.more_time() else None, bags.groups[i])
        return list(fitted)

    fits = list(across(fit, range(len(shapes))))
    if any(fit is None for group in fits for fit in group):
        return None
    pieces = []
    for group, shape, own in zip(bags.groups, shapes, fits, strict=True):
        C = np.hstack([fit.C for fit in own]).astype(np.float32)
        c = np.concatenate([fit.c for fit in own])
        bumps = Bumps(shape.centres, shape.distances, choice.reach, choice.mix)
        pieces.append(KernelPiece(group, bumps, frozen(C), frozen(c)))
    held_out = [fit.held_out for group in fits for fit in group]
    return KernelFit(tuple(pieces), np.vstack(held_out))


def refined_penalty(bags: Bags, member: int, problem: "Ridge", penalty: float, run: Run) -> float:
    """Go down, or else up, by factors of ten while one member's held-out error falls.

    The sample that settings were compared on is smaller than the data, and thins out copies.
    """
    held, lowest = bags.folds[member], SMALLEST * len(bags.y)

    def error(s: float) -> float:
        wrong = problem.fit(member, s).held_out - bags.y[held]
        return float(bags.w[held] @ np.square(wrong).sum(axis=1))

    # The problem keeps these fits, so that they are there when they are asked for below.
    list(run.team(error, [s for s in (0.1 * penalty, penalty) if s > lowest]))
    best, least = penalty, error(penalty)
    for factor in (0.1, 10.0):
        while best * factor > lowest and run.more_time() and (now := error(best * factor)) < least:
            best, least = best * factor, now
        if best != penalty:
            break
    return best


def bumps_in(bags: Bags, group: tuple[int, ...], L: Array, spans: Array, rng: Generator) -> Bumps:
    """Bumps around rows that the group is fitted on, in its metric; their shape is still open."""
    seen = bags.seen(group)
    X = bags.x[:, :-1]
    pairs = bags.draw(seen, 2 * PAIRS, rng)
    distances = measured(X[pairs[:PAIRS]], X[pairs[PAIRS:]], frozen(L), spans)
    centres = seen if len(seen) <= MOST_CENTRES else bags.sample(seen, DRAWN_CENTRES, rng)
    return Bumps(frozen(single(X[centres], LARGEST)), distances, 1.0, 0.0)


def choose(bags: Bags, member: int, shape: Bumps, rng: Generator, team: Team) -> Choice:
    """The best setting on a sample: first reach and penalty, then the mixture with its penalty."""
    train = bags.sample(bags.training(member), SAMPLE_ROWS, rng)
    test = bags.sample(np.r_[bags.folds[member]], SAMPLE_ROWS, rng)
    trial = Trial(bags, shape, train, test)
    sums = [len(train) * penalty for penalty in PENALTIES]

    def compared(shapes: list[tuple[float, float]], penalties: list[float]) -> dict[Choice, float]:
        errors = list(team(lambda own: trial.errors(own[0], own[1], penalties), shapes))
        return {
            Choice(*own, s): error
            for own, those in zip(shapes, errors, strict=True)
            for s, error in zip(penalties, those, strict=True)
        }

    found = compared([(0.5, reach) for reach in REACHES], sums)
    first = min(found, key=found.__getitem__)
    i = sums.index(first.penalty)
    near = sums[max(i - 1, 0) : i + 2]
    found = {first: found[first], **compared([(mix, first.reach) for mix in (0.0, 1.0)], near)}
    return min(found, key=found.__getitem__)


class Trial:
    """Fits on ``train`` and errors on ``test``; the distances are computed once."""

    def __init__(self, bags: Bags, shape: Bumps, train: Indices, test: Indices) -> None:
        X, both = bags.x[:, :-1], (shape.distances.euclidean, shape.distances.absolute)
        self.among = [distance(X[train], X[train]) for distance in both]
        self.across = [distance(X[test], X[train]) for distance in both]
        self.mean = bags.y[train].mean(axis=0)
        self.y, self.y_test = bags.y[train] - self.mean, bags.y[test]

    def errors(self, mix: float, reach: float, penalties: list[float]) -> list[float]:
        """The squared error of bumps of one shape, by penalty."""
        K = bumps_of(self.among[0], self.among[1], reach, mix)
        across = bumps_of(self.across[0], self.across[1], reach, mix)

        def error(penalty: float) -> float:
            a = solve_kernel(K, slice(0, 0), penalty, self.y)
            wrong = product(across, a.astype(np.float32)) + self.mean - self.y_test
            return float(np.square(wrong).sum())

        return [error(penalty) for penalty in penalties]


def dual_coefficients(K: Array, held: slice, y: Array, w: Array, penalty: float) -> Array:
    """a of Σ w_i(y_i − (Ka)_i)² + s·aᵀKa, its minimum: (K + s·diag(1/w))a = y, without ``held``."""
    if (w == 1).all():
        return solve_kernel(K, held, penalty, y)
    root = np.sqrt(w)
    single = root.astype(np.float32)
    root = np.delete(root, np.r_[held])[:, None]
    return root * solve_kernel(single[:, None] * K * single, held, penalty, root * y)


@dataclass(frozen=True)
class MemberFit:
    """A member's coefficients, its intercept, and its predictions for the rows it holds out."""

    C: Array
    c: Array
    held_out: Array


def bumps_between(bumps: Bumps, X: Array, team: Team) -> Array:
    """The bumps among rows, some rows at a time: those below the diagonal, which are all."""
    K = np.empty((len(X), len(X)), np.float32)

    def fill(i: int) -> None:
        strip = bumps.between(X[i : i + STRIP], X[: i + STRIP])
        K[i : i + STRIP, : i + STRIP] = strip
        K[:i, i : i + STRIP] = strip[:, :i].T

    # The longest strips first, or one of the team would end with them alone.
    list(team(fill, range(0, len(X), STRIP)[::-1]))
    return K


class Ridge:
    """Fits of members, none of them computed twice."""

    def __init__(self) -> None:
        self.done: dict[tuple[int, float], MemberFit] = {}

    def fit(self, member: int, penalty: float) -> MemberFit:
        """Fit a member on all rows but those it holds out."""
        if (member, penalty) not in self.done:
            self.done[member, penalty] = self._fit(member, penalty)
        return self.done[member, penalty]

    def _fit(self, member: int, penalty: float) -> MemberFit:
        raise NotImplementedError


class DualRidge(Ridge):
    """Every row the group sees is a centre: (K + s·diag(1/w))a = y."""

    def __init__(self, bags: Bags, group: tuple[int, ...], bumps: Bumps, team: Team) -> None:
        super().__init__()
        self.bags, self.bumps, self.alone = bags, bumps, len(group) == 1
        self.seen = bags.seen(group)
        self.X = bags.x[:, :-1]
        self.K = bumps_between(bumps, self.X[self.seen], team)

    def _fit(self, member: int, penalty: float) -> MemberFit:
        bags, fold = self.bags, self.bags.folds[member]
        held = slice(0, 0) if self.alone else fold
        train = bags.training(member)
        mean = np.average(bags.y[train], axis=0, weights=bags.w[train])
        a = dual_coefficients(self.K, held, bags.y[train] - mean, bags.w[self.seen], penalty)
        C = np.zeros((len(self.seen), len(mean)))
        C[: held.start], C[held.stop :] = a[: held.start], a[held.start :]
        own = self.bumps.between(self.X[fold], self.X[self.seen]) if self.alone else self.K[held]
        return MemberFit(C, mean, product(own, C.astype(np.float32)) + mean)


class PrimalRidge(Ridge):
    """Few centres, many rows: (KᵀWK + s·M)C = KᵀWy, M the bumps among the centres."""

    def __init__(self, bags: Bags, group: tuple[int, ...], bumps: Bumps, team: Team) -> None:
        super().__init__()
        self.bags, self.bumps = bags, bumps
        m, d, folds = bumps.width, bags.y.shape[1], len(bags.folds)
        self.M = bumps_between(bumps, bumps.centres, team).astype(float)
        self.ff = [np.zeros((m, m), order="F") for _ in range(folds)]
        self.fr = [np.zeros((m, d + 1)) for _ in range(folds)]
        y1 = np.hstack([bags.y, np.ones((len(bags.y), 1))])

        def add_fold(k: int) -> None:
            for s in (s for fold, s in bags.blocks() if fold == k):
                root = np.sqrt(bags.w[s])[:, None]
                # In double precision: a Gram matrix squares the kernel's condition.
                B = np.asfortranarray(bumps.between(bags.x[s, :-1], bumps.centres), dtype=float)
                B *= root
                self.ff[k] += gram(B)
                self.fr[k] += product(B.T, root * y1[s])

        list(team(add_fold, range(folds)))
        self.sums = [bags.w[f] @ y1[f] for f in bags.folds]

    def _fit(self, member: int, penalty: float) -> MemberFit:
        rest = [k for k in range(len(self.sums)) if k != member]
        G, b, total = (
            reduce(np.add, [part[k] for k in rest]) for part in (self.ff, self.fr, self.sums)
        )
        mean = total[:-1] / total[-1]
        G = np.asfortranarray(np.tril(G) + penalty * self.M)
        floor = FLOOR * float(np.trace(G)) / len(G)
        C = solve(G, floor, b[:, :-1] - b[:, -1:] * mean)
        return MemberFit(C, mean, self._predict(self.bags.folds[member], C) + mean)

    def _predict(self, rows: slice, C: Array) -> Array:
        X, C = self.bags.x[rows, :-1], C.astype(np.float32)
        starts = range(0, len(X), CHUNK)
        blocks = [
            product(self.bumps.between(X[i : i + CHUNK], self.bumps.centres), C) for i in starts
        ]
        return np.vstack(blocks)
