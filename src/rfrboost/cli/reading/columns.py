"""Columns of a table as the estimators take them: numbers, dates, text and categories.

In a table of text, a column holds numbers or dates if every cell is one or is missing; otherwise
it holds text. Whether a cell is a number does not depend on the other cells, so a table that is
read in blocks means the same as one that is read at once. Parquet files have types, which are
kept.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

from rfrboost.cli.console import CommandError, printable, say
from rfrboost.cli.signature import DATES, NUMBERS, TEXT

Cells: TypeAlias = pa.ChunkedArray
Convert: TypeAlias = Callable[[Cells], Cells]

#: spellings of a missing value in any column
MISSING = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "<NA>"]
#: further spellings where the other cells are numbers or dates; among text they may be categories
MISSING_NUMBERS = ["None", "none", "?", "-", "."]
#: the end of a time of day with a time zone
ZONED = r":\d{2}(\.\d+)?(Z|[+-]\d{2}(:?\d{2})?)$"
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
COMMA_IN_NUMBER = re.compile(r"[+-]?[\d.]*,\d+")
TRUTH = r"^(?i:true|false)$"
# A column of text with at least this share of numbers was probably meant to hold numbers only.
MOSTLY = 0.5
#: Arrow's types of numbers and of text
NUMERIC = (types.is_integer, types.is_floating, types.is_decimal)
TEXTUAL = (types.is_string, types.is_large_string, types.is_string_view)


class BadCellError(Exception):
    """A cell that cannot be converted: its position, from 0, and its text."""

    def __init__(self, position: int, text: str) -> None:
        super().__init__(text)
        self.position = position
        self.text = text


# Cells of text.


def as_written(cells: Cells) -> Cells:
    """Text without spaces around it, null where missing."""
    return missing_as_null(pc.utf8_trim_whitespace(cells), MISSING)


def to_text(cells: Cells) -> Cells:
    """Text as written, but "true" and "false" in lower case."""
    cells = as_written(cells)
    return pc.if_else(pc.match_substring_regex(cells, TRUTH), pc.utf8_lower(cells), cells)


def to_numbers(cells: Cells) -> Cells:
    """Numbers with a decimal point and perhaps an exponent, without separators of thousands."""
    cells = missing_as_null(pc.utf8_trim_whitespace(cells), MISSING + MISSING_NUMBERS)
    return converted(cells, lambda part: part.cast(pa.float64()))


def to_dates(cells: Cells) -> Cells:
    """Dates as in ISO 8601 (2024-12-31, 2024-12-31 23:59:59Z); other spellings are ambiguous."""
    cells = missing_as_null(pc.utf8_trim_whitespace(cells), MISSING + MISSING_NUMBERS)
    return converted(cells, to_times)


CONVERT: dict[str, Convert] = {NUMBERS: to_numbers, DATES: to_dates, TEXT: to_text}


def recognised(cells: Cells) -> tuple[str, Cells]:
    """What a column of text holds, and its cells converted; an empty column holds text."""
    for kind in (NUMBERS, DATES):
        try:
            values = CONVERT[kind](cells)
        except BadCellError:
            continue
        if values.null_count < len(values):
            return kind, values
    return TEXT, to_text(cells)


def odd_cell(cells: Cells) -> BadCellError | None:
    """The first cell that is not a number, if most cells of the column are; otherwise None."""
    try:
        to_numbers(cells)
    except BadCellError as bad:
        present = to_text(cells).drop_null()
        known = pc.sum(pc.match_substring_regex(present, NUMBER)).as_py() or 0
        return bad if known >= MOSTLY * len(present) else None
    return None


def missing_as_null(cells: Cells, spellings: list[str]) -> Cells:
    """The cells, with null in place of these spellings of a missing value."""
    missing = pc.is_in(cells, value_set=pa.array(spellings, cells.type))
    return pc.if_else(missing, pa.scalar(None, cells.type), cells)


def to_times(cells: Cells) -> Cells:
    """Times in UTC; a time without a zone is taken to be in UTC."""
    nothing = pa.scalar(None, cells.type)
    zoned = pc.match_substring_regex(cells, ZONED)
    plain = pc.if_else(zoned, nothing, cells).cast(pa.timestamp("us"))
    moved = pc.if_else(zoned, cells, nothing).cast(pa.timestamp("us", "UTC"))
    return pc.coalesce(plain, moved.cast(pa.timestamp("us")))


def converted(cells: Cells, convert: Convert) -> Cells:
    """All cells converted; if one cannot be, the first such cell is found by bisection."""
    try:
        return convert(cells)
    except pa.ArrowInvalid:
        begin = 0
        size = len(cells)
        while size > 1:
            half = size // 2
            if fails(cells.slice(begin, half), convert):
                size = half
            else:
                begin += half
                size -= half
        raise BadCellError(begin, cells[begin].as_py()) from None


def fails(cells: Cells, convert: Convert) -> bool:
    """Whether any of these cells cannot be converted."""
    try:
        convert(cells)
    except pa.ArrowInvalid:
        return True
    return False


# Types of columns.


def is_any(column_type: pa.DataType, kinds: tuple[Any, ...]) -> bool:
    """Whether one of these tests of Arrow types holds."""
    return any(kind(column_type) for kind in kinds)


def is_text(column_type: pa.DataType) -> bool:
    """Whether cells are text."""
    return is_any(column_type, TEXTUAL)


def categories_as_text(cells: Cells) -> Cells:
    """A column with categories and truth values written as text; other types stay."""
    if types.is_dictionary(cells.type) and is_text(cells.type.value_type):
        return cells.cast(pa.string())
    if is_any(cells.type, (types.is_boolean, types.is_null, *TEXTUAL)):
        return cells.cast(pa.string())
    return cells


def column_values(cells: Cells, name: str) -> Any:
    """One column as pandas takes it."""
    if is_any(cells.type, NUMERIC):
        return cells.cast(pa.float64(), safe=False).to_numpy()
    if types.is_timestamp(cells.type):
        return cells.cast(pa.timestamp("us", cells.type.tz), safe=False).to_pandas()
    if types.is_date(cells.type):
        return cells.cast(pa.timestamp("us"), safe=False).to_pandas()
    if is_any(cells.type, (*TEXTUAL, types.is_dictionary, types.is_duration)):
        return cells.to_pandas()
    raise CommandError(
        f"Column {printable(name)!r} has type {cells.type}; a model takes numbers, dates, text "
        "and truth values. Leave the column out with --drop."
    )


# Data frames.


def training_frame(table: pa.Table, typed: bool) -> pd.DataFrame:
    """The data frame to fit on; what a column holds is decided from all its cells.

    If the file has types (``typed``), text stays text; otherwise it may be numbers or dates.
    """
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        cells = categories_as_text(column)
        if is_text(cells.type) and not typed:
            kind, cells = recognised(column)
            if kind == TEXT:
                warn_of_odd_cell(name, column)
        elif is_text(cells.type):
            cells = to_text(cells)
        columns[name] = column_values(cells, name)
    return pd.DataFrame(columns, copy=False)


def warn_of_odd_cell(name: str, cells: Cells) -> None:
    """Tell the user which cell makes a column categorical whose cells are mostly numbers."""
    odd = odd_cell(cells)
    if odd is not None:
        say(
            f"Column {printable(name)!r} is read as categories: most cells are numbers, but row "
            f"{odd.position + 1:,} contains {printable(odd.text)!r}."
        )


def prediction_frame(table: pa.Table, kinds: Mapping[str, str], before: int) -> pd.DataFrame:
    """The data frame to predict; a cell that is not of the kind its column had in fit is an error.

    ``kinds`` has no entry for columns that the model does not use. ``before`` is the number of
    rows that were read before this block, for the row number in an error.
    """
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in kinds:
            cells = categories_as_text(column)
            if is_text(cells.type):
                cells = as_in_fit(cells, kinds[name], name, before)
            columns[name] = column_values(cells, name)
        else:
            columns[name] = np.full(table.num_rows, np.nan)
    return pd.DataFrame(columns, copy=False)


def as_in_fit(cells: Cells, kind: str, name: str, before: int) -> Cells:
    """Text converted to the kind that its column had in fit."""
    try:
        return CONVERT[kind](cells)
    except BadCellError as bad:
        row = before + bad.position + 1
        remedy = "use --decimal comma" if COMMA_IN_NUMBER.fullmatch(bad.text) else "correct it"
        raise CommandError(
            f"Column {printable(name)!r} contained {kind} in fit, but row {row:,} contains "
            f"{printable(bad.text)!r}: {remedy}, or leave the cell empty."
        ) from bad
