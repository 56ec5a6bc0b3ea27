"""Fitting an encoder to a training table, column by column.

Numbers are scaled, and get an indicator of missing values where enough values are missing. Dates
become the time since 1970 and their place in the year, the week and the day. Categories become
indicator columns if they have few levels, and target encodings if they have many. Columns that do
not vary are left out. :func:`fit_encoder` does all of it; the formulas for one column are in
:mod:`rfrboost._tables.statistics`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from rfrboost._numerics.arrays import content_order, frozen
from rfrboost._tables.encoder import (
    DATE_PARTS,
    ColumnEncoder,
    DateColumn,
    Encoder,
    LevelColumn,
    NumberColumns,
    Scale,
    date_part,
    level_codes,
    stack,
)
from rfrboost._tables.statistics import (
    FEWEST_ROWS,
    MOST_INDICATORS,
    common_levels,
    cross_fitted,
    fit_scale,
    indicator_scale,
    indicators,
    is_standardised,
    ranks,
    size_of,
    target_means,
    unchanged,
)
from rfrboost._tables.table import DATES, LEVELS, NOTHING, NUMBERS, Table, read_table
from rfrboost._typing import Array, Indices

#: the encoder of some columns, and the scale of every column that it writes
Fitted = tuple[ColumnEncoder, list[Scale]]

#: the scale of a column that does not vary: it becomes zeros
NO_SCALE = Scale(0.0, 0.0, 1.0, 0.0, 0.0)

# Folds for the target encodings of training rows.
N_FOLDS = 5


# The whole encoder


def fit_encoder(
    X: Any, y: Any, w: Array | None, task: str, rng: Generator
) -> tuple[Encoder, Array]:
    """An encoder of tables like X, and X encoded by it.

    Encoding X again gives the same array except in target-encoded columns, where rows of the
    training table must not see their own target.

    Parameters
    ----------
    X : table of n rows
    y : array of shape (n,) or, for regression, (n, k)
        Numbers for ``task="regression"``, labels for ``task="classification"``.
    w : array of shape (n,) or None
        Weights as the user gave them. A row of weight 0 has no influence. Weights that are all
        whole numbers count rows; others are divided by their mean. The encoder equals the one of
        repeated rows; only the target encodings of the training rows themselves differ, because
        equal rows may be in different folds.
    task : {"regression", "classification"}
    rng : Generator
        Deals the rows to folds, by their content and not by their order.
    """
    table = read_table(X)
    y = np.asarray(y)
    if w is None or (w > 0).all():
        return fit_present(table, encoding_targets(y, task, counts(w)), counts(w), rng)
    present = np.flatnonzero(w > 0)
    w = counts(w[present])
    Y = encoding_targets(y[present], task, w)
    encoder, encoded = fit_present(table.rows(present), Y, w, rng)
    out = encoder.encode(table)
    out[present] = encoded
    return encoder, out


@dataclass
class Draft:
    """An encoder that is being put together."""

    columns: list[ColumnEncoder] = field(default_factory=list)
    scales: list[Scale] = field(default_factory=list)

    def add(self, encoder: ColumnEncoder, scales: list[Scale]) -> None:
        """Add an encoder of columns, unless it writes none, and the scales of what it writes."""
        if scales:
            self.columns.append(encoder)
            self.scales += scales

    def finished(self, table: Table) -> Encoder:
        """The encoder of everything that was added."""
        return Encoder(table.names, table.shape[1], tuple(self.columns), stack(self.scales))


class Targets(NamedTuple):
    """The numbers (n, k) that levels are encoded by, and the suffix of each encoded column."""

    values: Array
    suffixes: tuple[str, ...]


def fit_present(table: Table, Y: Targets, w: Array | None, rng: Generator) -> tuple[Encoder, Array]:
    """The encoder and the encoded table, where all weights are positive."""
    of_kind = columns_by_kind(table)
    draft = Draft()
    draft.add(*fit_numbers(table, of_kind[NUMBERS], w))
    for j in of_kind[DATES]:
        draft.add(*fit_dates(table, j, w))
    many: dict[int, list[str | None]] = {}
    for j in of_kind[LEVELS]:
        texts = table.texts(j)
        levels = common_levels(texts, w)
        if len(levels) > MOST_INDICATORS:
            many[j] = levels
        else:
            draft.add(*fit_indicators(j, texts, levels, w))
    if not (draft.columns or many):
        # A model needs at least one column.
        draft.add(*constant_column())
    encoder = draft.finished(table)
    encoded = encoder.encode(table)
    return add_targets(draft, table, many, encoded, Y, w, rng) if many else (encoder, encoded)


def columns_by_kind(table: Table) -> dict[str, list[int]]:
    """The numbers of the columns of every kind."""
    found: dict[str, list[int]] = {NUMBERS: [], DATES: [], LEVELS: [], NOTHING: []}
    for j in range(table.shape[1]):
        found[table.column(j).kind].append(j)
    return found


def counts(w: Array | None) -> Array | None:
    """Weights as numbers of rows: whole numbers unchanged, others divided by their mean."""
    return w if w is None or (w == np.floor(w)).all() else w / w.mean()


# Numbers and dates


def fit_numbers(table: Table, columns: Sequence[int], w: Array | None) -> Fitted:
    """Columns of numbers and indicators of their missing values.

    The numbers are scaled, unless the user has standardised them already.
    """
    scales: dict[int, Scale] = {}
    indicated: dict[bytes, tuple[int, Scale]] = {}
    sizes = []
    for j in columns:
        x = table.number(j)
        scale = fit_scale(x, w)
        if scale is not None:
            scales[j] = scale
            sizes.append(size_of(x, w))
        missing = np.isnan(x)
        if worth_indicating(missing, w):
            # Columns with missing values in the same rows share one indicator.
            indicated.setdefault(missing.tobytes(), (j, missing_scale(missing, w)))
    if is_standardised(sizes):
        scales = {j: unchanged(scale.fill) for j, scale in scales.items()}
    encoder = NumberColumns(tuple(scales), tuple(j for j, _ in indicated.values()))
    return encoder, [*scales.values(), *(scale for _, scale in indicated.values())]


def fit_dates(table: Table, column: int, w: Array | None) -> Fitted:
    """The parts of a date that vary, and an indicator of missing dates."""
    seconds = table.seconds(column)
    fitted = {part: fit_scale(date_part(seconds, part), w) for part in DATE_PARTS}
    scales = {part: scale for part, scale in fitted.items() if scale is not None}
    missing = np.isnan(seconds)
    indicated = [missing_scale(missing, w)] if worth_indicating(missing, w) else []
    return DateColumn(column, tuple(scales), bool(indicated)), [*scales.values(), *indicated]


def worth_indicating(missing: np.ndarray, w: Array | None) -> bool:
    """Whether both missing and other values have enough rows to learn from, as a level needs."""
    return bool(np.bincount(missing, w, minlength=2).min() >= FEWEST_ROWS)


def missing_scale(missing: np.ndarray, w: Array | None) -> Scale:
    """The scale of an indicator of missing values."""
    return indicator_scale(float(np.average(missing, weights=w)))


# Categories


def fit_indicators(
    column: int, texts: list[str | None], levels: list[str | None], w: Array | None
) -> Fitted:
    """Indicator columns of a category with few levels."""
    weight = np.bincount(level_codes(levels, texts), w, minlength=len(levels) + 1).astype(float)
    encoder = indicators(column, levels, weight)
    shares = weight[: len(encoder.values)] @ encoder.values / weight.sum()
    return encoder, [indicator_scale(float(share)) for share in shares]


def fit_targets(
    column: int,
    levels: list[str | None],
    codes: Indices,
    Y: Array,
    suffixes: tuple[str, ...],
    w: Array | None,
) -> Fitted:
    """Target encodings of a category with many levels."""
    values = frozen(target_means(codes, len(levels), Y, w))
    scales = [fit_scale(values[codes, i], w) or NO_SCALE for i in range(len(suffixes))]
    return LevelColumn(column, tuple(levels), values, suffixes), scales


def constant_column() -> Fitted:
    """One column of zeros, for a table in which nothing varies."""
    return LevelColumn(0, (), np.zeros((1, 1)), (" constant",)), [NO_SCALE]


def add_targets(
    draft: Draft,
    table: Table,
    many: dict[int, list[str | None]],
    encoded: Array,
    Y: Targets,
    w: Array | None,
    rng: Generator,
) -> tuple[Encoder, Array]:
    """Add target encodings of columns with many levels.

    ``many`` has these columns and their levels, ``encoded`` (n, D) the other columns encoded.
    """
    codes = {j: level_codes(levels, table.texts(j)) for j, levels in many.items()}
    folds = dealt(
        np.column_stack([encoded, *(c / len(many[j]) for j, c in codes.items())]), Y.values, rng
    )
    parts = [encoded]
    for j, levels in many.items():
        encoder, scales = fit_targets(j, levels, codes[j], Y.values, Y.suffixes, w)
        draft.add(encoder, scales)
        part = cross_fitted(codes[j], len(levels), Y.values, w, folds)
        stack(scales)(part)
        parts.append(part)
    return draft.finished(table), np.hstack(parts)


def dealt(x: Array, Y: Array, rng: Generator) -> Indices:
    """The fold of every row; neighbours in the order of content are in different folds."""
    folds = np.empty(len(x), dtype=np.intp)
    folds[content_order(x, Y, rng)] = np.arange(len(x)) % N_FOLDS
    return folds


def encoding_targets(y: np.ndarray, task: str, w: Array | None) -> Targets:
    """The targets that levels are encoded by.

    For regression these are the outputs and their ranks: where outputs have heavy tails, a few rows
    decide the mean of a level, and the mean of the ranks says more. (A row's own target moves the
    ranks of other rows by one place at most, which is all that these learn of it.) Outputs are
    divided by a power of two, so that their squares stay finite; the encodings are scaled
    afterwards. For classification they are indicators of the classes; of two classes one is enough.
    """
    if task == "regression":
        outputs = np.asarray(y, dtype=float).reshape(len(y), -1)
        small = np.ldexp(outputs, -np.frexp(np.abs(outputs).max(axis=0))[1])
        names = numbered(" target", small.shape[1]) + numbered(" target rank", small.shape[1])
        return Targets(np.column_stack([small, *(ranks(y, w) for y in small.T)]), names)
    classes, codes = np.unique(y, return_inverse=True)
    indicator = (codes[:, None] == np.arange(len(classes))).astype(float)
    values = indicator[:, 1:] if len(classes) == 2 else indicator
    return Targets(values, numbered(" target", values.shape[1]))


def numbered(suffix: str, k: int) -> tuple[str, ...]:
    """The suffixes of k columns: numbered from 0, unless there is only one."""
    return (suffix,) if k == 1 else tuple(f"{suffix} {i}" for i in range(k))
