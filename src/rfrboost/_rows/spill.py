"""Arrays of rows on disk, within a budget, that nobody has to clean up.

Files are temporary and without a name, so that they are gone with the process however it ends.
They are read and written, not mapped: mapped pages would count as memory.
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

# What a disk is taken to read and write in a second until it has been measured.
BYTES_PER_SECOND = 1e9


# Whether files can be read and written from several threads at once; elsewhere there are none.
POSITIONED = hasattr(os, "preadv")


@dataclass(eq=False)
class Spill:
    """Room on disk: so many bytes are left, in a folder (None: where temporary files go)."""

    folder: str | Path | None
    left: float
    seconds: float = 0.0
    moved: float = 0.0
    open_files: ExitStack = field(default_factory=ExitStack)

    def take(self, size: float) -> bool:
        """Whether there is room for so many bytes, which are then taken."""
        fits = POSITIONED and size <= self.left
        self.left -= size if fits else 0
        return fits

    def time_for(self, size: float) -> float:
        """How long so many bytes should take one way, by what has been moved so far."""
        rate = self.moved / self.seconds if self.seconds > 0 else BYTES_PER_SECOND
        return size / rate

    def note(self, size: int, began: float) -> None:
        """So many bytes have been moved since."""
        self.moved += size
        self.seconds += perf_counter() - began


class SpillFile:
    """Rows of one shape and type; a chunk of them is laid out in memory as it was written."""

    def __init__(self, spill: Spill, example: Array) -> None:
        self.spill, self.dtype, self.shape = spill, example.dtype, example.shape[1:]
        self.fortran = example.ndim > 1 and not example.flags.c_contiguous
        self.row_bytes = example.itemsize * prod(self.shape)
        try:
            file = tempfile.TemporaryFile(dir=spill.folder, buffering=0)  # noqa: SIM115
            self.file: IO[bytes] = spill.open_files.enter_context(file)
        except OSError as error:
            raise self._failure("made", error) from error

    def write(self, first: int, rows: Array) -> None:
        """Write rows, beginning with row number ``first``."""
        began = perf_counter()
        lying = rows.T if self.fortran else rows
        view = bytes_of(np.ascontiguousarray(lying, self.dtype))
        done = 0
        try:
            while done < len(view):
                done += os.pwrite(self.file.fileno(), view[done:], first * self.row_bytes + done)
        except OSError as error:
            raise self._failure("written", error) from error
        self.spill.note(done, began)

    def read(self, first: int, size: int) -> Array:
        """So many rows, beginning with row number ``first``."""
        began = perf_counter()
        rows = np.empty((size, *self.shape), self.dtype, order="F" if self.fortran else "C")
        view = bytes_of(rows.T if self.fortran else rows)
        done = 0
        while done < len(view):
            place = first * self.row_bytes + done
            got = os.preadv(self.file.fileno(), [view[done:]], place)
            if not got:
                raise OSError("A spill file ends before its rows do.")
            done += got
        self.spill.note(done, began)
        return rows

    def _failure(self, what: str, error: OSError) -> OSError:
        folder = self.spill.folder or tempfile.gettempdir()
        return OSError(
            f"A spill file in {folder} cannot be {what}: {error.strerror or error}. Set spill_dir "
            "to a folder with more room, or disk_budget to what there is: what does not fit is "
            "computed again."
        )


def bytes_of(array: Array) -> memoryview:
    """The memory of an array in C order."""
    return memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
