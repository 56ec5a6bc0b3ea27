"""Tables as blocks of rows, from delimited text or Parquet, from files or standard input.

The format is recognised by the bytes, not by the name; gzip is undone first. Delimited text is
read strictly: a row with too many or too few cells, a quote that never closes or bytes that are
not text are errors that name the line. Guessing what was meant could give predictions for the
wrong rows.
"""

import csv
import gzip
import io
import re
import shutil
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from rfrboost.cli.console import CommandError, listed, printable

#: the name of standard input and standard output on the command line
STANDARD = "-"
#: the first bytes of compressed files and of Parquet files
GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"
#: the first bytes by which a text file says that it is UTF-16
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
SEPARATORS = (",", "\t", ";")
#: the names that pandas gives to an index that it stores among the columns
STORED_INDEX = re.compile(r"__index_level_\d+__")
# Bytes of a Parquet file from a pipe or gzip that are kept in memory; a larger one goes to a
# temporary file, because Parquet needs random access.
IN_MEMORY = 2**26
# Bytes that are read from a file at a time.
READ_AHEAD = 2**18
# Cells of a block: as text they take a few hundred megabytes.
BLOCK_CELLS = 2**20
# Most and fewest rows of a block. Up to 1,024 columns, the number of rows is a multiple of the
# 1,024 rows that a network predicts at a time, so that reading in blocks changes no bit.
BLOCK_ROWS = 2**15
FEWEST_ROWS = 2**8


@dataclass(frozen=True)
class OpenTable:
    """A table that is being read.

    ``total`` is the number of rows, None if it is not known before reading. ``ignored`` are
    columns that only number the rows. ``typed`` tells whether the file has types (Parquet) or
    text only. ``read`` gives the blocks of some columns.
    """

    name: str
    columns: list[str]
    ignored: list[str]
    total: int | None
    typed: bool
    read: Callable[[list[str]], Iterator[pa.Table]]

    def blocks(self, columns: list[str]) -> Iterator[pa.Table]:
        """Blocks of these columns, in this order; a table without rows may have no block."""
        return self.read(columns)

    def whole(self, columns: list[str]) -> pa.Table:
        """All rows of these columns; a table without rows is refused."""
        blocks = list(self.blocks(columns))
        if not sum(block.num_rows for block in blocks):
            raise CommandError(f"{self.name} has a header but no rows.")
        return pa.concat_tables(blocks)


@contextmanager
def open_table(path: str) -> Iterator[OpenTable]:
    """Open a table in a file, or on standard input (``-``)."""
    name = display_name(path)
    with open_bytes(path) as stream:
        if stream.peek(4)[:4] == PARQUET:
            with seekable(path, stream) as file:
                yield from_parquet(file, name)
        else:
            yield from_text(DelimitedText(stream, name, is_tabbed(path)), name)


def display_name(path: str) -> str:
    """The name of a table in messages."""
    return "Standard input" if path == STANDARD else path


def is_tabbed(path: str) -> bool:
    """Whether a file's name says that tabs separate its cells."""
    return path.lower().removesuffix(".gz").endswith((".tsv", ".tab"))


def block_rows(n_columns: int) -> int:
    """The number of rows that are read at a time."""
    rows = BLOCK_ROWS
    while rows > FEWEST_ROWS and rows * n_columns > BLOCK_CELLS:
        rows //= 2
    return rows


def check_names(names: list[str], table: str) -> None:
    """Refuse column names that are empty or occur twice."""
    if "" in names:
        raise CommandError(f"Column {names.index('') + 1} of {table} has no name.")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise CommandError(f"{table} has several columns named {listed(twice)}.")


# Bytes.


@contextmanager
def open_bytes(path: str) -> Iterator[io.BufferedReader]:
    """Open a file or standard input, decompressed; what cannot be read is a CommandError."""
    with ExitStack() as stack:
        try:
            if path == STANDARD:
                stream = buffered(sys.stdin.buffer)
            else:
                stream = buffered(stack.enter_context(open(path, "rb", READ_AHEAD)))
            if stream.peek(2)[:2] == GZIP:
                stream = buffered(gzip.GzipFile(fileobj=stream))
            yield stream
        except FileNotFoundError as error:
            raise CommandError(f"There is no file {path}.") from error
        except IsADirectoryError as error:
            raise CommandError(f"{path} is a folder, not a table.") from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise CommandError(
                f"{display_name(path)} is compressed, and cut short or damaged."
            ) from error


