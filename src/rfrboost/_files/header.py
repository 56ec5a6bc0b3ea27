"""``file_info``: what a model file says about itself, without its arrays of numbers.

Nothing here imports scikit-learn, so that ``rfrboost info`` answers at once.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from rfrboost._files.container import read_summary
from rfrboost._files.schema import ModelFileError


def file_info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file says about itself; its arrays of numbers are not read.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict
        ``format``; ``version``, that of rfrboost which wrote it; ``estimator``, the name of its
        class; ``parameters``; ``fitted``, its state with ``{"array": name}`` in place of arrays of
        numbers; ``arrays``, their types and shapes by name; ``centres``, how many centres of radial
        features are among them, each a training row as it was encoded; ``checksum``, which only
        :func:`rfrboost.load` compares; ``bytes``, the size of the file.

    Raises
    ------
    ModelFileError
        If it is not a complete model file of a known format.
    """
    with opened(path) as stream:
        document, table = read_summary(stream, size_of(stream))
        arrays = {n: {"dtype": e["dtype"], "shape": e["shape"]} for n, e in table.items()}
        centres = sum(e["shape"][0] for n, e in arrays.items() if n.endswith(".centres"))
        return {**document, "arrays": arrays, "centres": centres, "bytes": size_of(stream)}


def size_of(stream: BinaryIO) -> int:
    """The size of an open file."""
    return os.fstat(stream.fileno()).st_size


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file. Errors of its content are raised again with the path and "Cannot load"."""
    path = Path(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelFileError("it is not a file")  # a pipe would never end
        # Unbuffered, so that no more is read than is needed.
        with open(path, "rb", buffering=0) as stream:
            yield stream
    except ModelFileError as error:
        raise ModelFileError(f"Cannot load {path}: {error}.") from error
    except (RecursionError, MemoryError) as error:
        raise ModelFileError(f"Cannot load {path}: it is too large or too deep.") from error
