"""Columns as the estimators take them: a data frame of numbers, dates, words and categories."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.types as types

from rfrboost.cli.cells import CONVERT, WORDS, BadCellError, Cells, odd_one, recognised, words
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
    for name, column in zip(table.column_names, table.columns, strict=True):
        cells = plain(column)
        if is_text(cells.type) and not typed:
            kind, cells = recognised(column)
            if kind == WORDS:
                warn_of_odd_one(name, column)
        elif is_text(cells.type):
            cells = words(cells)
        columns[name] = values(cells, name)
    return pd.DataFrame(columns, copy=False)


def prediction_frame(table: pa.Table, kinds: Mapping[str, str], before: int) -> pd.DataFrame:
    """The frame to predict: columns hold what they held in fit, or a sentence says where not.

    A column without a kind is one that the model does not look at. ``before`` counts the rows that
    came before these.
    """
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in kinds:
            cells = plain(column)
            if is_text(cells.type):
                cells = as_in_fit(cells, kinds[name], name, before)
            columns[name] = values(cells, name)
        else:
            columns[name] = np.full(table.num_rows, np.nan)
    return pd.DataFrame(columns, copy=False)


def as_in_fit(cells: Cells, kind: str, name: str, before: int) -> Cells:
    """Text as what its column held in fit."""
    try:
        return CONVERT[kind](cells)
    except BadCellError as bad:
        row = before + bad.place + 1
        raise CommandError(
            f"Column {printable(name)!r} held {kind} in fit, but row {row:,} holds "
            f"{printable(bad.text)!r}: correct it, or leave the cell empty."
        ) from bad


def is_text(column_type: pa.DataType) -> bool:
    """Whether cells are text."""
    return is_any(column_type, TEXTUAL)


def values(cells: Cells, name: str) -> Any:
    """One column as pandas takes it."""
    if is_any(cells.type, NUMERIC):
        return cells.cast(pa.float64(), safe=False).to_numpy()
    if types.is_date(cells.type) or types.is_timestamp(cells.type):
        zone = getattr(cells.type, "tz", None)
        return cells.cast(pa.timestamp("us", zone), safe=False).to_pandas()
    if is_any(cells.type, (*TEXTUAL, types.is_dictionary, types.is_duration)):
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
