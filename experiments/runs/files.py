"""Writing and reading the files of the experiments.

Files are written atomically: a reader sees the whole file or the one before. Reports and tables end
with the provenance of the results that they were made from.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

import pandas as pd

from experiments.runs.provenance import Provenance, csv_footer, markdown_footer


def write_atomically(path: Path, text: str) -> None:
    """Write ``text`` to ``path``; an interruption leaves the file that was there before.

    The temporary file is in the same folder, because renaming is atomic only within a file system.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_report(path: Path, text: str, made_with: Iterable[Provenance]) -> str:
    """Write a Markdown report with its footer, and return what was written."""
    whole = text.rstrip("\n") + "\n" + markdown_footer(made_with)
    write_atomically(path, whole)
    return whole


def write_table(path: Path, rows: pd.DataFrame, made_with: Iterable[Provenance]) -> None:
    """Write rows as CSV, with the footer as a last line that begins with ``#``."""
    write_atomically(path, rows.to_csv(index=False) + csv_footer(made_with))


def read_table(path: Path) -> pd.DataFrame:
    """The rows of a CSV file that :func:`write_table` wrote."""
    return pd.read_csv(path, comment="#")


def table_footer(path: Path) -> str:
    """The provenance line of a CSV file, without its ``#``; older files have none."""
    last = path.read_text(encoding="utf-8").rstrip("\n").rpartition("\n")[2]
    return last.removeprefix("# ") if last.startswith("#") else "Commit unknown."
