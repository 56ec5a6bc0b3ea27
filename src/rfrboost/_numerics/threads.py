"""Several things at once, each on one thread of BLAS.

Products and factorisations of a few hundred columns gain little from the threads of BLAS, and lose
much where other work is on the machine: every call waits for the last of its threads; and a BLAS
that shares out a product rounds differently from one that does not. Members, row blocks and
penalties are independent of each other. A *team* takes them side by side, each on one thread, and
what comes out is the same however many it is.

Memory that is freed and asked for again, many times a layer.

A fit makes and frees arrays of a megabyte thousands of times. glibc hands memory of that size back
to the system at once, and the system clears it, page by page, when it is asked for again: a fifth
of the time of a small fit. How much it keeps instead depends on the largest block that has been
freed so far, up to 32 MB.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from threading import Lock
from typing import Any

import numpy as np
from threadpoolctl import LibController, ThreadpoolController

# Python's ``map``, or that of a pool of threads: results come in the order of the items. The calls
# are sure to be made only once the results have been taken, as ``list(team(function, items))`` does.
Team = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


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
            yield map
            return
        # Where the number belongs to a thread (OpenMP), new threads have to lower their own.
        lower = partial(set_threads, [1] * len(libraries()))
        with ThreadPoolExecutor(size, initializer=lower) as pool:
            yield pool.map


def side_by_side(work: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """What ``work`` makes of every item, in order, by a team that is there for nothing else."""
    with team(most=len(items)) as together:
        return list(together(work, items))


# Just below the largest block that counts.
KEPT_HEAP_BYTES = 2**25 - 2**16


def keep_freed_memory() -> None:
    """From now on keep up to 64 MB of freed memory for reuse; nothing elsewhere than in glibc.

    The block is never written to, so that it costs no memory.
    """
    np.empty(KEPT_HEAP_BYTES, np.uint8)
