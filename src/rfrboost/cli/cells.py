"""What the cells of a column of text mean: numbers, dates or words.

A column is of numbers or dates if every cell is one or a hole. Whether a cell is a number does not
depend on the cells around it, so that a table read in blocks means the same as one read at once.
"""

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Cells: TypeAlias = pa.ChunkedArray
Convert: TypeAlias = Callable[[Cells], Cells]

NUMBERS, DATES, WORDS = "numbers", "dates", "words"
#: holes everywhere, and what may also stand for a hole where the other cells are numbers or dates
HOLES = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "<NA>"]
MORE_HOLES = ["None", "none", "?", "-", "."]
#: a time of day that says in which zone it is
ZONED = r":\d{2}(\.\d+)?(Z|[+-]\d{2}(:?\d{2})?)$"
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
TRUTH = r"^(?i:true|false)$"
# A column with at least this share of numbers was probably meant to have nothing else.
MOSTLY = 0.5


class BadCellError(Exception):
    """A cell that is not what its column holds: where it is, from 0, and what it says."""

    def __init__(self, place: int, text: str) -> None:
        super().__init__(text)
        self.place, self.text = place, text


def words(cells: Cells) -> Cells:
    """Text without spaces around it and with one spelling of true and false; null for holes."""
    cells = without(pc.utf8_trim_whitespace(cells), HOLES)
    return pc.if_else(pc.match_substring_regex(cells, TRUTH), pc.utf8_lower(cells), cells)


def numbers(cells: Cells) -> Cells:
    """Numbers as programs write them: a point, perhaps an exponent, nothing between thousands."""
    cells = without(pc.utf8_trim_whitespace(cells), HOLES + MORE_HOLES)
    return converted(cells, lambda part: part.cast(pa.float64()))


def dates(cells: Cells) -> Cells:
    """Dates as in ISO 8601 (2024-12-31, 2024-12-31 23:59:59Z), the only unambiguous spelling."""
    cells = without(pc.utf8_trim_whitespace(cells), HOLES + MORE_HOLES)
    return converted(cells, to_times)


CONVERT: dict[str, Convert] = {NUMBERS: numbers, DATES: dates, WORDS: words}


def recognised(cells: Cells) -> tuple[str, Cells]:
    """What a column holds, and its cells as that; one without anything in it holds words."""
    for kind in (NUMBERS, DATES):
        try:
            values = CONVERT[kind](cells)
        except BadCellError:
            continue
        if values.null_count < len(values):
            return kind, values
    return WORDS, words(cells)


def odd_one(cells: Cells) -> BadCellError | None:
    """The first word in a column of words that are mostly numbers, if it is one."""
    try:
        numbers(cells)
    except BadCellError as bad:
        present = words(cells).drop_null()
        known = pc.sum(pc.match_substring_regex(present, NUMBER)).as_py() or 0
        return bad if known >= MOSTLY * len(present) else None
    return None


def without(cells: Cells, holes: list[str]) -> Cells:
    """The cells, null where they stand for a hole."""
    hole = pc.is_in(cells, value_set=pa.array(holes, cells.type))
    return pc.if_else(hole, pa.scalar(None, cells.type), cells)


def to_times(cells: Cells) -> Cells:
    """Times in UTC; one without a zone is taken to be in UTC."""
    nothing = pa.scalar(None, cells.type)
    zoned = pc.match_substring_regex(cells, ZONED)
    plain = pc.if_else(zoned, nothing, cells).cast(pa.timestamp("us"))
    moved = pc.if_else(zoned, cells, nothing).cast(pa.timestamp("us", "UTC"))
    return pc.coalesce(plain, moved.cast(pa.timestamp("us")))


def converted(cells: Cells, convert: Convert) -> Cells:
    """All cells converted; the first one that cannot be is found by halving."""
    try:
        return convert(cells)
    except pa.ArrowInvalid:
        begin, size = 0, len(cells)
        while size > 1:
            half = size // 2
            if fails(cells.slice(begin, half), convert):
                size = half
            else:
                begin, size = begin + half, size - half
        raise BadCellError(begin, cells[begin].as_py()) from None


def fails(cells: Cells, convert: Convert) -> bool:
    """Whether any of these cells cannot be converted."""
    try:
        convert(cells)
    except pa.ArrowInvalid:
        return True
    return False
