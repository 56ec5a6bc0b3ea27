"""What people see: sentences and progress on standard error, results on standard output."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rfrboost.cli.errors import printable

# In a pipe, how often to say how far a long command is.
SECONDS = 10.0
# Wide enough that no table is ever cut where nobody can see it.
PIPE_WIDTH = 1000

Advance = Callable[[int], None]


def say(sentence: str) -> None:
    """One line on standard error."""
    print(sentence, file=sys.stderr, flush=True)


def on_terminal() -> bool:
    """Whether somebody watches standard error."""
    return sys.stderr.isatty()


@contextmanager
def line_cleared() -> Iterator[None]:
    """Let others draw a bar on the terminal's last line, which is empty again afterwards."""
    try:
        yield
    finally:
        if on_terminal():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def progress(task: str, total: int | None, unit: str) -> Iterator[Advance]:
    """A function to call with how much more is done: a bar on a terminal, lines in a pipe."""
    if not on_terminal():
        yield plain_lines(task, total, unit)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        number = bar.add_task(task, total=total)
        yield lambda more: bar.advance(number, more)


def plain_lines(task: str, total: int | None, unit: str) -> Advance:
    """Progress as lines, one every few seconds."""
    done, said = 0, time.monotonic()

    def advance(more: int) -> None:
        nonlocal done, said
        done += more
        if time.monotonic() - said >= SECONDS:
            say(f"{task}: {done:,}{f' of {total:,}' if total else ''} {unit}.")
            said = time.monotonic()

    return advance


def show_table(titles: list[str], rows: list[list[str]]) -> None:
    """A table on standard output: its first column is text, as is one without a title."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    console = Console(file=sys.stdout, width=width, markup=False, highlight=False)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for k, title in enumerate(titles):
        table.add_column(title, justify="right" if k and title else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(printable, row))
    console.print(table)


def in_words(seconds: float) -> str:
    """A duration."""
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
