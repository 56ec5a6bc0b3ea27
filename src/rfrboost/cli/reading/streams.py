"""The bytes of a table: from a file or standard input, decompressed.

Compression is recognised by the first bytes: gzip, bzip2, xz, and zip archives with one file in
them. Formats that cannot be read are recognised too, so that the refusal can name them.

Lines and rows of text without end, which would fill the memory, are refused while they are read.
"""

import bz2
import gzip
import io
import lzma
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, AnyStr, BinaryIO, cast

from rfrboost.cli.console import CommandError, listed
from rfrboost.cli.request import STANDARD, Source

#: the formats that are read, as a refusal lists them
READ = (
    "CSV, TSV, JSON, JSON lines, Excel (.xlsx), Parquet and Feather, also in gzip, bzip2, xz, zip"
)
#: the first bytes of zip archives, which Excel workbooks are too
ZIP = b"PK\x03\x04"
#: the first bytes of compressed files, and what undoes the compression
COMPRESSED: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda stream: gzip.GzipFile(fileobj=stream),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
#: the endings of names that say compression only
COMPRESSED_ENDINGS = (".gz", ".bz2", ".xz", ".zip")
#: the first bytes of formats that are not read, and their names
NOT_READ = {
    b"\xd0\xcf\x11\xe0": "an Excel workbook of the old kind (.xls)",
    b"FEA1": "a Feather file of version 1",
    b"\x28\xb5\x2f\xfd": "compressed by Zstandard",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"Rar!": "a RAR archive",
    b"SQLite format 3": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"Obj\x01": "an Avro file",
    b"%PDF": "a PDF document",
    b"\x93NUMPY": "a NumPy array",
    b"$FL2": "an SPSS file (.sav)",
    b"$FL3": "an SPSS file (.zsav)",
    b"<stata_dta>": "a Stata file (.dta)",
    b"\x00" * 12 + b"\xc2\xea\x81\x60": "a SAS file (.sas7bdat)",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
}
#: what a zip archive with this file in it is
WORKBOOK = "xl/workbook.xml"
OPEN_DOCUMENT = "content.xml"
# Formats that need random access are copied if they come from a pipe or are compressed: up to this
# many bytes (64 MB) to memory, larger ones to a temporary file.
IN_MEMORY = 2**26
# Bytes that are read from a file at a time, 256 KB.
READ_AHEAD = 2**18
# The most characters of a row, 16 million: a hundred thousand columns of 160 characters. Cells take
# up to twenty times the memory of their text, and a compressed file of a megabyte can hold a line
# of gigabytes.
LONGEST_ROW = 2**24


@dataclass(frozen=True)
class Bytes:
    """The bytes of a table without compression.

    ``inside`` is the name of the file, in lower case and without the ending of the compression;
    ``path`` that of a file with exactly these bytes, None if there is no such file.
    """

    stream: io.BufferedReader
    inside: str
    path: str | None

    @contextmanager
    def seekable(self) -> Iterator[str | BinaryIO]:
        """The bytes with random access: the file itself, or a copy."""
        if self.path is not None:
            yield self.path
            return
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as copy:
            shutil.copyfileobj(self.stream, copy)
            copy.seek(0)
            yield cast(BinaryIO, copy)


@contextmanager
def open_bytes(source: Source) -> Iterator[Bytes]:
    """Open a file or standard input, decompressed; what cannot be read is a CommandError."""
    with ExitStack() as stack, reading_errors(source):
        if source.path == STANDARD:
            stream = buffered(sys.stdin.buffer)
        else:
            stream = buffered(stack.enter_context(open(source.path, "rb", READ_AHEAD)))
        regular = source.path != STANDARD and Path(source.path).is_file()
        found = Bytes(stream, source.path.lower(), source.path if regular else None)
        first = stream.peek(8)
        for mark, undo in COMPRESSED.items():
            if first.startswith(mark):
                stream = buffered(stack.enter_context(undo(stream)))
                found = Bytes(stream, without_compression(source.path), None)
        if stream.peek(8).startswith(ZIP):
            found = stack.enter_context(unzipped(found, source))
        refuse_unread(found.stream.peek(16), source)
        yield found


@contextmanager
def reading_errors(source: Source) -> Iterator[None]:
    """Turn errors of the system and of the decompressors into sentences that name the table."""
    try:
        yield
    except FileNotFoundError as error:
        if error.filename != source.path:
            raise
        raise CommandError(f"There is no file {source.path}.") from error
    except IsADirectoryError as error:
        if error.filename != source.path:
            raise
        raise CommandError(f"{source.path} is a folder, not a table.") from error
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise CommandError(f"{source.name} is compressed, and cut short or damaged.") from error
    except OSError as error:
        # bzip2 raises an OSError without a number for damaged data; the system's have a number.
        if error.errno is not None or "data stream" not in str(error):
            raise
        raise CommandError(f"{source.name} is compressed, and cut short or damaged.") from error


def without_compression(path: str) -> str:
    """The name of a file in lower case, without the ending that says it is compressed."""
    name = path.lower()
    ending = next((end for end in COMPRESSED_ENDINGS if name.endswith(end)), "")
    return name.removesuffix(ending)


def buffered(stream: Any) -> io.BufferedReader:
    """A stream whose first bytes can be peeked at without waiting for a full buffer."""
    if isinstance(stream, io.BufferedReader):
        return stream
    return io.BufferedReader(cast(io.RawIOBase, stream), READ_AHEAD)


@contextmanager
def unzipped(found: Bytes, source: Source) -> Iterator[Bytes]:
    """The one file in a zip archive; an Excel workbook stays as it is."""
    with ExitStack() as stack:
        file = stack.enter_context(found.seekable())
        archive = stack.enter_context(zipfile.ZipFile(file))
        names = [member.filename for member in archive.infolist() if not member.is_dir()]
        if OPEN_DOCUMENT in names:
            raise CommandError(f"{source.name} is an OpenDocument file: save it as .xlsx or CSV.")
        if WORKBOOK in names:
            if found.path is None:
                # The copy was read to learn what it is; it is read again from its beginning.
                copy = cast(BinaryIO, file)
                copy.seek(0)
                found = Bytes(buffered(cast(io.RawIOBase, copy)), found.inside, None)
            yield found
            return
        tables = [name for name in names if not name.startswith("__MACOSX/")]
        if len(tables) != 1:
            raise CommandError(
                f"{source.name} must contain one file, and contains {len(tables):,}"
                f"{f': {listed(tables)}' if tables else ''}."
            )
        try:
            stream = stack.enter_context(archive.open(tables[0]))
        except (RuntimeError, NotImplementedError) as error:
            raise CommandError(
                f"{source.name} is encrypted, or compressed in an unusual way: unpack it first."
            ) from error
        yield Bytes(buffered(stream), tables[0].lower(), None)


def refuse_unread(first: bytes, source: Source) -> None:
    """Refuse formats that are known but not read, and bytes that are no text."""
    for mark, format_name in NOT_READ.items():
        if first.startswith(mark):
            raise CommandError(
                f"{source.name} is {format_name}, which is not read: convert it, for example to "
                f"CSV or Parquet. Formats that are read: {READ}."
            )


# Lines.


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
        self.number: int = 0
        self.characters: int = 0

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
