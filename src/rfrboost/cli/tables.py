"""Tables as blocks of rows, delimited text and Parquet alike."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from rfrboost.cli.delimited import Delimited
from rfrboost.cli.errors import CommandError, listed
from rfrboost.cli.source import PARQUET, called, opened, seekable

# A block has about so many cells, which as text take some hundred megabytes, but at most so many
# rows: a multiple of those that a network takes at a time, so that blocks do not change a bit.
BLOCK_CELLS, BLOCK_ROWS, FEWEST_ROWS = 2**20, 2**15, 2**8
#: how pandas calls an index that it stores among the columns
STORED_INDEX = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True)
class OpenTable:
    """A table that is being read: its columns, how many rows it has if that is known, its blocks.

    ``ignored`` are columns that only number the rows; ``typed`` says whether the file knows what
    its columns hold, or has text only.
    """

    name: str
    columns: list[str]
    ignored: list[str]
    total: int | None
    typed: bool
    read: Callable[[list[str]], Iterator[pa.Table]]

    def blocks(self, columns: list[str]) -> Iterator[pa.Table]:
        """Blocks of these columns, in this order; there may be none."""
        return self.read(columns)

    def whole(self, columns: list[str]) -> pa.Table:
        """All rows of these columns, of which there must be one."""
        blocks = list(self.blocks(columns))
        if not sum(block.num_rows for block in blocks):
            raise CommandError(f"{self.name} has a header and no rows.")
        return pa.concat_tables(blocks)


@contextmanager
def open_table(path: str) -> Iterator[OpenTable]:
    """A table in a file, or on standard input (``-``)."""
    name = called(path)
    with opened(path) as stream:
        if stream.peek(4)[:4] == PARQUET:
            with seekable(path, stream) as file:
                yield from_parquet(file, name)
        else:
            yield from_text(Delimited(stream, name, is_tabbed(path)), name)


def is_tabbed(path: str) -> bool:
    """Whether a file's name says that tabs separate its cells."""
    return path.lower().removesuffix(".gz").endswith((".tsv", ".tab"))


def block_rows(n_columns: int) -> int:
    """How many rows are read at a time."""
    rows = BLOCK_ROWS
    while rows > FEWEST_ROWS and rows * n_columns > BLOCK_CELLS:
        rows //= 2
    return rows


def from_text(text: Delimited, name: str) -> OpenTable:
    """A table of delimited text; a first column without a name holds the rows' names."""
    names = text.names
    unnamed = names[:1] == [""] and len(names) > 1
    check_names(names[unnamed:], name)

    def read(columns: list[str]) -> Iterator[pa.Table]:
        for block in text.blocks(block_rows(len(names))):
            yield block.select(columns)

    return OpenTable(
        name, names[unnamed:], ["the unnamed first column"] * unnamed, None, False, read
    )


@contextmanager
def readable(name: str) -> Iterator[None]:
    """What is wrong with a Parquet file, in a sentence."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise CommandError(f"{name} is not a readable Parquet file: {error}") from error


def from_parquet(source: str | BinaryIO, name: str) -> OpenTable:
    """A table in a Parquet file, without an index that pandas may have stored in it."""
    with readable(name):
        file = pq.ParquetFile(source)
    names = file.schema_arrow.names
    check_names(names, name)
    index = [column for column in names if STORED_INDEX.fullmatch(column)]

    def read(columns: list[str]) -> Iterator[pa.Table]:
        with readable(name):
            for batch in file.iter_batches(block_rows(len(columns)), columns=columns):
                yield pa.Table.from_batches([batch]).select(columns)

    kept = [column for column in names if column not in index]
    return OpenTable(name, kept, index, file.metadata.num_rows, True, read)


def check_names(names: list[str], table: str) -> None:
    """Refuse names that cannot tell columns apart."""
    if "" in names:
        raise CommandError(f"Column {names.index('') + 1} of {table} has no name.")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise CommandError(f"{table} has several columns named {listed(twice)}.")
