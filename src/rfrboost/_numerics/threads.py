"""Threads that work side by side, each with a BLAS of one thread; and memory kept for reuse.

Products and factorisations of a few hundred columns gain little from the threads of BLAS, and lose
much where other programs use the machine: every call waits for the last of its threads. And a BLAS
that divides a product among threads rounds differently from one that does not. Members, batches of
rows and penalties, however, are independent of each other. A *team* works on them side by side,
each on one thread, and the result is the same for any number of threads.

Use :func:`side_by_side` for one list of items, :func:`team` where several lists follow each other,
and :func:`fit_team` around a whole fit.

Memory: a fit allocates and frees arrays of a megabyte thousands of times. glibc returns memory of
that size to the system at once, and the system clears it, page by page, when it is allocated again:
a fifth of the time of a small fit. How much glibc keeps instead depends on the largest block that
has been freed so far, up to 32 MB (:func:`keep_freed_memory`). That concerns the whole process; the
environment variable ``RFRBOOST_KEEP_FREED_MEMORY=0`` switches it off.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import RLock
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import LibController, ThreadpoolController

# Python's ``map``, or that of a pool of threads: results come in the order of the items. All calls
# have been made only once all results have been taken, as ``list(team(function, items))`` does.
Team = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


class OutOfTimeError(Exception):
    """The time limit of a fit passes before what was begun can be completed."""


def check_clock(deadline: float) -> None:
    """Raise ``OutOfTimeError`` after the deadline, a reading of ``time.perf_counter``."""
    if perf_counter() >= deadline:
        raise OutOfTimeError


# Just below 32 MB, the largest freed block that glibc counts.
KEPT_HEAP_BYTES = 2**25 - 2**16


@cache
def libraries() -> list[LibController]:
    """The loaded BLAS libraries, usually NumPy's and SciPy's; finding them takes milliseconds."""
    found: list[LibController] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


class SingleThreadedBlas:
    """One thread for every BLAS while at least one caller is inside ``entered``.

    The number of threads belongs to the process. Of callers that overlap, the first lowers the
    number and the last restores it; otherwise one caller would restore it while another still
    relies on a single thread.

    OpenBLAS has a lock of its own around that number. A process that forks while another thread
    holds it leaves it locked in the child, for ever. So nobody sets the number without ``lock``,
    and a fork waits for it (:func:`reset_after_fork`).
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self._inside = 0
        self._before: list[int] = []

    @contextmanager
    def entered(self) -> Iterator[int]:
        """Lower the number of threads; yields what it was, or 1 to callers that come later."""
        with self.lock:
            threads = self._lower() if not self._inside else 1
            self._inside += 1
        try:
            yield threads
        finally:
            with self.lock:
                self._inside -= 1
                if not self._inside and max(self._before, default=1) > 1:
                    set_threads(self._before)

    def lower_this_thread(self) -> None:
        """One thread for the calling thread: with OpenMP the number belongs to a thread."""
        with self.lock:
            set_threads([1] * len(libraries()))

    def _lower(self) -> int:
        self._before = [library.num_threads for library in libraries()]
        threads = max(self._before, default=1)
        if threads > 1:
            set_threads([1] * len(self._before))
        return threads


def set_threads(counts: list[int]) -> None:
    """Set the number of threads of every BLAS; works from any thread."""
    release_control()
    for library, count in zip(libraries(), counts, strict=True):
        library.set_num_threads(count)
    release_control()


def release_control() -> None:
    """Let any thread set the number: threadpoolctl from 3.8 on obeys only the thread that did."""
    for library in libraries():
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


BLAS = SingleThreadedBlas()


def reset_after_fork() -> None:
    """Restore the number of threads in a child process: its parent's callers are not in it.

    The thread that forks holds the lock, and is the only one that the child has.
    """
    if BLAS._inside:
        BLAS._inside = 0
        set_threads(BLAS._before)
    BLAS.lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=BLAS.lock.acquire,
        after_in_parent=BLAS.lock.release,
        after_in_child=reset_after_fork,
    )


# The number of threads that the user set (``n_jobs``), in the thread that fits; else None.
ASKED: ContextVar[int | None] = ContextVar("ASKED", default=None)


@contextmanager
def threads(n_jobs: int) -> Iterator[None]:
    """Teams of this many threads inside; −1 stands for all processors, −2 for all but one."""
    if n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning: give a number of threads, or -1 for all.")
    n_all = os.cpu_count() or 1
    token = ASKED.set(n_jobs if n_jobs > 0 else max(n_all + 1 + n_jobs, 1))
    try:
        yield
    finally:
        ASKED.reset(token)


@contextmanager
def team(most: int | None = None) -> Iterator[Team]:
    """A team with as many threads as the user set, but not more than ``most``.

    Unless :func:`threads` says how many, there are as many as BLAS was allowed to use.
    """
    with BLAS.entered() as allowed:
        asked = ASKED.get() or allowed
        size = asked if most is None else min(asked, most)
        if size <= 1:
            yield map
            return
        with ThreadPoolExecutor(size, initializer=BLAS.lower_this_thread) as pool:
            yield pool.map


@contextmanager
def fit_team() -> Iterator[Team]:
    """A team for a whole fit, in which the memory that is freed is kept for reuse."""
    keep_freed_memory()
    with team() as together:
        yield together


def side_by_side(work: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """``work(item)`` for every item, in order, by a team made for this call."""
    with team(most=len(items)) as together:
        return list(together(work, items))


def keep_freed_memory() -> None:
    """Make glibc keep up to 64 MB of freed memory for reuse; no effect with another C library.

    The block is allocated and freed but never written to, so it takes no memory. What glibc keeps
    concerns the whole process, so that whoever runs it may say no.
    """
    if os.environ.get("RFRBOOST_KEEP_FREED_MEMORY") != "0":
        np.empty(KEPT_HEAP_BYTES, np.uint8)
