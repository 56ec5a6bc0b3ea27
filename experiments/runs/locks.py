"""Locks on jobs, so that two commands on one folder never run the same job at the same time.

The lock is the operating system's (``flock``, Linux and macOS): it is released when the process
that holds it ends, however it ends. A killed process leaves an empty file, which locks nothing and
is removed by the next command that reads the job's result (:func:`remove_left_over`).
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def lock_path(result_path: Path) -> Path:
    """The lock file of a result file: a hidden file beside it."""
    return result_path.with_name(f".{result_path.stem}.lock")


@contextlib.contextmanager
def claim(path: Path, wait: bool) -> Iterator[bool]:
    """Hold the lock at ``path`` within a with-block; yields False if another process holds it.

    With ``wait``, wait until the other process has released it, and yield True.
    """
    handle = _lock(path, wait)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            # Removed while it is held: a process that waits for it then sees that it is no longer
            # the file at this path, and creates a new one.
            path.unlink(missing_ok=True)
            os.close(handle)


def remove_left_over(path: Path) -> None:
    """Remove the lock file of a killed process; one that a process holds stays."""
    if path.exists():
        with claim(path, wait=False):
            pass


def _lock(path: Path, wait: bool) -> int | None:
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(handle)
            return None
        if _is_still_at(path, handle):
            return handle
        os.close(handle)


def _is_still_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False
