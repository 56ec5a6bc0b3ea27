"""Fitting an encoder to a training table: columns by kind, and target encodings across folds.

Numbers are scaled, and get an indicator of missing values where enough values are missing. Dates
become the time since 1970 and their place in the year, the week and the day. Categories become
indicator columns if they have few levels, and target encodings if they have many. Columns that do
not vary are left out. What is learned about each column is in
:mod:`rfrboost._tables.statistics`; :func:`fit_encoder` puts it together.
"""

from dataclasses import dataclass, field
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from rfrboost._numerics.arrays import content_order
from rfrboost._tables.encoder import ColumnEncoder, Encoder, Scale, level_codes, stack
from rfrboost._tables.statistics import (
    MOST_INDICATORS,
    common_levels,
    constant_column,
    cross_fitted,
    fit_dates,
    fit_indicators,
    fit_numbers,
    fit_targets,
)
from rfrboost._tables.table import DATES, LEVELS, NOTHING, NUMBERS, Table, read_table
from rfrboost._typing import Array

# Folds for the target encodings of training rows.
N_FOLDS = 5

# In units of the mean weight. A sum of multiples of it is exact up to 10⁸ rows.
WEIGHT_STEP = 2.0**-26


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
    """Weights as numbers of rows: whole numbers unchanged, others divided by their mean.

    The latter are rounded to multiples of WEIGHT_STEP, whose sums are exact in every order of rows.
    """
    if w is None or (w == np.floor(w)).all():
        return w
    steps = np.round(w / (fsum(w) / len(w)) / WEIGHT_STEP)
    return np.maximum(steps, 1.0) * WEIGHT_STEP


# Target encodings of columns with many levels


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
    x = np.column_stack([encoded, *(c / len(many[j]) for j, c in codes.items())])
    # In an order that content decides, sums over rows are the same to the bit in every order of
    # rows, and neighbours are dealt to different folds.
    order = content_order(x, Y.values, rng)
    values = Y.values[order]
    weights = None if w is None else w[order]
    folds = np.arange(len(order)) % N_FOLDS
    parts = [encoded]
    for j, levels in many.items():
        ordered = codes[j][order]
        encoder, scales = fit_targets(j, levels, ordered, values, Y.suffixes, weights)
        draft.add(encoder, scales)
        part = np.empty_like(values)
        part[order] = cross_fitted(ordered, len(levels), values, weights, folds)
        stack(scales)(part)
        parts.append(part)
    return draft.finished(table), np.hstack(parts)


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


def ranks(values: Array, w: Array | None) -> Array:
    """For each value, the share of all weight below it plus half of the share at it (n,)."""
    _, codes = np.unique(values, return_inverse=True)
    weight = np.bincount(codes, w).astype(float)
    shares: Array = ((np.cumsum(weight) - weight / 2) / weight.sum())[codes]
    return shares


def numbered(suffix: str, k: int) -> tuple[str, ...]:
    """The suffixes of k columns: numbered from 0, unless there is only one."""
    return (suffix,) if k == 1 else tuple(f"{suffix} {i}" for i in range(k))
