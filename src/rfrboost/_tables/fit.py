"""Fitting the kinds of columns: an encoder, and a scale for every column that it writes.

What does not vary gets no column.

Fitting an encoder to a training table.
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
    N_FOLDS,
    common_levels,
    cross_fitted,
    fit_scale,
    in_order,
    indicator_scale,
    indicators,
    is_prepared,
    left_alone,
    target_means,
)
from rfrboost._tables.table import DATES, LEVELS, NOTHING, NUMBERS, Table, read_table
from rfrboost._typing import Array, Indices

Fitted = tuple[ColumnEncoder, list[Scale]]


#: of a column that turns out not to vary: zeros
NO_SCALE = Scale(0.0, 0.0, 1.0, 0.0, 0.0)


def fit_numbers(table: Table, columns: Sequence[int], w: Array | None) -> Fitted:
    """Numbers, with indicators of what is missing; scaled unless they are already."""
    scales: dict[int, Scale] = {}
    holes: dict[bytes, tuple[int, Scale]] = {}
    sizes = []
    for j in columns:
        x = table.number(j)
        scale = fit_scale(x, w)
        if scale is not None:
            scales[j] = scale
            sizes.append(size_of(x, w))
        missing = np.isnan(x)
        if can_tell(missing, w):
            # Of columns that are missing together one tells as much as all.
            holes.setdefault(missing.tobytes(), (j, share_scale(missing, w)))
    if is_prepared(sizes):
        scales = {j: left_alone(scale.fill) for j, scale in scales.items()}
    told = tuple(j for j, _ in holes.values())
    return NumberColumns(tuple(scales), told), [*scales.values(), *(s for _, s in holes.values())]


def size_of(x: Array, w: Array | None) -> tuple[float, float, float]:
    """A column's mean, deviation and largest absolute value, holes left out."""
    x, w = in_order(x, w)
    largest = float(max(-x[0], x[-1]))
    mean = float(np.average(x / largest, weights=w))
    deviation = float(np.sqrt(np.average((x / largest - mean) ** 2, weights=w)))
    return mean * largest, deviation * largest, largest


def fit_dates(table: Table, column: int, w: Array | None) -> Fitted:
    """The parts of a date that vary."""
    seconds = table.column(column).seconds()
    fitted = {part: fit_scale(date_part(seconds, part), w) for part in DATE_PARTS}
    scales = {part: scale for part, scale in fitted.items() if scale is not None}
    missing = np.isnan(seconds)
    holes = [share_scale(missing, w)] if can_tell(missing, w) else []
    return DateColumn(column, tuple(scales), bool(holes)), [*scales.values(), *holes]


def can_tell(missing: np.ndarray, w: Array | None) -> bool:
    """Whether holes, and what is no hole, are enough rows to learn from, as a level's would be."""
    return bool(np.bincount(missing, w, minlength=2).min() >= FEWEST_ROWS)


def share_scale(missing: np.ndarray, w: Array | None) -> Scale:
    """The scale of an indicator of holes."""
    return indicator_scale(float(np.average(missing, weights=w)))


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


def nothing() -> Fitted:
    """One column of zeros."""
    return LevelColumn(0, (), np.zeros((1, 1)), (" constant",)), [NO_SCALE]


def fit_encoder(
    X: Any, y: Any, w: Array | None, task: str, rng: Generator
) -> tuple[Encoder, Array]:
    """An encoder of tables like X, and X encoded by it.

    Encoding X again gives the same array, except in target-encoded columns: there, rows of a
    training table must not see their own target.

    Parameters
    ----------
    X : table of n rows
    y : array of shape (n,) or, for regression, (n, k)
        Numbers for ``task="regression"``, labels for ``task="classification"``.
    w : array of shape (n,) or None
        Weights as the user gave them. A row of weight 0 is as good as absent; weights that are all
        whole numbers count rows, others are divided by their mean. The encoder is the one of
        repeated rows; only the target encodings of the training rows themselves differ, since
        equal rows may be in different folds.
    task : {"regression", "classification"}
    rng : Generator
        Deals out the rows to folds, by their content and not by their order.
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


class Targets(NamedTuple):
    """What levels are encoded by, (n, k), and how each of these columns is called."""

    values: Array
    suffixes: tuple[str, ...]


def numbered(suffix: str, k: int) -> tuple[str, ...]:
    """Names of k columns."""
    return (suffix,) if k == 1 else tuple(f"{suffix} {i}" for i in range(k))


def encoding_targets(y: np.ndarray, task: str, w: Array | None) -> Targets:
    """The outputs and their ranks, or whether a row is of a class.

    Of two classes one is enough. Outputs are divided by a power of two, so that squares of any
    of them stay finite; what is made of them is scaled afterwards. Where outputs have heavy tails
    a few rows decide the mean of a level, and the mean of the ranks says more. (A row's own target
    moves the ranks of the others by one place, which is all that it sees of it.)
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
    """The share of all weight that lies below each value, and half of that at it."""
    _, codes = np.unique(values, return_inverse=True)
    weight = np.bincount(codes, w).astype(float)
    return ((np.cumsum(weight) - weight / 2) / weight.sum())[codes]


