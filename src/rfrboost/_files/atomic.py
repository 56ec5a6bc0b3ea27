"""Writing a file so that a reader sees the old content or the new one, never a part of it."""

import os
from pathlib import Path
from uuid import uuid4


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Make ``data`` the content of the file ``path``; if that fails, the file stays as it was.

    The data goes to a temporary file in the same folder, because a rename is atomic within one file
    system only. It is flushed to the disk before the rename, so that a crash cannot leave an empty
    file. A symbolic link stays a link, and the file it points to is replaced.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{os.fspath(path)} is not a regular file and cannot be replaced.")
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
