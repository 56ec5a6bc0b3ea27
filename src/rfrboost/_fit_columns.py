"""Fitting the kinds of columns: an encoder, and a scale for every column that it writes.

What does not vary gets no column.
"""

from collections.abc import Sequence

import numpy as np

from rfrboost._encoders import (
    DATE_PARTS,
    ColumnEncoder,
    DateColumn,
    LevelColumn,
    NumberColumns,
    date_part,
    level_codes,
)
from rfrboost._levels import FEWEST_ROWS, indicators, target_means
from rfrboost._scaling import (
    Scale,
    fit_scale,
    in_order,
    indicator_scale,
    is_prepared,
    left_alone,
)
from rfrboost._table import Table
from rfrboost._typing import Array, Indices, frozen

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
