"""Cross-conformal prediction: intervals, and sets of classes, with a given coverage.

Intervals are those of CV+ (Barber, Candès, Ramdas, Tibshirani: Predictive inference with the
jackknife+, Annals of Statistics 2021); sets of classes are its analogue for scores. Both are made
of the scores of held-out rows: how wrong each member was on the rows it was not fitted on. The
scores of a member are only combined with that member's own predictions.

Predictions of the members are (n, members, d). The coverage is a share of new rows that are drawn
as the training rows were; it is not that of each single row. It is met approximately: for CV+ a
coverage of about 2·coverage − 1 is proven, if no member that predicts has seen the rows whose
scores it is combined with. Kernel members that are moved to a fit of all rows
(:mod:`rfrboost._auto.kernel`), and weights of families, have seen them.
"""

from dataclasses import dataclass

import numpy as np

from rfrboost._numerics.arrays import frozen
from rfrboost._typing import Array

# The most scores that are kept for each member. More are replaced by this number of evenly spaced
# quantiles, which move the coverage by at most 1/20,000 and keep models small.
MOST_SCORES = 20_000

# Halvings of the bracket around an interval's end. The bracket is as wide as the members disagree,
# and 32 halvings shrink it by a factor of 4·10⁹.
HALVINGS = 32

# Weight by which the weight that is needed is lowered, so that rounding does not move an end to the
# next score. A row weighs one on average.
ROUNDING = 1e-9


@dataclass(frozen=True)
class HeldOut:
    """The rows that a member holds out: its raw predictions (n, d), targets y, weights (n,)."""

    raw: Array
    y: Array
    w: Array


@dataclass(frozen=True)
class Calibration:
    """For each member the scores of its held-out rows (n, d), rising, and their weights (n, d).

    A score is larger the worse a prediction was. The weights of all members add up to the number of
    held-out rows, for each of the d outputs.
    """

    scores: tuple[Array, ...]
    weights: tuple[Array, ...]

    def total(self) -> float:
        """The weight of all held-out rows."""
        return float(sum(w[:, 0].sum() for w in self.weights))

    def fits(self, members: int, outputs: int) -> bool:
        """Whether there are rising scores with positive weights for each member and output."""
        pairs = list(zip(self.scores, self.weights, strict=False))
        return (
            len(self.scores) == len(self.weights) == members
            and all(s.shape == w.shape == (len(s), outputs) and len(s) > 0 for s, w in pairs)
            and all((np.diff(s, axis=0) >= 0).all() and (w > 0).all() for s, w in pairs)
        )


def calibrate(
    scores: list[Array], weights: list[Array], most_scores: int = MOST_SCORES
) -> Calibration:
    """The calibration by the scores (n, d) and weights (n,) of each member's held-out rows."""
    rows = sum(map(len, weights))
    mass = sum(float(w.sum()) for w in weights)
    kept = [
        thinned(s, w * (rows / mass), most_scores) for s, w in zip(scores, weights, strict=True)
    ]
    return Calibration(
        tuple(frozen(s) for s, _ in kept),
        tuple(frozen(w) for _, w in kept),
    )


def thinned(scores: Array, w: Array, most_scores: int) -> tuple[Array, Array]:
    """Sort each column of scores, with its weights; at most ``most_scores`` quantiles are kept."""
    order = np.argsort(scores, axis=0, kind="stable")
    rising = np.take_along_axis(scores, order, axis=0)
    weights = w[order]
    if len(rising) <= most_scores:
        return rising, weights
    places = (np.arange(most_scores) + 0.5) / most_scores
    columns = [
        column[np.searchsorted(mass, places * mass[-1])]
        for column, mass in zip(rising.T, np.cumsum(weights, axis=0).T, strict=True)
    ]
    share = weights[:, 0].sum() / most_scores
    return np.column_stack(columns), np.full((most_scores, scores.shape[1]), share)


def pooled(calibration: Calibration, widened: float) -> Calibration:
    """The scores of all members as those of one, each multiplied by ``widened``.

    For one model that predicts in place of all members.
    """
    scores, weights = (np.concatenate(own) for own in (calibration.scores, calibration.weights))
    order = np.argsort(scores, axis=0, kind="stable")
    rising, mass = (np.take_along_axis(own, order, axis=0) for own in (scores, weights))
    return Calibration((frozen(widened * rising),), (frozen(mass),))