def counts(w: Array | None) -> Array | None:
    """Weights as numbers of rows."""
    return w if w is None or (w == np.floor(w)).all() else w / w.mean()


@dataclass
class Draft:
    """An encoder that is being put together."""

    columns: list[ColumnEncoder] = field(default_factory=list)
    scales: list[Scale] = field(default_factory=list)

    def add(self, encoder: ColumnEncoder, scales: list[Scale]) -> None:
        """One more encoder of columns, if it writes any, and the scales of what it writes."""
        if scales:
            self.columns.append(encoder)
            self.scales += scales

    def finished(self, table: Table) -> Encoder:
        """The encoder."""
        return Encoder(table.names, table.shape[1], tuple(self.columns), stack(self.scales))


def fit_present(table: Table, Y: Targets, w: Array | None, rng: Generator) -> tuple[Encoder, Array]:
    """The encoder and the encoded table; all weights are positive."""
    of_kind = columns_by_kind(table)
    draft = Draft()
    draft.add(*fit_numbers(table, of_kind[NUMBERS], w))
    for j in of_kind[DATES]:
        draft.add(*fit_dates(table, j, w))
    many: dict[int, list[str | None]] = {}
    for j in of_kind[LEVELS]:
        texts = table.column(j).texts()
        levels = common_levels(texts, w)
        if len(levels) > MOST_INDICATORS:
            many[j] = levels
        else:
            draft.add(*fit_indicators(j, texts, levels, w))
    if not (draft.columns or many):
        # A model needs a column; this one is 0 for every row.
        draft.add(*nothing())
    encoder = draft.finished(table)
    encoded = encoder.encode(table)
    return add_targets(draft, table, many, encoded, Y, w, rng) if many else (encoder, encoded)


def columns_by_kind(table: Table) -> dict[str, list[int]]:
    """The numbers of the columns of every kind; those without any value are left out."""
    found: dict[str, list[int]] = {NUMBERS: [], DATES: [], LEVELS: [], NOTHING: []}
    for j in range(table.shape[1]):
        found[table.column(j).kind].append(j)
    return found


def add_targets(
    draft: Draft,
    table: Table,
    many: dict[int, list[str | None]],
    encoded: Array,
    Y: Targets,
    w: Array | None,
    rng: Generator,
) -> tuple[Encoder, Array]:
    """Target encodings of the columns with many levels, beside what there is."""
    codes = {j: level_codes(levels, table.column(j).texts()) for j, levels in many.items()}
    folds = dealt(
        np.column_stack([encoded, *(c / len(many[j]) for j, c in codes.items())]), Y.values, rng
    )
    blocks = [encoded]
    for j, levels in many.items():
        encoder, scales = fit_targets(j, levels, codes[j], Y.values, Y.suffixes, w)
        draft.add(encoder, scales)
        block = cross_fitted(codes[j], len(levels), Y.values, w, folds)
        stack(scales)(block)
        blocks.append(block)
    return draft.finished(table), np.hstack(blocks)


def dealt(x: Array, Y: Array, rng: Generator) -> Indices:
    """The fold of every row: neighbours in the order of their content go to different folds."""
    folds = np.empty(len(x), dtype=np.intp)
    folds[content_order(x, Y, rng)] = np.arange(len(x)) % N_FOLDS
    return folds
