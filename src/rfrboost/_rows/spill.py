"""Arrays of rows in temporary files, within a budget of bytes.

The files have no names, so that the operating system removes them when the process ends, also if it
is killed. Files of a fit in chunks are read and written, not mapped, because mapped pages would
count as memory. An encoded table that is too large for memory is mapped (:func:`mapped`), because
its rows are read in any order.
"""

import os
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from time import perf_counter
from typing import IO

import numpy as np

from rfrboost._typing import Array

# Bytes that a disk is assumed to read or write in a second until that has been measured: a common
# solid-state disk.
BYTES_PER_SECOND = 1e9


@dataclass(eq=False)
class Spill:
    """Room on disk: ``left`` bytes in a folder (None: the system's folder for temporary files).

    ``moved`` bytes have been written and read so far, in ``seconds``.
    """

    folder: str | Path | None
    left: float
    seconds: float = 0.0
    moved: float = 0.0
    open_files: ExitStack = field(default_factory=ExitStack)

    def take(self, size: float) -> bool:
        """Reserve ``size`` bytes if that many are left; returns whether they were."""
        # Several threads read and write at different places of a file (os.preadv). Where the system
        # cannot do that (Windows), no file is used.
        fits = hasattr(os, "preadv") and size <= self.left
        self.left -= size if fits else 0
        return fits

    def time_for(self, size: float) -> float:
        """Seconds that ``size`` bytes should take to write, or to read, at the measured speed."""
        rate = self.moved / self.seconds if self.seconds > 0 else BYTES_PER_SECOND
        return size / rate

    def note(self, size: int, began: float) -> None:
        """Record that ``size`` bytes have been written or read since the time ``began``."""
        self.moved += size
        self.seconds += perf_counter() - began


class SpillFile:
    """A file of rows that have the shape, dtype and memory order of an example array (m, …).

    In Fortran order a chunk can only be read as it was written; in C order any rows can be read.
    """

    def __init__(self, spill: Spill, example: Array) -> None:
        self.spill = spill
        self.dtype = example.dtype
        self.shape = example.shape[1:]
        self.fortran = example.ndim > 1 and not example.flags.c_contiguous
        self.row_bytes = example.itemsize * prod(self.shape)
        try:
            file = tempfile.TemporaryFile(dir=spill.folder, buffering=0)  # noqa: SIM115
            self.file: IO[bytes] = spill.open_files.enter_context(file)
        except OSError as error:
            raise failure(spill, "made", error) from error

    def write(self, first: int, rows: Array) -> None:
        """Write rows, the first of which has the index ``first``."""
        began = perf_counter()
        lying = rows.T if self.fortran else rows
        view = bytes_of(np.ascontiguousarray(lying, self.dtype))
        done = 0
        try:
            while done < len(view):
                done += os.pwrite(self.file.fileno(), view[done:], first * self.row_bytes + done)
        except OSError as error:
            raise failure(self.spill, "written", error) from error
        self.spill.note(done, began)

    def read(self, first: int, size: int) -> Array:
        """Read ``size`` rows, the first of which has the index ``first``."""
        began = perf_counter()
        rows = np.empty((size, *self.shape), self.dtype, order="F" if self.fortran else "C")
        view = bytes_of(rows.T if self.fortran else rows)
        done = 0
        while done < len(view):
            place = first * self.row_bytes + done
            got = os.preadv(self.file.fileno(), [view[done:]], place)
            if not got:
                raise OSError("A temporary file ends before its rows do: it was cut off.")
            done += got
        self.spill.note(done, began)
        return rows


def mapped(spill: Spill, shape: tuple[int, ...]) -> Array:
    """An array in float64 whose memory is a temporary file.

    All of it is reserved on the disk at once, where the system can do that. Otherwise the process
    would be killed when it writes to a page for which the disk has no room.
    """
    size = 8 * prod(shape)
    try:
        temporary = tempfile.TemporaryFile(dir=spill.folder)  # noqa: SIM115
        file = spill.open_files.enter_context(temporary)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
    except OSError as error:
        raise failure(spill, "written", error) from error
    array: Array = np.memmap(file, np.float64, "r+", shape=shape)
    return array


def failure(spill: Spill, what: str, error: OSError) -> OSError:
    """The error about a temporary file, with what to do."""
    return OSError(
        f"A temporary file in {spill.folder or tempfile.gettempdir()} cannot be {what}: "
        f"{error.strerror or error}. Set spill_dir to a folder with more room, or disk_budget to "
        "the bytes that are free: what does not fit is computed again, or kept in memory."
    )


def bytes_of(array: Array) -> memoryview:
    """The memory of an array in C order, as bytes that can be written to."""
    return memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
