"""Preprocessing as ONNX operators: from the columns of a table to the numbers a network takes.

Follows :class:`rfrboost._tables.encoder.Encoder`. Columns of dates have been refused before
(:mod:`rfrboost._export.onnx.inputs`), because ONNX has no type for them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rfrboost._export.onnx.graph import BOOL, DOUBLE, LONG, TEXT, Graph, Value, row
from rfrboost._export.onnx.inputs import MATRIX, Inputs
from rfrboost._tables.encoder import (
    LARGEST_QUOTIENT,
    MARGIN,
    REACH,
    Encoder,
    LevelColumn,
    NumberColumns,
    Scaling,
)

SIDE_BY_SIDE = {"axis": 1}


class Columns:
    """The inputs of a graph, by the index of the column."""

    def __init__(self, graph: Graph, inputs: Inputs, dtype: np.dtype) -> None:
        self.graph = graph
        self.inputs = inputs
        self._matrix: Value | None = None
        self._columns: dict[int, Value] = {}
        if inputs.is_matrix:
            doc = "numbers; NaN means missing"
            self._matrix = graph.input(MATRIX, dtype, inputs.n_columns, doc)
            return
        for j in sorted({*inputs.numbers, *inputs.missing_text}):
            missing = inputs.missing_text.get(j)
            is_number = missing is None
            doc = "number; NaN means missing" if is_number else f"text; {missing!r} means missing"
            kind = dtype if is_number else TEXT
            self._columns[j] = graph.input(inputs.name(j), kind, 1, doc)

    def numbers(self, columns: Sequence[int]) -> Value:
        """Columns of numbers side by side, in double precision."""
        if self._matrix is not None:
            matrix = self.graph.cast(self._matrix, DOUBLE)
            if list(columns) == list(range(self.inputs.n_columns)):
                return matrix
            which = np.array(columns, dtype=np.int64)
            return self.graph.op("Gather", matrix, which, attributes=SIDE_BY_SIDE)
        values = [self.graph.cast(self._columns[j], DOUBLE) for j in columns]
        return side_by_side(self.graph, values)

    def text(self, column: int) -> Value:
        """A column of categories."""
        return self._columns[column]


def side_by_side(graph: Graph, values: list[Value]) -> Value:
    """One matrix whose columns are those of these values, which have equally many rows."""
    return values[0] if len(values) == 1 else graph.op("Concat", *values, attributes=SIDE_BY_SIDE)


def encoded(graph: Graph, encoder: Encoder, columns: Columns) -> Value:
    """The encoded table, (n, width of the encoder)."""
    parts = [part for c in encoder.columns for part in ENCODERS[type(c)](graph, c, columns)]
    return scaled(graph, encoder.scaling, side_by_side(graph, parts))


def number_columns(graph: Graph, encoder: NumberColumns, columns: Columns) -> list[Value]:
    """The numbers, then an indicator for each column in which values were missing in ``fit``."""
    parts = []
    if encoder.columns:
        parts.append(columns.numbers(encoder.columns))
    if encoder.holes:
        missing = graph.op("IsNaN", columns.numbers(encoder.holes), dtype=BOOL)
        parts.append(graph.cast(missing, DOUBLE))
    return parts


def level_column(graph: Graph, encoder: LevelColumn, columns: Columns) -> list[Value]:
    """The row of values of each level; the last row for all other levels."""
    missing = columns.inputs.missing_text[encoder.column]
    levels = [missing if level is None else level for level in encoder.levels]
    codes = {
        "keys_strings": levels,
        "values_int64s": list(range(len(levels))),
        "default_int64": len(levels),
    }
    code = graph.op("LabelEncoder", columns.text(encoder.column), dtype=LONG, attributes=codes)
    flat = graph.op("Reshape", code, np.array([-1]))
    return [graph.op("Gather", graph.constant(encoder.values), flat, attributes={"axis": 0})]


def scaled(graph: Graph, scaling: Scaling, x: Value) -> Value:
    """Missing values filled, columns clipped and standardised, outliers compressed."""
    x = graph.op("Where", graph.op("IsNaN", x, dtype=BOOL), row(scaling.fill), x, dtype=DOUBLE)
    if scaling.low is not None and scaling.high is not None:
        x = graph.op("Min", graph.op("Max", x, row(scaling.low)), row(scaling.high))
    t = graph.op("Div", graph.op("Sub", x, row(scaling.start)), row(scaling.width))
    inside = graph.op("Clip", t, np.array(-MARGIN), np.array(1 + MARGIN))
    beyond = graph.op("Sub", t, inside)
    size = graph.op("Min", graph.op("Abs", beyond), row(LARGEST_QUOTIENT))
    # ONNX has no log1p. log(1 + b) loses digits of b only where b is far below 1, and there
    # ``inside`` is the larger part of the sum.
    logarithm = graph.op("Log", graph.op("Add", graph.op("Div", size, row(REACH)), row(1.0)))
    compressed = graph.op("Mul", graph.op("Sign", beyond), graph.op("Mul", logarithm, row(REACH)))
    squashed = graph.op("Add", inside, compressed)
    return graph.op("Mul", graph.op("Sub", squashed, row(scaling.mean)), row(scaling.gain))


#: the operators of each kind of column
ENCODERS: dict[type, Callable[[Graph, Any, Columns], list[Value]]] = {
    NumberColumns: number_columns,
    LevelColumn: level_column,
}
