"""What users see: sentences and progress on standard error, results on standard output.

A failure that a user can do something about is a :class:`CommandError`, whose message is a whole
sentence. :mod:`rfrboost.cli.run` prints it and sets the exit code. Text from files passes through
:func:`printable` before it reaches a terminal.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Seconds between two lines of progress where standard error is not a terminal.
PROGRESS_SECONDS = 10.0
# Characters in a line of a table that is not printed on a terminal: more than any table needs, so
# that none is cut.
PIPE_WIDTH = 1000

#: called with the number of units done since the last call
Advance = Callable[[int], None]


class CommandError(Exception):
    """A failure that one sentence explains; the exit code is 1."""


class WrongUsageError(CommandError):
    """Arguments that do not fit together; the exit code is 2."""


def one_line(error: BaseException) -> str:
    """The message of an error as one line of printable text."""
    if isinstance(error, MemoryError):
        return "There is not enough memory for this table."
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}."
    return printable(" ".join(str(error).split())) or type(error).__name__


def printable(text: str) -> str:
    """Replace control characters, which could change the state of a terminal."""
    return "".join(c if c.isprintable() else "�" for c in text)


def listed(names: list[str], most: int = 8) -> str:
    """Names separated by commas; after ``most`` of them only how many more there are."""
    shown = ", ".join(printable(name) for name in names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun: "1 row", "2,000 rows"."""
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


def duration(seconds: float) -> str:
    """A number of seconds for a sentence, in minutes from 100 seconds on."""
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def say(sentence: str) -> None:
    """Print one line on standard error."""
    print(sentence, file=sys.stderr, flush=True)


def on_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr.isatty()


@contextmanager
def progress(task: str, total: int | None, unit: str) -> Iterator[Advance]:
    """Show progress: a bar on a terminal, a line every ten seconds elsewhere.

    ``total`` is None if the number of units is not known in advance.
    """
    if not on_terminal():
        with progress_lines(task, total, unit) as advance:
            yield advance
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

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


@contextmanager
def progress_lines(task: str, total: int | None, unit: str) -> Iterator[Advance]:
    """Print progress as lines, one every ``PROGRESS_SECONDS``, however long a unit takes."""
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more

    def sentence(seconds: float) -> str:
        return f"{task}: {done:,}{f' of {total:,}' if total else ''} {unit}, {duration(seconds)}."

    with heartbeat(sentence):
        yield advance


@contextmanager
def heartbeat(sentence: Callable[[float], str]) -> Iterator[None]:
    """Off a terminal, print a sentence every ``PROGRESS_SECONDS``, made from the seconds so far.

    A separate thread prints it, because a fit may print nothing for minutes.
    """
    if on_terminal():
        yield
        return
    began = time.monotonic()
    finished = threading.Event()

    def report() -> None:
        while not finished.wait(PROGRESS_SECONDS):
            say(sentence(time.monotonic() - began))

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def show_table(titles: list[str], rows: list[list[str]]) -> None:
    """Print a table on standard output.

    The first column and columns without a title are aligned left, as text; others right.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    console = Console(file=sys.stdout, width=width, markup=False, highlight=False)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for k, title in enumerate(titles):
        table.add_column(title, justify="right" if k and title else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(printable, row))
    console.print(table)
