"""How wrong the members of an ensemble were on the rows they held out, and what follows from it.

Cross-conformal prediction: intervals are those of CV+ (Barber, Candès, Ramdas, Tibshirani:
Predictive inference with the jackknife+, 2021), sets of classes its analogue for scores. A member
is not judged by rows it was fitted on, and its errors meet its own predictions only.
"""

from dataclasses import dataclass

import numpy as np

from rfrboost._numerics.arrays import frozen
from rfrboost._typing import Array

# More scores a member than this are thinned to evenly spaced quantiles of them.
MOST_SCORES = 20_000


# Halvings of the bracket around an interval's end, which is as wide as members disagree.
HALVINGS = 32


# Mass that rounding may cost.
ROUNDING = 1e-9


@dataclass(frozen=True)
class HeldOut:
    """What a member predicts for the rows it holds out: raw (n, d), targets, weights (n,)."""

    raw: Array
    y: Array
    w: Array


@dataclass(frozen=True)
class Calibration:
    """For every member the scores of its held-out rows (n, d), rising, and their weights (n, d).

    A score is larger the worse a prediction was. Weights add up to the number of rows there were.
    """

    scores: tuple[Array, ...]
    weights: tuple[Array, ...]

    def total(self) -> float:
        """The weight of all rows together."""
        return float(sum(w[:, 0].sum() for w in self.weights))

    def fits(self, members: int, outputs: int) -> bool:
        """Whether there are rising scores of positive weight for each of so many members."""
        pairs = list(zip(self.scores, self.weights, strict=False))
        return (
            len(self.scores) == len(self.weights) == members
            and all(s.shape == w.shape == (len(s), outputs) and len(s) > 0 for s, w in pairs)
            and all((np.diff(s, axis=0) >= 0).all() and (w > 0).all() for s, w in pairs)
        )


def calibrate(scores: list[Array], weights: list[Array]) -> Calibration:
    """Scores (n, d) and weights (n,) of each member's rows, sorted, thinned and frozen."""
    rows, mass = sum(map(len, weights)), sum(float(w.sum()) for w in weights)
    kept = [thinned(s, w * (rows / mass)) for s, w in zip(scores, weights, strict=True)]
    return Calibration(
        tuple(frozen(s) for s, _ in kept),
        tuple(frozen(w) for _, w in kept),
    )


def thinned(scores: Array, w: Array) -> tuple[Array, Array]:
    """Every column of scores rising, with its weights; at most ``MOST_SCORES`` of them."""
    order = np.argsort(scores, axis=0, kind="stable")
    rising, weights = np.take_along_axis(scores, order, axis=0), w[order]
    if len(rising) <= MOST_SCORES:
        return rising, weights
    places = (np.arange(MOST_SCORES) + 0.5) / MOST_SCORES
    columns = [
        column[np.searchsorted(mass, places * mass[-1])]
        for column, mass in zip(rising.T, np.cumsum(weights, axis=0).T, strict=True)
    ]
    share = weights[:, 0].sum() / MOST_SCORES
    return np.column_stack(columns), np.full((MOST_SCORES, scores.shape[1]), share)


def variance(calibration: Calibration) -> Array:
    """The mean square of each output's scores."""
    pairs = zip(calibration.scores, calibration.weights, strict=True)
    squares = [(w * s**2).sum(axis=0) for s, w in pairs]
    mean: Array = np.sum(squares, axis=0) / calibration.total()
    return mean


def intervals(calibration: Calibration, centres: Array, coverage: float) -> Array:
    """The CV+ interval (n, d, 2) around members' predictions (n, members, d).

    Its upper end is the ⌈coverage·(n+1)⌉-th smallest of all μ_k(x) + R_i, where R_i is the
    absolute residual of row i under the member k that held it out; its lower end is as many from
    the top of all μ_k(x) − R_i. Infinite where there are too few rows for the coverage.
    """
    upper = upper_ends(calibration, centres, coverage)
    # Mirrored, a lower end is an upper one.
    return np.stack([-upper_ends(calibration, -centres, coverage), upper], axis=2)


def upper_ends(calibration: Calibration, centres: Array, coverage: float) -> Array:
    """The upper ends (n, d)."""
    need = needed(calibration, coverage)
    ends = np.full((len(centres), centres.shape[2]), np.inf)
    if need > calibration.total():
        return ends
    for j in range(ends.shape[1]):
        ends[:, j] = union_quantile(distributions(calibration, j), centres[:, :, j], need)
    return ends


def needed(calibration: Calibration, coverage: float) -> float:
    """The weight of scores that a prediction must reach: a new row counts like one of them."""
    return coverage * (calibration.total() + 1.0) - ROUNDING


@dataclass(frozen=True)
class Distribution:
    """Rising values, and the weight of all before each of them (one more, for all)."""

    values: Array
    before: Array

    def reaching(self, share: float) -> float:
        """The least value with so large a share of the weight at or below it."""
        place = int(np.searchsorted(self.before[1:], share * self.before[-1]))
        return float(self.values[min(place, len(self.values) - 1)])

    def below(self, t: Array) -> Array:
        """The weight of values below t."""
        return self.before[np.searchsorted(self.values, t, side="left")]

    def up_to(self, t: Array) -> Array:
        """The weight of values below t or equal to it."""
        return self.before[np.searchsorted(self.values, t, side="right")]


def distributions(calibration: Calibration, j: int) -> list[Distribution]:
    """How the scores of an output are distributed, for every member."""
    pairs = zip(calibration.scores, calibration.weights, strict=True)
    columns = [(s[:, j], w[:, j]) for s, w in pairs]
    return [Distribution(s, np.concatenate([[0.0], np.cumsum(w)])) for s, w in columns]


def union_quantile(members: list[Distribution], shifts: Array, need: float) -> Array:
    """For every row of shifts (n, members) the least t with so much weight at or below it.

    The weight is that of the union of the members' values, each member's moved by its own shift.
    The quantile of a union lies between those of its parts, so only the shifts' spread is
    searched, by halving.
    """
    share = need / sum(member.before[-1] for member in members)
    ends = shifts + np.array([member.reaching(share) for member in members])
    low, high = ends.min(axis=1), ends.max(axis=1)
    for _ in range(HALVINGS if len(members) > 1 else 0):
        middle = low + (high - low) / 2
        reached = sum(member.up_to(middle - shifts[:, k]) for k, member in enumerate(members))
        high = np.where(reached >= need, middle, high)
        low = np.where(reached >= need, low, middle)
    return high


def conforming(calibration: Calibration, scores: Array, coverage: float) -> np.ndarray:
    """Which scores (n, members, classes) are not too large: (n, classes), true or false.

    A class stays unless it conforms worse than ``coverage`` of the held-out rows' own classes,
    each row compared by the member that held it out.
    """
    members = enumerate(distributions(calibration, 0))
    below = np.sum([member.below(scores[:, k]) for k, member in members], axis=0)
    return below < needed(calibration, coverage)
