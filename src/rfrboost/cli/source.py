"""Bytes of a table, wherever they come from: a file, a compressed one, standard input."""

import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from rfrboost.cli.errors import CommandError

STANDARD = "-"
GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
# A Parquet file that cannot be read back and forth is kept in memory up to so many bytes.
IN_MEMORY = 2**26
AHEAD = 2**18


def called(path: str) -> str:
    """What errors call a table."""
    return "Standard input" if path == STANDARD else path


@contextmanager
def opened(path: str) -> Iterator[io.BufferedReader]:
    """The bytes of a table, decompressed. What cannot be read becomes a sentence."""
    with ExitStack() as stack:
        try:
            raw = (
                sys.stdin.buffer
                if path == STANDARD
                else stack.enter_context(open(path, "rb", AHEAD))
            )
            stream = buffered(raw)
            if stream.peek(2)[:2] == GZIP:
                stream = buffered(gzip.GzipFile(fileobj=stream))
            yield stream
        except FileNotFoundError as error:
            raise CommandError(f"There is no file {path}.") from error
        except IsADirectoryError as error:
            raise CommandError(f"{path} is a folder, not a table.") from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise CommandError(
                f"{called(path)} is compressed, and cut short or damaged."
            ) from error


def buffered(stream: BinaryIO | gzip.GzipFile) -> io.BufferedReader:
    """A stream whose first bytes can be looked at, without waiting for more than there are."""
    if isinstance(stream, io.BufferedReader):
        return stream
    return io.BufferedReader(cast(io.RawIOBase, stream), AHEAD)


@contextmanager
def seekable(path: str, stream: io.BufferedReader) -> Iterator[str | BinaryIO]:
    """The same bytes with random access, which Parquet needs: the file itself, or a copy."""
    if path != STANDARD and Path(path).is_file() and not compressed(path):
        yield path
        return
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as copy:
        shutil.copyfileobj(stream, copy)
        copy.seek(0)
        yield cast(BinaryIO, copy)


def compressed(path: str) -> bool:
    """Whether a file begins as gzip does."""
    with open(path, "rb") as file:
        return file.read(2) == GZIP
