"""Lines of text that are refused where they would fill the memory.

A small compressed file can hold a line of any length, and a row whose quotes stretch it over any
number of lines. Both are refused while they are read.
"""

from collections.abc import Iterator
from typing import IO, AnyStr

from rfrboost.cli.console import CommandError

# Characters of a row, 16 million: a hundred thousand columns of 160 characters. Cells take up to
# twenty times the memory of their text.
LONGEST_ROW = 2**24


def bounded_lines(stream: IO[AnyStr], name: str) -> Iterator[AnyStr]:
    """The lines of a stream of text or bytes; one that is too long is refused."""
    number = 0
    while line := stream.readline(LONGEST_ROW + 1):
        number += 1
        if len(line) > LONGEST_ROW:
            raise CommandError(
                f"Line {number:,} of {name} has more than {LONGEST_ROW:,} characters: check that "
                "it is a table, with a line for each row."
            )
        yield line


class RowLines:
    """Lines for a reader of rows, which calls ``row_ended`` after each row.

    A row of too many characters is refused.
    """

    def __init__(self, lines: Iterator[str], name: str) -> None:
        self.lines = lines
        self.name = name
        self.number = 0
        self.characters = 0

    def __iter__(self) -> "RowLines":
        return self

    def __next__(self) -> str:
        line = next(self.lines)
        self.number += 1
        self.characters += len(line)
        if self.characters > LONGEST_ROW:
            raise CommandError(
                f"The row of {self.name} that line {self.number:,} belongs to has more than "
                f"{LONGEST_ROW:,} characters: check its quotes."
            )
        return line

    def row_ended(self) -> None:
        """Begin to count the characters of the next row."""
        self.characters = 0