def buffered(stream: BinaryIO | gzip.GzipFile) -> io.BufferedReader:
    """A stream whose first bytes can be looked at without waiting for a full buffer."""
    if isinstance(stream, io.BufferedReader):
        return stream
    return io.BufferedReader(cast(io.RawIOBase, stream), READ_AHEAD)


@contextmanager
def seekable(path: str, stream: io.BufferedReader) -> Iterator[str | BinaryIO]:
    """The bytes with random access, which Parquet needs: the file itself, or a copy."""
    if path != STANDARD and Path(path).is_file() and not is_compressed(path):
        yield path
        return
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as copy:
        shutil.copyfileobj(stream, copy)
        copy.seek(0)
        yield cast(BinaryIO, copy)


def is_compressed(path: str) -> bool:
    """Whether a file begins as gzip does."""
    with open(path, "rb") as file:
        return file.read(2) == GZIP


# Delimited text.


class DelimitedText:
    """A table as text: ``names`` are those of its columns; blocks of rows follow."""

    def __init__(self, stream: io.BufferedReader, name: str, tabs: bool) -> None:
        self.name = name
        self.names: list[str] = []
        if stream.peek(2)[:2] in UTF_16_MARKS:
            lines: Iterator[str] = io.TextIOWrapper(stream, "utf-16", newline="")
        else:
            lines = utf_8_lines(stream, name)
        header = next((line for line in lines if line.strip()), None)
        if header is None:
            raise CommandError(f"{name} is empty.")
        self.rows = csv.reader(
            chain([header], lines),
            delimiter="\t" if tabs else separator(header),
            strict=True,
            skipinitialspace=True,
        )
        self.names = [cell.strip() for cell in next(self._checked(), [])]

    def blocks(self, rows: int) -> Iterator[pa.Table]:
        """Blocks of at most ``rows`` rows, every cell as text."""
        checked = self._checked()
        while block := list(islice(checked, rows)):
            columns = [pa.array(cells, pa.string()) for cells in zip(*block, strict=True)]
            yield pa.Table.from_arrays(columns, names=self.names)

    def _checked(self) -> Iterator[list[str]]:
        """Rows with as many cells as the header; empty lines are skipped."""
        width = len(self.names)
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
            raise CommandError(
                f"{self.name} begins as UTF-16 text but cannot be read as such."
            ) from error


def utf_8_lines(stream: io.BufferedReader, name: str) -> Iterator[str]:
    """Lines of UTF-8 text, without a byte order mark; decoded singly, so that errors name one."""
    for number, line in enumerate(stream, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise CommandError(
                f"Line {number:,} of {name} is not UTF-8 text (byte 0x{line[error.start]:02x}): "
                "convert the file first, for example with iconv -f latin1 -t utf-8."
            ) from error
        if "\0" in text:
            raise CommandError(
                f"Line {number:,} of {name} contains a zero byte, so it is not text."
            )
        yield text


def separator(header: str) -> str:
    """The separator that occurs most often in the header outside quotes; a comma if none does."""
    outside = "".join(header.split('"')[::2])
    return max(SEPARATORS, key=outside.count)


def from_text(text: DelimitedText, name: str) -> OpenTable:
    """A table of delimited text; a first column without a name only names the rows."""
    names = text.names
    unnamed = names[:1] == [""] and len(names) > 1
    check_names(names[unnamed:], name)

    def read(columns: list[str]) -> Iterator[pa.Table]:
        for block in text.blocks(block_rows(len(names))):
            yield block.select(columns)

    ignored = ["the unnamed first column"] * unnamed
    return OpenTable(name, names[unnamed:], ignored, None, False, read)


# Parquet.


@contextmanager
def parquet_errors(name: str) -> Iterator[None]:
    """Turn what Arrow says about a damaged file into a CommandError."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise CommandError(f"{name} is not a readable Parquet file: {error}") from error


def from_parquet(source: str | BinaryIO, name: str) -> OpenTable:
    """A table in a Parquet file, without an index that pandas may have stored in it."""
    with parquet_errors(name):
        file = pq.ParquetFile(source)
    names = file.schema_arrow.names
    check_names(names, name)
    index = [column for column in names if STORED_INDEX.fullmatch(column)]

    def read(columns: list[str]) -> Iterator[pa.Table]:
        with parquet_errors(name):
            for batch in file.iter_batches(block_rows(len(columns)), columns=columns):
                yield pa.Table.from_batches([batch]).select(columns)

    kept = [column for column in names if column not in index]
    return OpenTable(name, kept, index, file.metadata.num_rows, True, read)
