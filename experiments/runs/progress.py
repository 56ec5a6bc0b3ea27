"""Progress of a run on standard error: a bar in a terminal, else a line every ten seconds."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from experiments.runs.jobs import Result

SECONDS_BETWEEN_LINES = 10.0
Report = Callable[[Result], None]


@contextlib.contextmanager
def progress(n_jobs: int, n_stored: int) -> Iterator[Report]:
    """Yields a function to call with each finished result; it shows how many jobs remain."""
    print(f"{n_jobs} jobs to run, {n_stored} already done.", file=sys.stderr)
    shown = _bar if sys.stderr.isatty() else _lines
    with shown(n_jobs) as report:
        yield report


def _describe(result: Result) -> str:
    failed = " FAILED" if result.error else ""
    return f"{result.job.dataset} {result.job.model} fold {result.job.fold}{failed}"


@contextlib.contextmanager
def _bar(n_jobs: int) -> Iterator[Report]:
    # Imported here because only a terminal needs it.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=n_jobs)
        yield lambda result: bar.update(task, advance=1, description=_describe(result))


@contextlib.contextmanager
def _lines(n_jobs: int) -> Iterator[Report]:
    done = 0
    start = last_line = time.monotonic()

    def report(result: Result) -> None:
        nonlocal done, last_line
        done += 1
        now = time.monotonic()
        if result.error or done == n_jobs or now - last_line > SECONDS_BETWEEN_LINES:
            seconds = (now - start) / done * (n_jobs - done)
            counts = f"{done}/{n_jobs} done, {n_jobs - done} remain, about {seconds:.0f} s"
            print(f"{counts}: {_describe(result)}", file=sys.stderr, flush=True)
            last_line = now

    yield report
