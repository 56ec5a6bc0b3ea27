"""Centring and scaling that survives heavy tails.

The bulk of a column, between two quantiles and a margin beyond, is standardised and nothing else;
only what lies further out is drawn in, smoothly and in order, so that a few wild values neither
set the scale of all others nor end up far away from them.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rfrboost._rows import BLOCK_ROWS
from rfrboost._typing import Array, frozen

# The bulk lies between these quantiles; its width is the unit of everything that follows.
LOWER, UPPER = 0.05, 0.95
# How far beyond them values are left as they are; further out they go on as a logarithm, whose
# slope has fallen to a half after another REACH.
MARGIN, REACH = 0.5, 0.5
# Rare events are not blown up beyond 1 / this.
LEAST_SPREAD = 0.2
# What tells columns that have been standardised already: how far their means are from 0, in
# deviations, for which share of them, and the largest value there is.
CENTRED, NEARLY_ALL, FAR_OUT = 0.4, 0.9, 10.0
# A power of two: dividing and multiplying by it is exact.
UNTOUCHED = 2.0**20
# Keeps quotients of finite numbers finite.
LARGEST_QUOTIENT = 1e300


def squash(t: Array) -> Array:
    """The identity on [−MARGIN, 1 + MARGIN], a logarithm beyond; smooth and increasing."""
    inside = within_margin(t)
    beyond = np.clip(t - inside, -LARGEST_QUOTIENT, LARGEST_QUOTIENT)
    return inside + np.copysign(REACH * np.log1p(np.abs(beyond) / REACH), beyond)


def within_margin(t: Array) -> Array:
    """What is not squashed; mean and spread are taken of this, so that wild values count little."""
    return np.clip(t, -MARGIN, 1 + MARGIN)


class Scale(NamedTuple):
    """One column: gain · (squash((x − start) / width) − mean), holes filled beforehand."""

    fill: float
    start: float
    width: float
    mean: float
    gain: float


@dataclass(frozen=True)
class Scaling:
    """A :class:`Scale` for every column, as arrays."""

    fill: Array
    start: Array
    width: Array
    mean: Array
    gain: Array

    def __call__(self, x: Array) -> None:
        """Scale x (n, D) in place."""
        for begin in range(0, len(x), BLOCK_ROWS):
            block = x[begin : begin + BLOCK_ROWS]
            np.copyto(block, self.fill, where=np.isnan(block))
            with np.errstate(over="ignore"):
                t = (block - self.start) / self.width
            block[:] = (squash(t) - self.mean) * self.gain

    def slopes(self, x: Array) -> Array:
        """The derivative of every number that comes out in the one that went in; 0 for holes."""
        with np.errstate(over="ignore", invalid="ignore"):
            t = (x - self.start) / self.width
            beyond = np.abs(t - within_margin(t))
            slopes = self.gain / self.width / (1 + beyond / REACH)
        return np.where(np.isnan(x), 0.0, slopes)


def stack(scales: list[Scale]) -> Scaling:
    """One scaling of all columns."""
    table = np.array(scales, dtype=float).reshape(-1, len(Scale._fields))
    return Scaling(*(frozen(column) for column in table.T))


def fit_scale(x: Array, w: Array | None) -> Scale | None:
    """The scale of a column, NaN for holes; None if all its values are equal."""
    x, w = in_order(x, w)
    if not len(x) or x[0] == x[-1]:
        return None
    start, stop = bulk(x, w)
    with np.errstate(over="ignore"):
        t = within_margin((x - start) / (stop - start))
    mean = float(np.average(t, weights=w))
    spread = float(np.sqrt(np.average((t - mean) ** 2, weights=w)))
    median = sum(quantile(x, w, 0.5)) / 2
    return Scale(median, start, stop - start, mean, 1 / max(spread, LEAST_SPREAD))


def left_alone(fill: float) -> Scale:
    """A scale that changes nothing up to half of UNTOUCHED, to the bit."""
    return Scale(fill, 0.0, UNTOUCHED, 0.0, UNTOUCHED)


def is_prepared(columns: list[tuple[float, float, float]]) -> bool:
    """Whether columns, by (mean, deviation, largest absolute value), have been scaled already.

    Nearly all of them are centred, and the widest is about one unit wide. Rare indicators and
    clipped columns have smaller deviations, which somebody chose.
    """
    if not columns:
        return False
    mean, deviation, largest = np.array(columns).T
    centred = np.mean(np.abs(mean) <= CENTRED * deviation) >= NEARLY_ALL
    return bool(centred and largest.max() <= FAR_OUT and 0.5 <= deviation.max() <= 1.5)


def indicator_scale(share: float) -> Scale:
    """What :func:`fit_scale` gives for a column that is 1 in this share of rows and 0 elsewhere."""
    return Scale(0.0, 0.0, 1.0, share, 1 / max(float(np.sqrt(share * (1 - share))), LEAST_SPREAD))


def in_order(x: Array, w: Array | None) -> tuple[Array, Array]:
    """The values that are there, sorted, with their weights: sums then forget the order of rows."""
    present = ~np.isnan(x)
    if w is None:
        x = np.sort(x[present])
        return x, np.ones(len(x))
    x, w = x[present], w[present]
    order = np.lexsort((w, x))
    return x[order], w[order]


def bulk(x: Array, w: Array) -> tuple[float, float]:
    """Where most of the values lie.

    Where nearly all of them are one and the same value, that is where most of the others are.
    """
    start, stop = quantile(x, w, LOWER)[0], quantile(x, w, UPPER)[1]
    if start < stop:
        return start, stop
    others = x != start
    x, w = x[others], w[others]
    return min(start, quantile(x, w, LOWER)[0]), max(start, quantile(x, w, UPPER)[1])


def quantile(x: Array, w: Array, level: float) -> tuple[float, float]:
    """A quantile of sorted values: two values where the weights below and above balance between."""
    cumulative = np.cumsum(w)
    wanted = level * cumulative[-1]
    last = len(x) - 1
    lower, upper = (np.searchsorted(cumulative, wanted, side=side) for side in ("left", "right"))
    return float(x[min(lower, last)]), float(x[min(upper, last)])
