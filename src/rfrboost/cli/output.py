"""Tables that commands write, block by block: delimited text, gzipped text or Parquet.

A file appears when it is complete, or what was there before stays.
"""

import csv
import errno
import gzip
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rfrboost._files.atomic import atomic_stream
from rfrboost.cli.console import CommandError, WrongUsageError
from rfrboost.cli.reading.delimited import is_tabbed
from rfrboost.cli.request import STANDARD, Source

#: a block of rows: arrays of equal length by column name
Columns = dict[str, np.ndarray]
#: the endings that the name of a table to write may have, before .gz
ENDINGS = ("", ".csv", ".txt", ".tsv", ".tab", ".parquet")
#: the first characters of cells that spreadsheets take for formulas; some skip white space first
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
#: errors of a disk without room, a quota and a limit on the size of files
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Writer(Protocol):
    """A function that writes blocks of rows, all with the same columns."""

    def __call__(self, columns: Columns) -> None:
        """Write one block; the first may have no rows."""


@contextmanager
def table_writer(path: str, protect: bool = False) -> Iterator[Writer]:
    """Open a table to write: the name says the format; ``-`` is CSV on standard output.

    With ``protect``, no cell of text is a formula to a spreadsheet.
    """
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
            yield text_writer(text, "\t" if is_tabbed(path) else ",", protect)
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

    Errors of reading the input also occur inside; they are raised unchanged.
    """
    try:
        yield
    except OSError as error:
        if error.filename != path and error.errno not in NO_ROOM:
            raise
        reason = error.strerror or str(error)
        raise CommandError(f"Cannot write {path}: {reason[0].lower()}{reason[1:]}.") from error


def refuse_overwriting(out: str, *inputs: str) -> None:
    """Refuse an output that is one of the files that are read, also under another name."""
    target = file_status(out) if out != STANDARD else None
    if target is None:
        return
    for path in inputs:
        source = file_status(path)
        if source is not None and os.path.samestat(source, target):
            raise WrongUsageError(
                f"--out {out} would overwrite {Source(path).name}, which is read; name another "
                "file."
            )


def file_status(path: str) -> os.stat_result | None:
    """What the system says about a file (or the file that standard input is), if it is one."""
    try:
        status = os.fstat(sys.stdin.fileno()) if path == STANDARD else os.stat(path)
    except (OSError, ValueError):
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def protected(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: an apostrophe precedes what looks like one.

    Numbers are left alone, also those that are written as text, such as class labels.
    """
    if not isinstance(cell, str) or not cell.startswith(FORMULA_STARTS):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def text_writer(stream: io.TextIOWrapper, separator: str, protect: bool) -> Writer:
    """Write delimited text with a header; numbers have all digits, so they read back the same."""
    rows = csv.writer(stream, delimiter=separator, lineterminator="\n")
    begun = False

    def write(columns: Columns) -> None:
        nonlocal begun
        if not begun:
            rows.writerow(map(protected, columns) if protect else columns)
            begun = True
        cells = [values.tolist() for values in columns.values()]
        if protect:
            cells = [list(map(protected, values)) for values in cells]
        rows.writerows(zip(*cells, strict=True))

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
