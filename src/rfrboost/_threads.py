"""Several things at once, each on one thread of BLAS.

Products and factorisations of a few hundred columns gain little from the threads of BLAS, and lose
much where other work is on the machine: every call waits for the last of its threads; and a BLAS
that shares out a product rounds differently from one that does not. Members, row blocks and
penalties are independent of each other. A *team* takes them side by side, each on one thread, and
what comes out is the same however many it is.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from threading import Lock
from typing import Any

from threadpoolctl import LibController, ThreadpoolController

# A function and what to call it with; the results, in that order.
Team = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]


def one_by_one(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """The team of one."""
    return [function(item) for item in items]


@cache
def libraries() -> list[LibController]:
    """The BLAS of NumPy and that of SciPy, as a rule; looking for them takes some milliseconds."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


class SingleThreadedBlas:
    """One thread for every BLAS while anybody is in here.

    The number of threads belongs to the process: of callers that overlap the first lowers it and
    the last restores it, or one would restore it under another's feet.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._before: list[int] = []

    @contextmanager
    def entered(self) -> Iterator[int]:
        """Lower the number; yields what it was, or 1 for those who come later."""
        with self._lock:
            threads = self._lower() if not self._inside else 1
            self._inside += 1
        try:
            yield threads
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    set_threads(self._before)

    def _lower(self) -> int:
        self._before = [library.num_threads for library in libraries()]
        set_threads([1] * len(self._before))
        return max(self._before, default=1)


def set_threads(counts: list[int]) -> None:
    """Set the number of threads of every BLAS, from whichever thread this is called."""
    let_go()
    for library, count in zip(libraries(), counts, strict=True):
        library.set_num_threads(count)
    let_go()


def let_go() -> None:
    """Nobody in charge: from 3.8 on threadpoolctl heeds one thread and ignores the others."""
    for library in libraries():
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


BLAS = SingleThreadedBlas()


def begin_again() -> None:
    """In a child process nobody is at work, whatever the parent was doing when it forked."""
    inside, before = BLAS._inside, BLAS._before
    BLAS.__init__()  # type: ignore[misc]
    if inside:
        set_threads(before)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=begin_again)


@contextmanager
def team(most: int | None = None) -> Iterator[Team]:
    """A team of as many threads as BLAS was allowed, or at ``most`` so many."""
    with BLAS.entered() as threads:
        size = threads if most is None else min(threads, most)
        if size <= 1:
            yield one_by_one
            return
        # Where the number belongs to a thread (OpenMP), new threads have to lower their own.
        lower = partial(set_threads, [1] * len(libraries()))
        with ThreadPoolExecutor(size, initializer=lower) as pool:
            yield lambda function, items: list(pool.map(function, items))


def side_by_side(work: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """What ``work`` makes of every item, in order, by a team that is there for nothing else."""
    with team(most=len(items)) as together:
        return together(work, items)
