"""Writing a file so that a reader sees all of it or none of it."""

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Write ``text`` to ``path``; a crash on the way leaves whatever was there before.

    The temporary file stands in the same directory, because a rename is atomic only
    within one file system.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        temporary.chmod(0o666 & ~_umask())  # a temporary file is for its owner alone
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    """What new files of this process are not allowed; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
