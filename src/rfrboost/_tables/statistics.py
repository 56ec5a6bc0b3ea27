"""Fitting categories: indicator columns for few levels, target encoding for many.

A level's target encoding is the mean of the target over its rows, drawn towards the mean of all
rows by as much as the data say: the model is one of random effects, a level's mean = overall mean
+ an effect of variance τ², a row = its level's mean + noise of variance σ², and the encoding is the
best linear prediction of a level's mean, (Σ w y + σ²/τ² · overall mean) / (Σ w + σ²/τ²).

Training rows must not see their own target in it. They are dealt out to folds, and each gets the
encoding fitted on the other folds (scikit-learn's ``TargetEncoder`` does the same, but cannot
weight rows).
"""

import numpy as np

from rfrboost._numerics.arrays import frozen
from rfrboost._tables.encoder import LevelColumn, Scale, within_margin
from rfrboost._typing import Array, Indices

# The bulk lies between these quantiles; its width is the unit of everything that follows.
LOWER, UPPER = 0.05, 0.95


# Rare events are not blown up beyond 1 / this.
LEAST_SPREAD = 0.2


# What tells columns that have been standardised already: how far their means are from 0, in
# deviations, for which share of them, and the largest value there is.
CENTRED, NEARLY_ALL, FAR_OUT = 0.4, 0.9, 10.0


# A power of two: dividing and multiplying by it is exact.
UNTOUCHED = 2.0**20


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


# Up to so many levels get a column each. Indicators keep what a level does together with other
# columns, but many of them drown those; measured on tables, ten did best for regression, fewer for
# classification.
MOST_INDICATORS = 10


# Levels with less weight than so many rows are too rare to tell apart.
FEWEST_ROWS = 3


N_FOLDS = 5


MISSING = "(missing)"


def common_levels(texts: list[str | None], w: Array | None) -> list[str | None]:
    """The levels that are not rare, in alphabetical order, holes first."""
    codes: dict[str | None, int] = {}
    coded = np.fromiter((codes.setdefault(t, len(codes)) for t in texts), np.intp, len(texts))
    weight = np.bincount(coded, w, minlength=len(codes))
    common = [level for level, i in codes.items() if weight[i] >= FEWEST_ROWS]
    return sorted(common, key=lambda level: (level is not None, level or ""))


def indicators(column: int, levels: list[str | None], weight: Array) -> LevelColumn:
    """A column for each level; one is enough for two levels and no others, none for one.

    ``weight`` is that of each level and, last, of all others.
    """
    names = tuple(f"={MISSING if level is None else level}" for level in levels)
    n_levels, others = len(levels), weight[-1] > 0
    if n_levels + others < 2:
        return LevelColumn(column, (), np.empty((1, 0)), ())
    if n_levels == 2 and not others:
        # A level never seen is an average one.
        values = np.array([[0.0], [1.0], [weight[1] / weight.sum()]])
        return LevelColumn(column, tuple(levels), frozen(values), names[1:])
    values = np.vstack([np.eye(n_levels), np.zeros(n_levels)])
    return LevelColumn(column, tuple(levels), frozen(values), names)


def target_means(codes: Indices, n_levels: int, Y: Array, w: Array | None) -> Array:
    """The encoding (n_levels + 1, k) of levels by targets Y (n, k); last comes the mean of all.

    Rows whose code is ``n_levels`` count in the overall mean only.
    """
    w = np.ones(len(Y)) if w is None else w
    overall = np.average(Y, axis=0, weights=w)
    known = codes < n_levels
    codes, Y, w = codes[known], Y[known] - overall, w[known]
    if not len(codes):
        return np.tile(overall, (n_levels + 1, 1))
    W: Array = np.bincount(codes, w, minlength=n_levels).astype(float)
    sums = np.column_stack([np.bincount(codes, w * y, minlength=n_levels) for y in Y.T])
    means = sums / np.maximum(W, 1e-300)[:, None]
    noise, effect = variances(codes, Y, w, W, means)
    # Multiplied out by τ², so that τ² = 0 is no exception; both 0 is a target that is constant.
    denominator = W[:, None] * effect + noise
    effects = np.divide(sums * effect, denominator, out=np.zeros_like(sums), where=denominator > 0)
    return overall + np.vstack([effects, np.zeros_like(overall)])


def variances(codes: Indices, Y: Array, w: Array, W: Array, means: Array) -> tuple[Array, Array]:
    """σ² within and τ² between levels, by the analysis of variance."""
    total, present = W.sum(), np.count_nonzero(W)
    within = np.average((Y - means[codes]) ** 2, axis=0, weights=w) * total
    centre = W @ means / total
    between = W @ (means - centre) ** 2
    freedom = total - present
    # Without two rows in any level, how much of the variance is noise cannot be known: all of it.
    noise = within / freedom if freedom > 0 else between / max(present - 1, 1)
    size = total - (W**2).sum() / total
    effect = np.maximum(between - (present - 1) * noise, 0) / size if size > 0 else 0 * noise
    return noise, effect


def cross_fitted(codes: Indices, n_levels: int, Y: Array, w: Array | None, folds: Indices) -> Array:
    """The encoding (n, k) of training rows, each from the folds that it is not in."""
    encoded = np.empty_like(Y)
    for fold in np.unique(folds):
        held = folds == fold
        rest = ~held
        means = target_means(codes[rest], n_levels, Y[rest], None if w is None else w[rest])
        encoded[held] = means[codes[held]]
    return encoded
