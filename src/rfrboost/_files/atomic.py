"""Writing a file so that a reader sees all of it or nothing of it.

The bytes go to a temporary file in the same folder, because a rename is atomic only within one
file system. That file is flushed to the disk and then renamed to the target. If anything fails,
or a signal stops the program, the temporary file is removed and the target stays as it was.

Use it for results that somebody may read while they are written. Pipes and devices cannot be
replaced; open those directly.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

# The permissions of a new file before the system removes those in the user's umask.
NEW_FILE_MODE = 0o666


@contextmanager
def atomic_stream(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary stream whose bytes become the file ``path`` when the block ends without error.

    A file that is replaced keeps its permissions. A symbolic link is kept, and the file that it
    points to is replaced.

    Raises
    ------
    ValueError
        If ``path`` is a folder, a device or a pipe.
    OSError
        If the system refuses to write. An error about the temporary file names ``path`` instead.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{os.fspath(path)} is not a file that could be replaced.")
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    temporary = target.with_name(f".{uuid4().hex}.tmp")
    try:
        with open(temporary, "xb", opener=creator(mode)) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (temporary, str(temporary)):
            error.filename = os.fspath(path)
        raise


def creator(mode: int | None) -> Callable[[str, int], int]:
    """An opener for ``open`` that creates a file with these permissions, or the user's default.

    The file never has wider permissions than ``mode``, not even while it is empty.
    """

    def create(path: str, flags: int) -> int:
        descriptor = os.open(path, flags, NEW_FILE_MODE if mode is None else mode)
        # Give back permissions that the replaced file had and the umask has removed.
        if mode is not None and stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
            os.chmod(path, mode)
        return descriptor

    return create


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` to the file ``path``; if that fails, what was there before stays."""
    with atomic_stream(path) as stream:
        stream.write(data)
