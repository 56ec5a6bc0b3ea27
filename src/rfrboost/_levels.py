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

from rfrboost._encoders import LevelColumn
from rfrboost._typing import Array, Indices, frozen

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
