"""Tables of delimited text, read strictly, with the separator and the decimal sign detected.

Both are detected from the first lines. A row with too many or too few cells, a quote that never
closes and bytes that are not text are errors that name the line: guessing what was meant could
give predictions for the wrong rows. Rows that would fill the memory are refused while they are
read.

Where the decimal sign is a comma, the cells of columns of numbers are rewritten with a decimal
point as they are read ("1.234,56" becomes "1234.56"), so that all other code sees points only.
"""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

import pyarrow as pa
import pyarrow.compute as pc

from rfrboost.cli.console import CommandError, counted, printable, say
from rfrboost.cli.reading.columns import MISSING, MISSING_NUMBERS
from rfrboost.cli.reading.streams import RowLines, bounded_lines
from rfrboost.cli.request import Source

#: the first bytes by which a text file says that it is UTF-16
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
#: the separators that are detected; of those that fit equally well, the first is taken
SEPARATORS = (",", ";", "\t", "|")
#: the first line by which Excel tells itself the separator
EXCEL_SEPARATOR = re.compile(r"sep=(.)\r?\n?", re.IGNORECASE)
#: the decimal signs
POINT = "."
COMMA = ","
#: numbers with a decimal comma, perhaps with points between thousands; and the other way round
COMMA_NUMBER = re.compile(r"[+-]?(([1-9]\d{0,2}(\.\d{3})+|\d+)(,\d*)?|,\d+)([eE][+-]?\d+)?")
POINT_NUMBER = re.compile(r"[+-]?(([1-9]\d{0,2}(,\d{3})+|\d+)(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
#: a sign between one to three digits and exactly three digits: it may separate thousands
PERHAPS_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
NOT_NUMBERS = {*MISSING, *MISSING_NUMBERS}
# The most lines and characters by which the separator and the decimal sign are detected.
LINES_AHEAD = 1000
CHARACTERS_AHEAD = 2**20


@dataclass(frozen=True)
class Evidence:
    """What a column's first cells say about its decimal sign.

    ``either``: all are numbers if the sign is a comma (whole numbers are numbers with either sign).
    ``comma``: one of them has a comma. ``sure_comma`` and ``sure_point``: all are numbers with that
    sign, and in one of them it cannot separate thousands.
    """

    either: bool
    comma: bool
    sure_comma: bool
    sure_point: bool


class DelimitedText:
    """A table as text: ``names`` are those of its columns; blocks of rows follow."""

    def __init__(self, stream: io.BufferedReader, inside: str, source: Source) -> None:
        self.name: str = source.name
        self.names: list[str] = []
        lines = text_lines(stream, self.name)
        ahead = first_lines(lines)
        if not ahead:
            raise CommandError(f"{self.name} is empty.")
        excel = EXCEL_SEPARATOR.fullmatch(ahead[0])
        expected = "\t" if is_tabbed(inside) else ","
        if source.separator is not None:
            separator = source.separator
        elif excel:
            separator = excel[1]
        else:
            separator = expected if expected == "\t" else detected_separator(ahead)
        if excel:
            del ahead[0]
        self.commas: set[int] = comma_columns(sample(ahead, separator), separator, source.decimal)
        if separator != expected or self.commas:
            signs = ", decimal comma" if self.commas else ""
            say(f"Read {self.name}: separator {spelled(separator)}{signs}.")
        self.lines: RowLines = RowLines(chain(ahead, lines), self.name)
        self.rows = csv.reader(self.lines, delimiter=separator, strict=True, skipinitialspace=True)
        self.names = [cell.strip() for cell in next(self._checked(), [])]

    def blocks(self, rows: int, columns: list[str], verbatim: list[str]) -> Iterator[pa.Table]:
        """Blocks of at most ``rows`` rows, every cell as text; ``verbatim`` is never rewritten."""
        checked = self._checked()
        place_of = {name: place for place, name in enumerate(self.names)}
        places = [place_of[name] for name in [*columns, *verbatim]]
        before = 0
        while block := list(islice(checked, rows)):
            cells = list(zip(*block, strict=True))
            arrays = [pa.array(cells[place], pa.string()) for place in places]
            for k, place in enumerate(places[: len(columns)]):
                if place in self.commas:
                    arrays[k] = self._with_points(arrays[k], place, before)
            yield pa.Table.from_arrays(arrays, names=[self.names[place] for place in places])
            before += len(block)

    def _with_points(self, cells: pa.Array, place: int, before: int) -> pa.Array:
        """Numbers with a decimal point; one that has a point already would be ambiguous."""
        cells = pc.utf8_trim_whitespace(cells)
        known = pc.match_substring_regex(cells, f"^{COMMA_NUMBER.pattern}$")
        wrong = pc.and_(
            pc.match_substring_regex(cells, f"^{POINT_NUMBER.pattern}$"),
            pc.invert(pc.or_(known, pc.is_in(cells, value_set=pa.array(sorted(NOT_NUMBERS))))),
        )
        if pc.any(wrong).as_py():
            position = pc.index(wrong, True).as_py()
            raise CommandError(
                f"Column {printable(self.names[place])!r} has decimal commas, but row "
                f"{before + position + 1:,} contains {printable(cells[position].as_py())!r}: "
                "correct it, or use --decimal point."
            )
        plain = pc.replace_substring(pc.replace_substring(cells, ".", ""), ",", ".")
        missing = pc.is_in(cells, value_set=pa.array(sorted(NOT_NUMBERS)))
        return pc.if_else(pc.and_(known, pc.invert(missing)), plain, cells)

    def _checked(self) -> Iterator[list[str]]:
        """Rows with as many cells as the header; empty lines are skipped."""
        width = len(self.names)
        try:
            for row in self.rows:
                self.lines.row_ended()
                if width and row and len(row) != width:
                    raise CommandError(
                        f"Line {self.rows.line_num:,} of {self.name} has "
                        f"{counted(len(row), 'cell')}, but the header has {width:,}."
                    )
                if row:
                    yield row
        except csv.Error as error:
            raise CommandError(
                f"Line {self.rows.line_num:,} of {self.name} cannot be read: {reason(error)}."
            ) from error


def reason(error: csv.Error) -> str:
    """What is wrong with a line, in words that do not need the name of the separator."""
    if "end of data" in str(error):
        return "a quote is never closed"
    if "expected after" in str(error):
        return "a closing quote is followed by other text"
    return printable(str(error))


def is_tabbed(name: str) -> bool:
    """Whether the name of a file says that tabs separate its cells."""
    return name.lower().removesuffix(".gz").endswith((".tsv", ".tab"))


# Lines.


def text_lines(stream: io.BufferedReader, name: str) -> Iterator[str]:
    """Lines of UTF-8 text, or of UTF-16 text with a byte order mark."""
    if stream.peek(2)[:2] not in UTF_16_MARKS:
        yield from utf_8_lines(stream, name)
        return
    try:
        yield from bounded_lines(io.TextIOWrapper(stream, "utf-16", newline=""), name)
    except UnicodeError as error:
        raise CommandError(f"{name} begins as UTF-16 text but cannot be read as such.") from error


def utf_8_lines(stream: io.BufferedReader, name: str) -> Iterator[str]:
    """Lines of UTF-8 text, without a byte order mark. Each is decoded alone, so that an error can
    name its line."""
    for number, line in enumerate(bounded_lines(stream, name), 1):
        if b"\0" in line:
            raise CommandError(
                f"Line {number:,} of {name} contains a zero byte, so it is not text."
            )
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise CommandError(
                f"Line {number:,} of {name} is not UTF-8 text (byte 0x{line[error.start]:02x}): "
                "save it with the encoding UTF-8."
            ) from error


def first_lines(lines: Iterator[str]) -> list[str]:
    """The first lines, from the first that is not blank; the iterator is left after them."""
    first = next((line for line in lines if line.strip()), None)
    ahead = [] if first is None else [first]
    characters = 0
    while ahead and len(ahead) < LINES_AHEAD and characters < CHARACTERS_AHEAD:
        line = next(lines, None)
        if line is None:
            break
        ahead.append(line)
        characters += len(line)
    return ahead


# Separator and decimal sign.


def sample(lines: list[str], separator: str) -> list[list[str]]:
    """The rows of the first lines as far as they can be read; the last may be cut."""
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        return [row for row in rows if row]
    except csv.Error:
        return []


def detected_separator(lines: list[str]) -> str:
    """The separator with which most rows are as wide as the header, which it divides.

    If none divides the header, there is one column, and the separator must not divide its cells.
    """

    def fit(separator: str) -> tuple[bool, float, int]:
        rows = sample(lines, separator)
        if not rows:
            return False, 0.0, 0
        width = len(rows[0])
        same = sum(len(row) == width for row in rows[1:]) / max(len(rows) - 1, 1)
        return width > 1, same, width

    return max(SEPARATORS, key=fit)


def spelled(separator: str) -> str:
    """A separator for a sentence."""
    return "tab" if separator == "\t" else repr(separator)


def comma_columns(rows: list[list[str]], separator: str, decimal: str | None) -> set[int]:
    """The indices of the columns whose numbers have a decimal comma.

    If ``decimal`` is None, there are such columns only if some column has a comma that cannot
    separate thousands. Where cells are not separated by commas and no number has a decimal point,
    any comma in a number will do.
    """
    if decimal == POINT or len(rows) < 2:
        return set()
    width = len(rows[0])
    whole = [row for row in rows[1:] if len(row) == width]
    found = [evidence([row[j].strip() for row in whole]) for j in range(width)]
    points = any(column.sure_point for column in found)
    sure = any(column.sure_comma for column in found)
    likely = separator != COMMA and not points and any(column.comma for column in found)
    if not (decimal == COMMA or sure or likely):
        return set()
    # If other columns have decimal points, points in whole numbers may be decimal points as well as
    # separators of thousands: such columns are left unchanged.
    return {
        j
        for j, column in enumerate(found)
        if column.comma or (column.either and (decimal == COMMA or not points))
    }


def evidence(cells: list[str]) -> Evidence:
    """What the first cells of a column say about its decimal sign."""
    present = [cell for cell in cells if cell not in NOT_NUMBERS]
    either = bool(present) and all(COMMA_NUMBER.fullmatch(cell) for cell in present)
    pointed = bool(present) and all(POINT_NUMBER.fullmatch(cell) for cell in present)
    with_comma = [cell for cell in present if COMMA in cell]
    with_point = [cell for cell in present if POINT in cell]
    return Evidence(
        either=either,
        comma=either and bool(with_comma),
        sure_comma=either and not all(map(PERHAPS_THOUSANDS.fullmatch, with_comma)),
        sure_point=pointed and not all(map(PERHAPS_THOUSANDS.fullmatch, with_point)),
    )
