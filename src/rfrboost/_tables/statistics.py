"""What is learned about each column from training rows: scales, levels and target encodings.

Functions named ``fit_…`` return the encoder of some columns and the scale of every column that it
writes, and of numbers and dates also their range; :mod:`rfrboost._tables.fit` puts these together.

Every statistic counts a row of weight 2 as two equal rows, and does not depend on the order of
rows. Weights are None (all one) or positive numbers (n,).

*Target encoding.* A level is encoded by the mean of the target over its rows, shrunk towards the
mean of all rows. The shrinkage follows from a model of random effects: a level's mean is the
overall mean plus an effect of variance τ², and a row is its level's mean plus noise of variance σ².
The best linear prediction of a level's mean is then

    (Σ w·y + σ²/τ² · overall mean) / (Σ w + σ²/τ²).

A training row must not be encoded by its own target. Rows are dealt to folds, and each is encoded
by means over the other folds, or over the rows that the user's own folds allow
(:func:`cross_fitted`). scikit-learn's ``TargetEncoder`` does the same, but cannot weight rows.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.threads import side_by_side
from rfrboost._tables.encoder import (
    DATE_PARTS,
    ColumnEncoder,
    DateColumn,
    LevelColumn,
    NumberColumns,
    Scale,
    checksum,
    date_part,
    within_margin,
)
from rfrboost._tables.table import Table
from rfrboost._typing import Array, Indices, Mask

#: the encoder of some columns, and the scale of every column that it writes
Fitted = tuple[ColumnEncoder, list[Scale]]


class Range(NamedTuple):
    """How many values of a column are missing, and its least and largest value, NaN if it has
    none; dates are in seconds."""

    missing: int
    low: float
    high: float


#: some rows to be target-encoded, and the rows that they are encoded by: masks (n,)
Part = tuple[Mask, Mask]

#: the scale of a column that does not vary: it becomes zeros
NO_SCALE = Scale(0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0)

# The quantiles between which the bulk of a column lies. The distance between them is the unit of
# its scale, so that one value in twenty at either end may be an outlier.
LOWER = 0.05
UPPER = 0.95

# How far beyond the training dates a date may lie before it is clipped, as a share of the time that
# they span. Dates to predict are often later than all training dates, and a trend should continue.
AHEAD = 0.25

# How far beyond the values of a column a new one may lie before it is clipped, as a share of their
# range. Rows like the training rows exceed its ends by a little. Clipping these at the ends makes
# predictions much worse where the target has no noise.
MARGIN = 0.01

# The smallest spread that a column is divided by, in units of its bulk's width. A column that is 1
# in few rows has a smaller one, and dividing by it would make these rows outliers.
LEAST_SPREAD = 0.2

# Up to this number of levels, each gets an indicator column. Indicators can interact with other
# columns, but too many of them hide those columns; measured on benchmark tables, ten did best for
# regression and fewer for classification.
MOST_INDICATORS = 10

# Levels with a total weight below this many rows are too rare to learn from; all of them are
# treated as one level.
FEWEST_ROWS = 3

# The most rare levels of a column whose checksums (8 bytes each) are kept, to tell rare levels from
# unseen ones at prediction.
MOST_RARE = 100_000

# Number of columns of numbers that are held and sorted at a time, and number of entries of a table
# from which on several threads do it: with fewer, starting threads takes longer than it saves.
COLUMNS_AT_A_TIME = 16
MANY_ENTRIES = 2**21

# The name of the indicator of missing values among levels.
MISSING = "(missing)"


# Numbers and dates


def fit_numbers(
    table: Table, columns: Sequence[int], w: Array | None
) -> tuple[ColumnEncoder, list[Scale], dict[int, Range]]:
    """Columns of numbers and indicators of their missing values.

    The numbers are always scaled, so that a column's unit never matters.
    """
    scales: dict[int, Scale] = {}
    indicated: dict[bytes, tuple[int, Scale]] = {}
    ranges = {}

    def facts(x: Array) -> tuple[Range, Scale | None, bytes | None]:
        missing = np.isnan(x)
        shown = missing.tobytes() if worth_indicating(missing, w) else None
        return range_of(x), fit_scale(x, w), shown

    many = table.shape[0] * len(columns) >= MANY_ENTRIES
    for begin in range(0, len(columns), COLUMNS_AT_A_TIME):
        some = columns[begin : begin + COLUMNS_AT_A_TIME]
        numbers = [table.number(j) for j in some]
        found = side_by_side(facts, numbers) if many else map(facts, numbers)
        for j, (known, scale, missing) in zip(some, found, strict=True):
            ranges[j] = known
            if scale is not None:
                scales[j] = scale
            if missing is not None and missing not in indicated:
                # Columns with missing values in the same rows share one indicator.
                holes = np.frombuffer(missing, bool)
                indicated[missing] = j, missing_scale(holes, w)
    encoder = NumberColumns(tuple(scales), tuple(j for j, _ in indicated.values()))
    return encoder, [*scales.values(), *(scale for _, scale in indicated.values())], ranges


def fit_dates(
    table: Table, column: int, w: Array | None
) -> tuple[ColumnEncoder, list[Scale], dict[int, Range]]:
    """The parts of a date that vary, and an indicator of missing dates."""
    seconds = table.seconds(column)
    fitted = {part: fit_scale(date_part(seconds, part), w) for part in DATE_PARTS}
    scales = {part: scale for part, scale in fitted.items() if scale is not None}
    if "time" in scales:
        scales["time"] = ahead(scales["time"])
    missing = np.isnan(seconds)
    indicated = [missing_scale(missing, w)] if worth_indicating(missing, w) else []
    encoder = DateColumn(column, tuple(scales), bool(indicated))
    return encoder, [*scales.values(), *indicated], {column: range_of(seconds)}


def range_of(x: Array) -> Range:
    """The range of a column (n,), which is NaN where values are missing."""
    low, high = np.fmin.reduce(x), np.fmax.reduce(x)
    return Range(int(np.count_nonzero(np.isnan(x))), float(low), float(high))


def ahead(time: Scale) -> Scale:
    """The scale of a time that is clipped only ``AHEAD`` before and after the training dates."""
    more = AHEAD * (time.high - time.low)
    return time._replace(low=time.low - more, high=time.high + more)


def worth_indicating(missing: np.ndarray, w: Array | None) -> bool:
    """Whether missing and other values have at least ``FEWEST_ROWS`` rows each, as levels need."""
    return bool(np.bincount(missing, w, minlength=2).min() >= FEWEST_ROWS)


def missing_scale(missing: np.ndarray, w: Array | None) -> Scale:
    """The scale of an indicator of missing values."""
    return indicator_scale(float(np.average(missing, weights=w)))


# Scales


def with_margin(low: float, high: float) -> tuple[float, float]:
    """The range of a column widened by ``MARGIN`` on both sides, within the range of floats."""
    more = MARGIN * high - MARGIN * low
    largest = float(np.finfo(float).max)
    return max(low - more, -largest), min(high + more, largest)


def fit_scale(x: Array, w: Array | None) -> Scale | None:
    """The scale of a column (n,), NaN where missing; None if all its values are equal."""
    x, w = in_order(x, w)
    if not len(x) or x[0] == x[-1]:
        return None
    cumulative = np.cumsum(w)
    start, stop = bulk(x, w, cumulative)
    with np.errstate(over="ignore"):
        t = within_margin((x - start) / (stop - start))
    mean = float(np.average(t, weights=w))
    spread = float(np.sqrt(np.average((t - mean) ** 2, weights=w)))
    median = sum(quantile(x, cumulative, 0.5)) / 2
    gain = 1 / max(spread, LEAST_SPREAD)
    low, high = with_margin(float(x[0]), float(x[-1]))
    return Scale(median, start, stop - start, mean, gain, low, high)


def indicator_scale(share: float) -> Scale:
    """What :func:`fit_scale` gives for a column that is 1 in this share of rows and 0 elsewhere."""
    gain = 1 / max(float(np.sqrt(share * (1 - share))), LEAST_SPREAD)
    return Scale(0.0, 0.0, 1.0, share, gain, 0.0, 1.0)


def in_order(x: Array, w: Array | None) -> tuple[Array, Array]:
    """The values that are not missing, sorted, with their weights.

    Sums over sorted values do not depend on the order of rows, not even in their rounding.
    """
    present = ~np.isnan(x)
    if w is None:
        x = np.sort(x[present])
        return x, np.ones(len(x))
    x, w = x[present], w[present]
    order = np.lexsort((w, x))
    return x[order], w[order]


def bulk(x: Array, w: Array, cumulative: Array) -> tuple[float, float]:
    """The two ends of the bulk of sorted values, which differ.

    ``cumulative`` (n,) are sums of their weights. If nearly all values are equal, the bulk reaches
    from that value to the bulk of the others.
    """
    start = quantile(x, cumulative, LOWER)[0]
    stop = quantile(x, cumulative, UPPER)[1]
    if start < stop:
        return start, stop
    others = x != start
    x, cumulative = x[others], np.cumsum(w[others])
    low, high = quantile(x, cumulative, LOWER)[0], quantile(x, cumulative, UPPER)[1]
    return min(start, low), max(start, high)


def quantile(x: Array, cumulative: Array, level: float) -> tuple[float, float]:
    """A quantile of sorted values as two values; ``cumulative`` (n,) are sums of their weights.

    They differ only where the weights below and above balance exactly between two values.
    """
    wanted = level * cumulative[-1]
    last = len(x) - 1
    lower, upper = (np.searchsorted(cumulative, wanted, side=side) for side in ("left", "right"))
    return float(x[min(lower, last)]), float(x[min(upper, last)])


# Categories


def fit_indicators(
    column: int, texts: list[str | None], levels: list[str | None], weight: Array
) -> tuple[LevelColumn, list[Scale]]:
    """Indicator columns of a category with few levels, which have these weights (levels + 1,)."""
    encoder = replace(indicators(column, levels, weight), rare=rare_levels(texts, levels))
    shares = weight[: len(encoder.values)] @ encoder.values / weight.sum()
    return encoder, [indicator_scale(float(share)) for share in shares]


def fit_targets(
    column: int,
    texts: list[str | None],
    levels: list[str | None],
    codes: Indices,
    Y: Array,
    suffixes: tuple[str, ...],
    w: Array | None,
) -> tuple[LevelColumn, list[Scale]]:
    """Target encodings of a category with many levels."""
    values = frozen(target_means(codes, len(levels), Y, w))
    scales = [fit_scale(values[codes, i], w) or NO_SCALE for i in range(len(suffixes))]
    return LevelColumn(column, tuple(levels), values, suffixes, rare_levels(texts, levels)), scales


def rare_levels(texts: list[str | None], levels: list[str | None]) -> Array | None:
    """The checksums of the texts that are not among the levels, sorted; None if there are more
    than ``MOST_RARE``."""
    rare = set(texts) - {*levels, None}
    if len(rare) > MOST_RARE:
        return None
    return frozen(np.sort(np.array([checksum(text) for text in rare], dtype=float)))


def constant_column() -> Fitted:
    """One column of zeros, for a table in which nothing varies."""
    return LevelColumn(0, (), np.zeros((1, 1)), (" constant",)), [NO_SCALE]


def common_levels(texts: list[str | None], w: Array | None) -> tuple[list[str | None], Array]:
    """The levels that are not rare, and weights (levels + 1,).

    Levels are in alphabetical order; None, for missing values, is first. Weights are the total of
    each level and, last, of all rare levels.
    """
    codes = {level: i for i, level in enumerate(dict.fromkeys(texts))}
    coded = np.fromiter(map(codes.__getitem__, texts), np.intp, len(texts))
    weight = np.bincount(coded, w, minlength=len(codes))
    common = [level for level, i in codes.items() if weight[i] >= FEWEST_ROWS]
    levels = sorted(common, key=lambda level: (level is not None, level or ""))
    rare = weight[weight < FEWEST_ROWS].sum()
    return levels, np.array([*(weight[codes[level]] for level in levels), rare], float)


def indicators(column: int, levels: list[str | None], weight: Array) -> LevelColumn:
    """The indicator columns of a table's column, one for each level.

    Two levels without others need one column only, and a single level needs none. ``weight``
    (levels + 1,) has the total weight of each level and, last, of all others.
    """
    names = tuple(f"={MISSING if level is None else level}" for level in levels)
    n_levels = len(levels)
    others = weight[-1] > 0
    if n_levels + others < 2:
        return LevelColumn(column, (), np.empty((1, 0)), ())
    if n_levels == 2 and not others:
        # An unseen level gets the average of the two.
        values = np.array([[0.0], [1.0], [weight[1] / weight.sum()]])
        return LevelColumn(column, tuple(levels), frozen(values), names[1:])
    values = np.vstack([np.eye(n_levels), np.zeros(n_levels)])
    return LevelColumn(column, tuple(levels), frozen(values), names)


def target_means(codes: Indices, n_levels: int, Y: Array, w: Array | None) -> Array:
    """The encoding (n_levels + 1, k) of levels by targets Y (n, k); last is the mean of all rows.

    ``codes`` (n,) has each row's level; rows with the code ``n_levels`` count in the overall mean
    only.
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
    # The fraction is expanded by τ², so that τ² = 0 needs no special case; if σ² = 0 as well, the
    # target is constant.
    denominator = W[:, None] * effect + noise
    effects = np.divide(sums * effect, denominator, out=np.zeros_like(sums), where=denominator > 0)
    encoding: Array = overall + np.vstack([effects, np.zeros_like(overall)])
    return encoding


