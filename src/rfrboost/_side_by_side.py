"""Blocks of rows worked on side by side, with the same result on any number of threads.

A BLAS that shares one product among threads rounds differently from one that does not. Here every
block of rows is computed by one thread alone, and threads share the blocks out instead; the blocks
are the same however many threads there are. What a row needs besides products (activations,
distances) then runs in parallel too.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from threading import Lock
from typing import TypeVar

from threadpoolctl import LibController

from rfrboost._threads import controller

Result = TypeVar("Result")


@cache
def libraries() -> list[LibController]:
    """Those of NumPy and of SciPy, as a rule."""
    return controller().select(user_api="blas").lib_controllers


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
                    self._restore()

    def _lower(self) -> int:
        self._before = [library.num_threads for library in libraries()]
        set_threads([1] * len(self._before))
        return max(self._before, default=1)

    def _restore(self) -> None:
        set_threads(self._before)


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


def side_by_side(work: Callable[[slice], Result], blocks: list[slice]) -> list[Result]:
    """What ``work`` makes of every block of rows, in order; on as many threads as BLAS had."""
    with BLAS.entered() as threads:
        if min(threads, len(blocks)) == 1:
            return [work(rows) for rows in blocks]
        # Where the number belongs to a thread (OpenMP), new threads have to lower their own.
        lower = partial(set_threads, [1] * len(libraries()))
        with ThreadPoolExecutor(min(threads, len(blocks)), initializer=lower) as pool:
            return list(pool.map(work, blocks))
