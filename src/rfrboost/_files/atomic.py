"""Writing a file so that a reader sees all of it or none of it."""

import os
from pathlib import Path
from uuid import uuid4


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Put ``data`` into the file ``path``; if that fails, what was there before stays.

    The temporary file stands beside it, because a rename is atomic within one file system only,
    and is on the disk before the rename, so that a crash cannot leave an empty file either.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{os.fspath(path)} is not a file that could be replaced.")
    temporary = target.with_name(f".{uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
