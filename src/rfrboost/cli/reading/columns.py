"""Columns of a table as the estimators take them: numbers, dates, text and categories.

In a table of text, a column holds numbers, dates or truth values if every cell is one or is
missing; otherwise it holds text. Codes of equally many digits with leading zeros are text too.
Truth values are the numbers 1 and 0, as in a data frame. Whether a cell is a number does not depend
on the other cells, so a table that is read in blocks means the same as one that is read at once.
Parquet files have types, which are kept.

What is missing and what is a truth value is spelled as in pandas.read_csv, so that a model that was
fitted here predicts the same there, and the other way round.
"""

import re
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

from rfrboost.cli.console import CommandError, printable, say
from rfrboost.cli.signature import DATES, NUMBERS, TEXT, Held

Cells: TypeAlias = pa.ChunkedArray
Convert: TypeAlias = Callable[[Cells], Cells]

#: spellings of a missing value in any column, those of pandas.read_csv
MISSING = [
    *("", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A", "<NA>", "NULL", "null", "None"),
    *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
]
#: further spellings where the other cells are numbers or dates; among text they may be categories
MISSING_NUMBERS = ["none", "?", "-", "."]
#: the end of a time of day with a time zone
ZONED = r":\d{2}(\.\d+)?(Z|[+-]\d{2}(:?\d{2})?)$"
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
#: a zero before other digits: a code, such as a postcode, rather than a number
CODE = re.compile(r"0\d+")
COMMA_IN_NUMBER = re.compile(r"[+-]?[\d.]*,\d+")
#: truth values as pandas.read_csv knows them
TRUTH = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}
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


def to_truth(cells: Cells) -> Cells:
    """Truth values."""
    cells = missing_as_null(pc.utf8_trim_whitespace(cells), MISSING)
    return converted(cells, truth_values)


def truth_values(cells: Cells) -> Cells:
    """Text as truth values; Arrow's own conversion would accept 0 and 1 too."""
    words = pa.array(TRUTH, cells.type)
    if not pc.all(pc.or_kleene(pc.is_null(cells), pc.is_in(cells, value_set=words))).as_py():
        raise pa.ArrowInvalid("not a truth value")
    return pc.utf8_lower(cells).cast(pa.bool_())


def to_numbers(cells: Cells) -> Cells:
    """Numbers with a decimal point and perhaps an exponent, without separators of thousands."""
    cells = missing_as_null(pc.utf8_trim_whitespace(cells), MISSING + MISSING_NUMBERS)
    return converted(cells, lambda part: part.cast(pa.float64()))


def to_dates(cells: Cells) -> Cells:
    """Dates as in ISO 8601 (2024-12-31, 2024-12-31 23:59:59Z); other spellings are ambiguous."""
    cells = missing_as_null(pc.utf8_trim_whitespace(cells), MISSING + MISSING_NUMBERS)
    return converted(cells, to_times)


def to_numbers_or_truth(cells: Cells) -> Cells:
    """Numbers; in a column of numbers, truth values are 1 and 0."""
    cells = pc.utf8_trim_whitespace(cells)
    for word, value in TRUTH.items():
        number = pa.scalar(str(int(value)), cells.type)
        cells = pc.if_else(pc.equal(cells, word), number, cells)
    return to_numbers(cells)


#: what a column of text may hold, and how its cells are then converted
READ: tuple[tuple[str, Convert], ...] = (
    (NUMBERS, to_numbers),
    (DATES, to_dates),
    (NUMBERS, to_truth),
)
#: how cells of text are converted to what the column held in fit
CONVERT: dict[str, Convert] = {NUMBERS: to_numbers_or_truth, DATES: to_dates}


def recognised(cells: Cells) -> tuple[str, Cells]:
    """What a column of text holds, and its cells converted; an empty column holds text."""
    for kind, convert in READ:
        try:
            values = convert(cells)
        except BadCellError:
            continue
        if values.null_count < len(values):
            return kind, values
    return TEXT, as_written(cells)


def code_among(cells: Cells) -> str | None:
    """A cell with leading zeros, if all cells are digits of one width; otherwise None.

    Such columns are postcodes and article numbers. In a data frame they are text too.
    """
    present = as_written(cells).drop_null()
    zeros = present.filter(pc.match_substring_regex(present, rf"^{CODE.pattern}$"))
    if not len(zeros):
        return None
    code = str(zeros[0].as_py())
    alike = pc.match_substring_regex(present, rf"^[0-9]{{{len(code)}}}$")
    return code if pc.all(alike).as_py() else None


