"""The inputs of an exported model: one tensor for each column of a data frame, or one matrix.

Numeric columns are numbers, NaN where a value is missing. Categories are text, whatever type they
had, and a missing value is a text that is no level (usually the empty text). Columns that the model
does not use are not inputs.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np

from rfrboost._estimators.fitted import Inputs as ModelInputs
from rfrboost._tables.encoder import DateColumn, Encoder, LevelColumn, NumberColumns
from rfrboost._tables.spellings import SpelledColumn
from rfrboost._tables.table import Table, read_table
from rfrboost._tables.words import TextColumn

#: the name of the only input of a model whose columns have no names
MATRIX = "X"

#: texts that may stand for a missing value; a column uses the first that is not one of its levels,
#: and a numbered one if all of them are
MISSING_TEXTS = ("", "(missing)", "(no value)", "(hole)")


@dataclass(frozen=True)
class Inputs:
    """Which columns are fed as numbers and which as text.

    Parameters
    ----------
    names
        The names of all columns, or None if they have none.
    n_columns
        The number of columns of the table.
    numbers
        The positions of the columns that are fed as numbers.
    missing_text
        For each column that is fed as text: the text that stands for a missing value.
    spelled
        The columns of numbers that are written as text in the table.
    """

    names: tuple[str, ...] | None
    n_columns: int
    numbers: tuple[int, ...]
    missing_text: Mapping[int, str]
    spelled: tuple[SpelledColumn, ...] = ()

    @property
    def is_matrix(self) -> bool:
        """Whether all columns come as one matrix."""
        return self.names is None and not self.missing_text

    def name(self, column: int) -> str:
        """The name of a column's input: the name of the column, if ONNX allows it."""
        if self.names is None:
            return f"x{column}"
        return checked_name(self.names[column]) or unnamed(self.names)

    @property
    def all_names(self) -> list[str]:
        """The inputs' names, in the order of the columns."""
        used = sorted({*self.numbers, *self.missing_text})
        return [MATRIX] if self.is_matrix else [self.name(j) for j in used]

    def feed(self, X: Any, dtype: np.dtype) -> dict[str, np.ndarray]:
        """The inputs by name, for the rows of a table; numbers have the type ``dtype``."""
        table = read_table(X).spelled(self.spelled)
        if self.is_matrix:
            return {MATRIX: matrix(table, dtype)}
        numbers = {self.name(j): table.number(j).astype(dtype)[:, None] for j in self.numbers}
        texts = {
            self.name(j): texts_of(table, j, missing) for j, missing in self.missing_text.items()
        }
        return {**numbers, **texts}


def checked_name(name: str) -> str:
    """A column's name, if it can be written to a file."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"The column {name!r} has a name that is not valid Unicode, which ONNX cannot hold: "
            "rename it and fit the model again."
        ) from error
    return name


def unnamed(names: tuple[str, ...]) -> str:
    """A name that no column has, for the column whose name is empty: ONNX has no empty names."""
    return free_text(("(no name)",), names)


def free_text(texts: tuple[str, ...], taken: Collection[str | None]) -> str:
    """The first of some texts that is not taken; if all are, the last with a number."""
    numbered = (f"{texts[-1]} {i}" for i in count(2))
    return next(text for text in chain(texts, numbered) if text not in taken)


def matrix(table: Table, dtype: np.dtype) -> np.ndarray:
    """All columns of a numeric table as one array."""
    return np.column_stack([table.column(j).numbers() for j in range(table.shape[1])]).astype(dtype)


def texts_of(table: Table, column: int, missing: str) -> np.ndarray:
    """A column of categories as an array (n, 1) of text."""
    texts = [missing if text is None else text for text in table.column(column).texts()]
    return np.array(texts, dtype=object)[:, None]


def inputs_of(columns: ModelInputs) -> Inputs:
    """The inputs of a model that was fitted on these columns."""
    encoder = columns.encoder
    n_columns = columns.n_columns
    if encoder is None:
        names = None if columns.names is None else tuple(map(str, columns.names))
        return Inputs(names, n_columns, tuple(range(n_columns)), {})
    numbers: set[int] = set()
    missing_text: dict[int, str] = {}
    for column in encoder.columns:
        KINDS[type(column)](encoder, column, numbers, missing_text)
    spelled = encoder.spelled or ()
    return Inputs(encoder.names, n_columns, tuple(sorted(numbers)), missing_text, spelled)


def number_columns(
    encoder: Encoder, column: NumberColumns, numbers: set[int], missing_text: dict[int, str]
) -> None:
    """Add numeric columns to ``numbers``."""
    numbers.update(column.sources)


def level_column(
    encoder: Encoder, column: LevelColumn, numbers: set[int], missing_text: dict[int, str]
) -> None:
    """Add a column of categories to ``missing_text``.

    A column without levels is refused: it stands for a table in which no column varies.
    """
    if not column.levels:
        raise ValueError(
            "The model does not use any column, because none of them varied in fit, so an ONNX "
            "model would have no input. Use predict, which gives a constant."
        )
    missing_text[column.column] = free_text(MISSING_TEXTS, column.levels)


def date_column(
    encoder: Encoder, column: DateColumn, numbers: set[int], missing_text: dict[int, str]
) -> None:
    """Refuse a column of dates."""
    raise ValueError(
        f"Column {label(encoder, column.column)} holds dates, for which ONNX has no type. Convert "
        "them to numbers before fit, for example days since a date, or drop the column."
    )


def text_column(
    encoder: Encoder, column: TextColumn, numbers: set[int], missing_text: dict[int, str]
) -> None:
    """Refuse a column of free text."""
    raise ValueError(
        f"Column {label(encoder, column.column)} holds free text, whose words are not found in the "
        "same way everywhere ONNX models run. Drop the column, or make numbers of it before fit."
    )


def label(encoder: Encoder, column: int) -> str:
    """A column in an error message."""
    return str(column) if encoder.names is None else repr(encoder.names[column])


#: the function that adds a column of each kind to the inputs
KINDS: dict[type, Callable[[Encoder, Any, set[int], dict[int, str]], None]] = {
    NumberColumns: number_columns,
    LevelColumn: level_column,
    DateColumn: date_column,
    TextColumn: text_column,
}
