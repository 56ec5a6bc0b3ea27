"""Tables that commands write, block by block: delimited text, gzipped text or Parquet.

A file appears when it is complete, or what was there before stays.
"""

import csv
import errno
import gzip
import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rfrboost._files.atomic import atomic_stream
from rfrboost.cli.console import CommandError, WrongUsageError
from rfrboost.cli.delimited import is_tabbed
from rfrboost.cli.request import STANDARD

#: a block of rows: arrays of equal length by column name
Columns = dict[str, np.ndarray]
#: the endings that the name of a table to write may have, before .gz
ENDINGS = ("", ".csv", ".txt", ".tsv", ".tab", ".parquet")
#: errors of a disk without room, a quota and a limit on the size of files
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Writer(Protocol):
    """A function that writes blocks of rows, all with the same columns."""

    def __call__(self, columns: Columns) -> None:
        """Write one block; the first may have no rows."""


@contextmanager
def table_writer(path: str) -> Iterator[Writer]:
    """Open a table to write: the name says the format; ``-`` is CSV on standard output."""
    name = path.lower()
    ending = Path(name.removesuffix(".gz")).suffix
    if ending not in ENDINGS or name.endswith(".parquet.gz"):
        raise WrongUsageError(f"Cannot write {path}: name a file .csv, .tsv, .parquet or .csv.gz.")
    with ExitStack() as stack:
        stream = stack.enter_context(whole_file(path))
        if ending == ".parquet":
            yield stack.enter_context(parquet_writer(stream))
            return
        if name.endswith(".gz"):
            stream = cast(BinaryIO, stack.enter_context(gzip.GzipFile(fileobj=stream, mode="wb")))
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        try:
            yield text_writer(text, "\t" if is_tabbed(path) else ",")
        finally:
            # Flushes the text, and leaves closing the stream to the stack.
            text.detach()


@contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """Open a stream whose bytes appear under ``path`` when all went well, and nowhere otherwise.

    Standard output, devices and pipes cannot be replaced and are written directly.
    """
    if path == STANDARD:
        with named("to standard output"):
            yield sys.stdout.buffer
            sys.stdout.flush()
        return
    target = Path(path)
    if target.is_dir():
        raise CommandError(f"{path} is a folder; name a file.")
    with named(path):
        if target.exists() and not target.is_file():
            with open(path, "wb") as stream:
                yield stream
        else:
            with atomic_stream(path) as stream:
                yield stream


@contextmanager
def named(path: str) -> Iterator[None]:
    """Turn the system's refusal to write ``path`` into a sentence that names it.

    Errors of reading the input pass through here too and are raised as they are.
    """
    try:
        yield
    except OSError as error:
        if error.filename != path and error.errno not in NO_ROOM:
            raise
        reason = error.strerror or str(error)
        raise CommandError(f"Cannot write {path}: {reason[0].lower()}{reason[1:]}.") from error


def text_writer(stream: io.TextIOWrapper, separator: str) -> Writer:
    """Write delimited text with a header; numbers have all digits, so they read back the same."""
    rows = csv.writer(stream, delimiter=separator, lineterminator="\n")
    begun = False

    def write(columns: Columns) -> None:
        nonlocal begun
        if not begun:
            rows.writerow(columns)
            begun = True
        rows.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))

    return write


@contextmanager
def parquet_writer(stream: BinaryIO) -> Iterator[Writer]:
    """Write a Parquet file with one row group per block; the first block sets the types."""
    with ExitStack() as stack:
        writers: list[pq.ParquetWriter] = []

        def write(columns: Columns) -> None:
            table = pa.table({name: pa.array(values) for name, values in columns.items()})
            if not writers:
                writers.append(stack.enter_context(pq.ParquetWriter(stream, table.schema)))
            writers[0].write_table(table.cast(writers[0].schema))

        yield write
