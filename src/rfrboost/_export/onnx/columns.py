"""Columns in, encoded numbers out: preprocessing as ONNX operators."""

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
    """The inputs of a graph, by the number of the column."""

    def __init__(self, graph: Graph, inputs: Inputs, dtype: np.dtype) -> None:
        self.graph, self.inputs = graph, inputs
        self._matrix: Value | None = None
        self._columns: dict[int, Value] = {}
        if inputs.is_matrix:
            self._matrix = graph.input(MATRIX, dtype, inputs.n_columns, "numbers; NaN is a hole")
            return
        for j in sorted({*inputs.numbers, *inputs.holes}):
            hole = inputs.holes.get(j)
            doc = "number; NaN is a hole" if hole is None else f"text; {hole!r} is a hole"
            kind = dtype if hole is None else TEXT
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
    """Values of the same rows in one matrix."""
    return values[0] if len(values) == 1 else graph.op("Concat", *values, attributes=SIDE_BY_SIDE)


def encoded(graph: Graph, encoder: Encoder, columns: Columns) -> Value:
    """What the encoder makes of a table."""
    parts = [part for c in encoder.columns for part in ENCODERS[type(c)](graph, c, columns)]
    return scaled(graph, encoder.scaling, side_by_side(graph, parts))


def number_columns(graph: Graph, encoder: NumberColumns, columns: Columns) -> list[Value]:
    """Numbers as they are, then whether some of them are missing."""
    parts = []
    if encoder.columns:
        parts.append(columns.numbers(encoder.columns))
    if encoder.holes:
        missing = graph.op("IsNaN", columns.numbers(encoder.holes), dtype=BOOL)
        parts.append(graph.cast(missing, DOUBLE))
    return parts


def level_column(graph: Graph, encoder: LevelColumn, columns: Columns) -> list[Value]:
    """Every level's row of values; the last row for all others."""
    hole = columns.inputs.holes[encoder.column]
    levels = [hole if level is None else level for level in encoder.levels]
    codes = {
        "keys_strings": levels,
        "values_int64s": list(range(len(levels))),
        "default_int64": len(levels),
    }
    code = graph.op("LabelEncoder", columns.text(encoder.column), dtype=LONG, attributes=codes)
    flat = graph.op("Reshape", code, np.array([-1]))
    return [graph.op("Gather", graph.constant(encoder.values), flat, attributes={"axis": 0})]


def scaled(graph: Graph, scaling: Scaling, x: Value) -> Value:
    """Holes filled, the bulk standardised, what lies far out drawn in by a logarithm."""
    x = graph.op("Where", graph.op("IsNaN", x, dtype=BOOL), row(scaling.fill), x, dtype=DOUBLE)
    t = graph.op("Div", graph.op("Sub", x, row(scaling.start)), row(scaling.width))
    inside = graph.op("Clip", t, np.array(-MARGIN), np.array(1 + MARGIN))
    beyond = graph.op("Sub", t, inside)
    size = graph.op("Min", graph.op("Abs", beyond), row(LARGEST_QUOTIENT))
    # log(1 + b) loses digits of b only where b is far below 1, and inside is not.
    logarithm = graph.op("Log", graph.op("Add", graph.op("Div", size, row(REACH)), row(1.0)))
    drawn_in = graph.op("Mul", graph.op("Sign", beyond), graph.op("Mul", logarithm, row(REACH)))
    squashed = graph.op("Add", inside, drawn_in)
    return graph.op("Mul", graph.op("Sub", squashed, row(scaling.mean)), row(scaling.gain))


#: how each kind of column is written; dates have been refused
ENCODERS: dict[type, Callable[[Graph, Any, Columns], list[Value]]] = {
    NumberColumns: number_columns,
    LevelColumn: level_column,
}
