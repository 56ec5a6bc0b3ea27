"""What an exported model is fed with: one tensor a column of a data frame, or one matrix.

Numbers are numbers, NaN for holes; categories are text, whatever they were, and a hole is text
that no level is (empty, as a rule). Columns that the model does not use are no inputs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfrboost._estimators.fitted import Inputs as ModelInputs
from rfrboost._tables.encoder import DateColumn, Encoder, LevelColumn, NumberColumns
from rfrboost._tables.table import Table, read_table

#: the name of the one input where columns have no names
MATRIX = "X"


#: texts for holes; the first that is not a level
HOLES = ("", "(missing)", "(no value)", "(hole)")


@dataclass(frozen=True)
class Inputs:
    """Which columns are fed as numbers, which as text and how those call a hole.

    ``names`` are the names of all columns, or None where they have none.
    """

    names: tuple[str, ...] | None
    n_columns: int
    numbers: tuple[int, ...]
    holes: Mapping[int, str]

    @property
    def is_matrix(self) -> bool:
        """Whether all columns come as one matrix."""
        return self.names is None and not self.holes

    def name(self, column: int) -> str:
        """What the input of a column is called."""
        return f"x{column}" if self.names is None else self.names[column]

    @property
    def all_names(self) -> list[str]:
        """The inputs' names, in the order of the columns."""
        used = sorted({*self.numbers, *self.holes})
        return [MATRIX] if self.is_matrix else [self.name(j) for j in used]

    def feed(self, X: Any, dtype: np.dtype) -> dict[str, np.ndarray]:
        """A table as the inputs of the model."""
        table = read_table(X)
        if self.is_matrix:
            return {MATRIX: matrix(table, dtype)}
        numbers = {self.name(j): table.number(j).astype(dtype)[:, None] for j in self.numbers}
        texts = {self.name(j): texts_of(table, j, hole) for j, hole in self.holes.items()}
        return {**numbers, **texts}


def matrix(table: Table, dtype: np.dtype) -> np.ndarray:
    """All columns, side by side."""
    return np.column_stack([table.column(j).numbers() for j in range(table.shape[1])]).astype(dtype)


def texts_of(table: Table, column: int, hole: str) -> np.ndarray:
    """A column of categories as text."""
    texts = [hole if text is None else text for text in table.column(column).texts()]
    return np.array(texts, dtype=object)[:, None]


def inputs_of(columns: ModelInputs) -> Inputs:
    """The inputs of a model that was fitted on these columns."""
    encoder = columns.encoder
    n_columns = columns.n_columns
    if encoder is None:
        names = None if columns.names is None else tuple(map(str, columns.names))
        return Inputs(names, n_columns, tuple(range(n_columns)), {})
    numbers: set[int] = set()
    holes: dict[int, str] = {}
    for column in encoder.columns:
        KINDS[type(column)](encoder, column, numbers, holes)
    return Inputs(encoder.names, n_columns, tuple(sorted(numbers)), holes)


def number_columns(
    encoder: Encoder, column: NumberColumns, numbers: set[int], holes: dict[int, str]
) -> None:
    """Columns of numbers are inputs of their own."""
    numbers.update(column.sources)


def level_column(
    encoder: Encoder, column: LevelColumn, numbers: set[int], holes: dict[int, str]
) -> None:
    """A column of categories; without levels it stands for a table in which nothing varies."""
    if not column.levels:
        raise ValueError("The model does not use any column, so that ONNX has nothing to be fed.")
    holes[column.column] = next(text for text in HOLES if text not in column.levels)


def date_column(
    encoder: Encoder, column: DateColumn, numbers: set[int], holes: dict[int, str]
) -> None:
    """Dates, which ONNX does not have."""
    label = column.column if encoder.names is None else repr(encoder.names[column.column])
    raise ValueError(
        f"Column {label} holds dates, for which ONNX has no type. Make numbers of them before fit, "
        "for example days since a date, or drop the column."
    )


KINDS: dict[type, Callable[[Encoder, Any, set[int], dict[int, str]], None]] = {
    NumberColumns: number_columns,
    LevelColumn: level_column,
    DateColumn: date_column,
}
