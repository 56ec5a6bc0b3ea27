"""Tables as blocks of rows, from files or standard input.

The format is recognised by the bytes, and by the name where bytes do not tell: delimited text,
JSON, JSON lines, Excel workbooks, Parquet and Feather. Delimited text, Parquet and Feather are read
in blocks, so they may be larger than memory; the others are read whole.
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from rfrboost.cli.console import CommandError, WrongUsageError, listed
from rfrboost.cli.reading.delimited import DelimitedText
from rfrboost.cli.reading.streams import Bytes, open_bytes
from rfrboost.cli.reading.values import json_table, workbook_table
from rfrboost.cli.request import Source

#: the first bytes of Parquet files, Feather files and zip archives, which Excel workbooks are
PARQUET = b"PAR1"
FEATHER = b"ARROW1"
WORKBOOK = b"PK\x03\x04"
#: the first characters of JSON, and the endings that say JSON, or delimited text in any case
JSON_MARKS = (b"[", b"{")
JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt")
#: the names that pandas gives to an index that it stores among the columns
STORED_INDEX = re.compile(r"__index_level_\d+__")
# The most cells of a block: as text a million cells take a few hundred megabytes.
BLOCK_CELLS = 2**20
# The most and the fewest rows of a block. Up to 2,048 columns the number of rows is a multiple of
# the 512 rows that a network predicts at a time, so that reading in blocks changes no bit.
BLOCK_ROWS = 2**15
FEWEST_ROWS = 2**8


class Read(Protocol):
    """A function that reads blocks of some columns, and of others whose text is not converted."""

    def __call__(self, columns: list[str], verbatim: list[str]) -> Iterator[pa.Table]:
        """Blocks with ``columns`` first and ``verbatim`` after them."""


@dataclass(frozen=True)
class OpenTable:
    """A table that is being read.

    ``total`` is the number of rows, None if it is not known before reading. ``ignored`` are
    columns that only number the rows. ``typed`` tells whether text in the file is meant as text
    (Parquet, Feather), or may be numbers and dates. ``read`` gives the blocks of some columns.
    """

    name: str
    columns: list[str]
    ignored: list[str]
    total: int | None
    typed: bool
    read: Read

    def blocks(self, columns: list[str], verbatim: list[str] | None = None) -> Iterator[pa.Table]:
        """Blocks of these columns, in this order; a table without rows may have no block.

        Columns in ``verbatim`` follow, as the file spells them; they may occur in both lists.
        """
        return self.read(columns, verbatim or [])

    def whole(self, columns: list[str]) -> pa.Table:
        """All rows of these columns; a table without rows is refused."""
        blocks = list(self.blocks(columns))
        if not sum(block.num_rows for block in blocks):
            raise CommandError(f"{self.name} has a header but no rows.")
        return pa.concat_tables(blocks)


@contextmanager
def open_table(source: Source) -> Iterator[OpenTable]:
    """Open a table in a file, or on standard input (``-``)."""
    with open_bytes(source) as found, ExitStack() as stack:
        first = found.stream.peek(8)
        if first.startswith((PARQUET, FEATHER, WORKBOOK)):
            refuse_layout(source)
            file = stack.enter_context(found.seekable())
            if first.startswith(PARQUET):
                yield from_parquet(file, source.name)
            elif first.startswith(FEATHER):
                yield from_feather(file, source.name)
            else:
                yield from_memory(workbook_table(file, source.name), source.name)
        elif is_json(found):
            refuse_layout(source)
            yield from_memory(json_table(found.stream, source.name), source.name)
        else:
            yield from_text(DelimitedText(found.stream, found.inside, source), source.name)


def refuse_layout(source: Source) -> None:
    """Refuse options that are for delimited text only."""
    if source.separator is not None or source.decimal is not None:
        raise WrongUsageError(
            f"--separator and --decimal are for delimited text, which {source.name} is not."
        )


def is_json(found: Bytes) -> bool:
    """Whether a file is JSON: by its name or, if that is not one of text, its first character."""
    if found.inside.endswith((*JSON_ENDINGS, *TEXT_ENDINGS)):
        return found.inside.endswith(JSON_ENDINGS)
    return found.stream.peek(64).lstrip().startswith(JSON_MARKS)


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


def from_text(text: DelimitedText, name: str) -> OpenTable:
    """A table of delimited text; a first column without a name only names the rows."""
    names = text.names
    unnamed = names[:1] == [""] and len(names) > 1
    check_names(names[unnamed:], name)

    def read(columns: list[str], verbatim: list[str]) -> Iterator[pa.Table]:
        return text.blocks(block_rows(len(names)), columns, verbatim)

    ignored = ["the unnamed first column"] * unnamed
    return OpenTable(name, names[unnamed:], ignored, None, False, read)


@contextmanager
def damaged(name: str, format_name: str) -> Iterator[None]:
    """Turn what Arrow says about a damaged file into a CommandError."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise CommandError(f"{name} is not a readable {format_name} file: {error}") from error


def from_parquet(source: str | BinaryIO, name: str) -> OpenTable:
    """A table in a Parquet file."""
    with damaged(name, "Parquet"):
        file = pq.ParquetFile(source)

    def read(columns: list[str], verbatim: list[str]) -> Iterator[pa.Table]:
        wanted = [*columns, *verbatim]
        with damaged(name, "Parquet"):
            for batch in file.iter_batches(
                block_rows(len(wanted)), columns=[*dict.fromkeys(wanted)]
            ):
                yield pa.Table.from_batches([batch]).select(wanted)

    return typed_table(name, file.schema_arrow.names, file.metadata.num_rows, read)


def from_feather(source: str | BinaryIO, name: str) -> OpenTable:
    """A table in a Feather file, which is an Arrow file."""
    with damaged(name, "Feather"):
        file = pa.ipc.open_file(pa.memory_map(source) if isinstance(source, str) else source)

    def read(columns: list[str], verbatim: list[str]) -> Iterator[pa.Table]:
        wanted = [*columns, *verbatim]
        rows = block_rows(len(wanted))
        with damaged(name, "Feather"):
            for k in range(file.num_record_batches):
                batch = file.get_batch(k)
                for begin in range(0, batch.num_rows, rows):
                    yield pa.Table.from_batches([batch.slice(begin, rows)]).select(wanted)

    return typed_table(name, file.schema.names, None, read)


def typed_table(name: str, names: list[str], total: int | None, read: Read) -> OpenTable:
    """A table with types, without an index that pandas may have stored in it."""
    check_names(names, name)
    index = [column for column in names if STORED_INDEX.fullmatch(column)]
    kept = [column for column in names if column not in index]
    return OpenTable(name, kept, index, total, True, read)


def from_memory(table: pa.Table, name: str) -> OpenTable:
    """A table that was read whole; its text may be numbers and dates."""
    check_names(table.column_names, name)

    def read(columns: list[str], verbatim: list[str]) -> Iterator[pa.Table]:
        wanted = [*columns, *verbatim]
        rows = block_rows(len(wanted))
        for begin in range(0, table.num_rows, rows):
            yield table.slice(begin, rows).select(wanted)

    return OpenTable(name, table.column_names, [], table.num_rows, False, read)
