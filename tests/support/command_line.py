"""Runs commands inside the test's process, as a shell would see them."""

import io
import sys
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np

from rfrboost.cli import main


@dataclass(frozen=True)
class Ran:
    """The exit code, standard output, and standard error (``said``) of a command."""

    code: int
    out: bytes
    said: str

    @property
    def rows(self) -> list[str]:
        """Lines of standard output after the header."""
        return self.out.decode().splitlines()[1:]

    @property
    def numbers(self) -> np.ndarray:
        """The first column of standard output."""
        return np.array([float(row.split(",")[0]) for row in self.rows])


def rfrboost(*words: object, stdin: bytes = b"") -> Ran:
    """Run one command with these bytes on standard input."""
    out, said = io.BytesIO(), io.BytesIO()
    with (
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))),
        patch.object(sys, "stdout", io.TextIOWrapper(out, encoding="utf-8")),
        patch.object(sys, "stderr", io.TextIOWrapper(said, encoding="utf-8")),
    ):
        code = main([str(word) for word in words])
        sys.stdout.flush()
        sys.stderr.flush()
        ran = Ran(code, out.getvalue(), said.getvalue().decode())
    assert "Traceback" not in ran.said
    return ran


def failed(ran: Ran, *pieces: str, code: int = 1) -> None:
    """Check that a command failed with one sentence that has these pieces, and no output."""
    assert ran.code == code, ran
    assert ran.out == b""
    last = ran.said.splitlines()[-1]
    assert "Unexpected" not in last, ran.said
    for piece in pieces:
        assert piece in last, ran.said


def worked(ran: Ran) -> Ran:
    """Check that a command succeeded, and return it."""
    assert ran.code == 0, ran.said
    return ran


def mixed_table(n: int = 36, seed: int = 0) -> list[list[str]]:
    """Rows with a header: numbers with missing values, text, dates, and a number to predict."""
    rng = np.random.default_rng(seed)
    rows = [["size", "town", "day", "y"]]
    for k in range(n):
        size, town = rng.normal(), str(rng.choice(["north", "south", "east"]))
        day = str(np.datetime64("2024-01-01") + int(rng.integers(300)))
        y = 2 * size + (town == "south") + 0.1 * rng.normal()
        rows.append(["" if k % 9 == 4 else f"{size:.4f}", town, day, f"{y:.4f}"])
    return rows


def text_of(rows: list[list[str]], separator: str = ",") -> bytes:
    """Rows as delimited text; their cells must not need quotes."""
    return "".join(separator.join(row) + "\n" for row in rows).encode()
