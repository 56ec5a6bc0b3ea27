"""Delimited text as blocks of columns of text, read strictly.

A row with too many or too few cells, a quote that never closes or bytes that are not text are
errors that name the line: guessing what was meant would give predictions for the wrong rows.
"""

import csv
import io
from collections.abc import Iterator
from itertools import islice

import pyarrow as pa

from rfrboost.cli.errors import CommandError, printable

SEPARATORS = (",", "\t", ";")
#: what a file may begin with to say how its text is coded
MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


class Delimited:
    """A table as text: the names of its columns, then blocks of rows."""

    def __init__(self, stream: io.BufferedReader, name: str, tabs: bool) -> None:
        self.name = name
        # Lines are decoded one by one, so that an error can say which.
        coding = MARKS.get(stream.peek(2)[:2])
        lines = io.TextIOWrapper(stream, coding, newline="") if coding else decoded(stream, name)
        first = next((line for line in lines if line.strip()), None)
        if first is None:
            raise CommandError(f"{name} is empty.")
        self.rows = csv.reader(
            again(first, lines),
            delimiter="\t" if tabs else separator(first),
            strict=True,
            skipinitialspace=True,
        )
        self.names = [cell.strip() for cell in next(self._checked(), [])]

    def blocks(self, rows: int) -> Iterator[pa.Table]:
        """The rows, so many at a time, every cell as text."""
        checked = self._checked()
        while block := list(islice(checked, rows)):
            columns = [pa.array(cells, pa.string()) for cells in zip(*block, strict=True)]
            yield pa.Table.from_arrays(columns, names=self.names)

    def _checked(self) -> Iterator[list[str]]:
        """Rows of the right length; lines without anything on them are none."""
        width = len(getattr(self, "names", ()))
        try:
            for row in self.rows:
                if width and row and len(row) != width:
                    cells = "1 cell" if len(row) == 1 else f"{len(row):,} cells"
                    raise CommandError(
                        f"Line {self.rows.line_num:,} of {self.name} has {cells}, but the header "
                        f"has {width:,}."
                    )
                if row:
                    yield row
        except csv.Error as error:
            reason = "a quote is never closed" if "end of data" in str(error) else str(error)
            raise CommandError(
                f"Line {self.rows.line_num:,} of {self.name} cannot be read: {printable(reason)}."
            ) from error
        except UnicodeError as error:
            raise CommandError(f"{self.name} is not the UTF-16 that it begins as.") from error


def decoded(stream: io.BufferedReader, name: str) -> Iterator[str]:
    """Lines of UTF-8 text, without the mark that some programs put in front."""
    for number, line in enumerate(stream, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise CommandError(
                f"Line {number:,} of {name} is not UTF-8 text (byte 0x{line[error.start]:02x}): "
                "convert the file first, for example with iconv -f latin1 -t utf-8."
            ) from error
        if "\0" in text:
            raise CommandError(f"Line {number:,} of {name} holds a zero byte: it is not text.")
        yield text


def again(first: str, lines: Iterator[str]) -> Iterator[str]:
    """The lines with the one that was looked at back in front."""
    yield first
    yield from lines


def separator(header: str) -> str:
    """The character that separates most names, a comma if none does."""
    outside = "".join(header.split('"')[::2])
    return max(SEPARATORS, key=outside.count)