def as_levels(cells: Cells, levels: Set[str]) -> np.ndarray:
    """Text that is a level of the model, unchanged; other text as the value that is written in it.

    A data frame that a model was fitted on may have categories of numbers, truth values or dates.
    The model writes their levels in one way, whereas a file may have "1.0", "True" or "2024-01-31".
    Such a cell is passed as a value, which the model then writes in its own way.
    """
    texts = as_written(cells).to_pylist()
    known = {text: text if text is None else level_of(text, levels) for text in set(texts)}
    return np.array([*(known[text] for text in texts), None], dtype=object)[:-1]


def level_of(text: str, levels: Set[str]) -> Any:
    """The level that a cell is, or the number, truth value or date that is written in it."""
    if text in levels or (CODE.fullmatch(text) and (text.lstrip("0") or "0") not in levels):
        return text
    if text in TRUTH:
        # The command line of 0.1.0 made levels of truth values, in lower case.
        return text.lower() if text.lower() in levels else TRUTH[text]
    for convert in (to_numbers, to_dates):
        try:
            return convert(pa.chunked_array([pa.array([text])]))[0].as_py()
        except BadCellError:
            continue
    return text


def odd_cell(cells: Cells) -> BadCellError | None:
    """The first cell that is not a number, if most cells of the column are; otherwise None."""
    try:
        to_numbers(cells)
    except BadCellError as bad:
        present = as_written(cells).drop_null()
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
            # ``take`` and not a slice: up to Arrow 23 ``if_else`` with null reads slices wrongly.
            if fails(cells.take(pa.array(range(begin, begin + half))), convert):
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
    """A column of categories that are text, as text; columns of other types unchanged."""
    if types.is_dictionary(cells.type) and is_text(cells.type.value_type):
        return cells.cast(pa.string())
    if is_any(cells.type, (types.is_null, *TEXTUAL)):
        return cells.cast(pa.string())
    return cells


def column_values(cells: Cells, name: str) -> Any:
    """One column as pandas takes it."""
    if is_any(cells.type, (*NUMERIC, types.is_boolean)):
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


def training_frame(table: pa.Table, typed: bool, categorical: Sequence[str] = ()) -> pd.DataFrame:
    """The data frame to fit on; what a column holds is decided from all its cells.

    If the file has types (``typed``), text stays text; otherwise it may be numbers or dates, unless
    the column is among the ``categorical`` ones.
    """
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        cells = categories_as_text(column)
        if is_text(cells.type) and not typed and name not in categorical:
            code = code_among(column)
            kind, cells = (TEXT, as_written(column)) if code else recognised(column)
            if code:
                say(
                    f"Column {printable(name)!r} is text: its {len(code)} digits with leading "
                    f"zeros, such as {code!r}, are codes, not numbers."
                )
            elif kind == TEXT:
                warn_of_odd_cell(name, column)
        elif is_text(cells.type):
            cells = as_written(cells)
        columns[name] = column_values(cells, name)
    return pd.DataFrame(columns, copy=False)


def warn_of_odd_cell(name: str, cells: Cells) -> None:
    """Tell the user which cell makes text of a column whose cells are mostly numbers."""
    odd = odd_cell(cells)
    if odd is not None:
        say(
            f"Column {printable(name)!r} is text: most cells are numbers, but row "
            f"{odd.position + 1:,} contains {printable(odd.text)!r}."
        )


def prediction_frame(table: pa.Table, held: Mapping[str, Held], before: int) -> pd.DataFrame:
    """The data frame to predict; a cell that is not of the kind its column had in fit is an error.

    ``held`` has no entry for columns that the model does not use. ``before`` is the number of rows
    that were read before this block, for the row number in an error.
    """
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name not in held:
            columns[name] = np.full(table.num_rows, np.nan)
            continue
        cells = categories_as_text(column)
        if not is_text(cells.type):
            columns[name] = column_values(cells, name)
        elif held[name].kind == TEXT:
            columns[name] = as_levels(cells, held[name].levels)
        else:
            columns[name] = column_values(as_in_fit(cells, held[name].kind, name, before), name)
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