def variances(codes: Indices, Y: Array, w: Array, W: Array, means: Array) -> tuple[Array, Array]:
    """σ² within and τ² between levels, each (k,), by the analysis of variance.

    ``W`` (levels,) are the total weights of the levels, ``means`` (levels, k) their mean targets.
    """
    total = W.sum()
    present = np.count_nonzero(W)
    within = np.average((Y - means[codes]) ** 2, axis=0, weights=w) * total
    centre = W @ means / total
    between = W @ (means - centre) ** 2
    freedom = total - present
    # If no level has two rows, the share of noise in the variance is unknown: all of it is noise.
    noise = within / freedom if freedom > 0 else between / max(present - 1, 1)
    size = total - (W**2).sum() / total
    effect = np.maximum(between - (present - 1) * noise, 0) / size if size > 0 else 0 * noise
    return noise, effect


def cross_fitted(
    codes: Indices, n_levels: int, Y: Array, w: Array | None, parts: list[Part], aligned: bool
) -> Array:
    """The target encoding (n, k) of training rows, those of each part fitted on rows outside it.

    If there are no rows outside it, rows are encoded by the mean of all rows. If ``aligned``, the
    encodings of each part are shifted so that a level that is not seen outside the part is encoded
    by that mean too. Otherwise it would be encoded by the mean of the rows outside, which differs
    between parts: where every level is in one part only, as groups are, that would reveal the part
    and thereby its mean target.
    """
    overall = np.average(Y, axis=0, weights=w)
    encoded = np.tile(overall, (len(Y), 1))
    for held, rest in parts:
        if rest.any():
            means = target_means(codes[rest], n_levels, Y[rest], None if w is None else w[rest])
            shift = overall - means[-1] if aligned else 0.0
            encoded[held] = means[codes[held]] + shift
    return encoded