def variance(calibration: Calibration) -> Array:
    """The mean square of each output's scores."""
    pairs = zip(calibration.scores, calibration.weights, strict=True)
    squares = [(w * s**2).sum(axis=0) for s, w in pairs]
    mean: Array = np.sum(squares, axis=0) / calibration.total()
    return mean


def intervals(calibration: Calibration, centres: Array, coverage: float) -> Array:
    """The CV+ interval (n, d, 2) around members' predictions (n, members, d).

    Its upper end is the ⌈coverage·(n+1)⌉-th smallest of all μ_k(x) + R_i, where R_i is the
    absolute residual of row i under the member k that held it out. Its lower end is the
    ⌈coverage·(n+1)⌉-th largest of all μ_k(x) − R_i. Both are infinite if there are too few rows for
    the coverage.
    """
    upper = upper_ends(calibration, centres, coverage)
    # Lower ends are upper ends of the mirrored problem.
    return np.stack([-upper_ends(calibration, -centres, coverage), upper], axis=2)


def upper_ends(calibration: Calibration, centres: Array, coverage: float) -> Array:
    """The upper ends (n, d) of the intervals."""
    need = needed(calibration, coverage)
    ends = np.full((len(centres), centres.shape[2]), np.inf)
    if need > calibration.total():
        return ends
    for j in range(ends.shape[1]):
        ends[:, j] = union_quantile(distributions(calibration, j), centres[:, :, j], need)
    return ends


def needed(calibration: Calibration, coverage: float) -> float:
    """The weight of scores that must lie within: a share of all rows and the new row together."""
    return coverage * (calibration.total() + 1.0) - ROUNDING


@dataclass(frozen=True)
class Distribution:
    """Rising values (n,), and the weight (n+1,) of all values before each of them, and of all."""

    values: Array
    before: Array

    def reaching(self, share: float) -> float:
        """The smallest value with at least this share of the weight at or below it."""
        place = int(np.searchsorted(self.before[1:], share * self.before[-1]))
        return float(self.values[min(place, len(self.values) - 1)])

    def below(self, t: Array) -> Array:
        """The weight of values below t."""
        return self.before[np.searchsorted(self.values, t, side="left")]

    def up_to(self, t: Array) -> Array:
        """The weight of values below t or equal to t."""
        return self.before[np.searchsorted(self.values, t, side="right")]


def distributions(calibration: Calibration, j: int) -> list[Distribution]:
    """The distribution of the scores of output j, for each member."""
    pairs = zip(calibration.scores, calibration.weights, strict=True)
    columns = [(s[:, j], w[:, j]) for s, w in pairs]
    return [Distribution(s, np.concatenate([[0.0], np.cumsum(w)])) for s, w in columns]


def union_quantile(members: list[Distribution], shifts: Array, need: float) -> Array:
    """For each row of shifts (n, members) the smallest t with weight ``need`` at or below it.

    The weight is that of the values of all members, where those of each member are moved by its
    shift. The quantile of a union lies between the quantiles of its parts, so that only the range
    between these is searched, by halving.
    """
    share = need / sum(member.before[-1] for member in members)
    ends = shifts + np.array([member.reaching(share) for member in members])
    low: Array = ends.min(axis=1)
    high: Array = ends.max(axis=1)
    for _ in range(HALVINGS if len(members) > 1 else 0):
        middle = low + (high - low) / 2
        reached = sum(member.up_to(middle - shifts[:, k]) for k, member in enumerate(members))
        high = np.where(reached >= need, middle, high)
        low = np.where(reached >= need, low, middle)
    return high


def conforming(calibration: Calibration, scores: Array, coverage: float) -> np.ndarray:
    """Which classes are in the prediction set, by their scores (n, members, classes).

    Returns (n, classes), true or false. A class is left out if its score is larger than a share
    ``coverage`` of the scores that held-out rows have for their own class; each of these rows is
    compared with the prediction of the member that held it out.
    """
    members = enumerate(distributions(calibration, 0))
    below = np.sum([member.below(scores[:, k]) for k, member in members], axis=0)
    within: np.ndarray = below < needed(calibration, coverage)
    return within
