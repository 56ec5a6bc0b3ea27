"""Writing a file so that a reader sees all of it or none of it."""

import os
from pathlib import Path
from uuid import uuid4


def write_atomically(path: Path, text: str) -> None:
    """Write ``text`` to ``path``; a crash on the way leaves whatever was there before.

    The temporary file stands in the same directory, because a rename is atomic only
    within one file system.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
