"""Columns as the estimators take them: a data frame of numbers, dates, words and categories."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.types as types

from rfrboost.cli.cells import CONVERT, WORDS, BadCellError, Cells, kind_of, odd_one
from rfrboost.cli.console import say
from rfrboost.cli.errors import CommandError, printable

#: Arrow's types of numbers
NUMERIC = (types.is_integer, types.is_floating, types.is_decimal)
TEXTUAL = (types.is_string, types.is_large_string, types.is_string_view)


def is_any(column_type: pa.DataType, kinds: tuple[Any, ...]) -> bool:
    """Whether a type is of one of these kinds."""
    return any(kind(column_type) for kind in kinds)


def plain(cells: Cells) -> Cells:
    """A column with categories and truth values spelled out as text; numbers stay numbers."""
    if types.is_dictionary(cells.type) and is_any(cells.type.value_type, TEXTUAL):
        return cells.cast(pa.string())
    if is_any(cells.type, (types.is_boolean, types.is_null, *TEXTUAL)):
        return cells.cast(pa.string())
    return cells


def training_frame(table: pa.Table, typed: bool) -> pd.DataFrame:
    """The frame to fit on; what a column holds is found out from all its cells.

    Text is text if the file has types of its own (``typed``), and may be numbers otherwise.
    """
    columns = {}
    for name in table.column_names:
        cells = plain(table[name])
        kind = WORDS if typed else kind_of(cells)
        if kind == WORDS and not typed:
            warn_of_odd_one(name, cells)
        columns[name] = series(cells, kind, name, 0)
    return pd.DataFrame(columns)


def prediction_frame(table: pa.Table, kinds: Mapping[str, str], before: int) -> pd.DataFrame:
    """The frame to predict: columns hold what they held in fit, or a sentence says where not.

    ``before`` counts the rows that came before these.
    """
    columns = {
        name: series(plain(table[name]), kinds.get(name, WORDS), name, before)
        for name in table.column_names
    }
    return pd.DataFrame(columns)


def is_text(column_type: pa.DataType) -> bool:
    """Whether cells are text."""
    return is_any(column_type, TEXTUAL)


def series(cells: Cells, kind: str, name: str, before: int) -> pd.Series:
    """One column; ``kind`` is what its cells mean if they are text."""
    if is_text(cells.type):
        try:
            return CONVERT[kind](cells).to_pandas()
        except BadCellError as bad:
            row = before + bad.place + 1
            raise CommandError(
                f"Column {printable(name)!r} held {kind} in fit, but row {row:,} holds "
                f"{printable(bad.text)!r}: correct it, or leave the cell empty."
            ) from bad
    if is_any(cells.type, NUMERIC):
        return cells.cast(pa.float64(), safe=False).to_pandas()
    if types.is_date(cells.type) or types.is_timestamp(cells.type):
        zone = getattr(cells.type, "tz", None)
        return cells.cast(pa.timestamp("us", zone), safe=False).to_pandas()
    if types.is_dictionary(cells.type) or types.is_duration(cells.type):
        return cells.to_pandas()
    raise CommandError(
        f"Column {printable(name)!r} has type {cells.type}; a model takes numbers, dates, text "
        "and truth values. Leave it out with --drop."
    )


def warn_of_odd_one(name: str, cells: Cells) -> None:
    """Say aloud that a single word makes categories of a column of numbers."""
    odd = odd_one(cells)
    if odd is not None:
        say(
            f"Column {printable(name)!r} is read as categories: most cells are numbers, but row "
            f"{odd.place + 1:,} holds {printable(odd.text)!r}."
        )
