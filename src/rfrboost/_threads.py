"""Several things at once, each on one thread of BLAS.

Products and factorisations of a few hundred columns gain little from the threads of BLAS, and lose
much where other work is on the machine: every call waits for the last of its threads. Members, row
blocks and penalties are independent of each other; a *team* takes them side by side, and what comes
out does not depend on how many it is.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

# A function and what to call it with; the results, in that order.
Team = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]


def one_by_one(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """The team of one."""
    return [function(item) for item in items]


@cache
def controller() -> ThreadpoolController:
    """The BLAS libraries of this process; looking for them takes some milliseconds."""
    return ThreadpoolController().select(user_api="blas")


class Limit:
    """One thread for BLAS while any team is at work; several fits may be, each on its own thread.

    The number of threads belongs to the process: the first to come lowers it, the last to leave
    sets it back.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.teams = 0
        self.allowed = 1
        self.limiter: Any = None

    def enter(self) -> int:
        """Lower the number of threads, and say what it was."""
        with self.lock:
            if self.teams == 0:
                threads = [library["num_threads"] for library in controller().info()]
                self.allowed = max(threads, default=1)
                self.limiter = controller().limit(limits=1)
            self.teams += 1
            return self.allowed

    def leave(self) -> None:
        """Set it back, if nobody else is at work."""
        with self.lock:
            self.teams -= 1
            if self.teams == 0:
                self.limiter.restore_original_limits()


LIMIT = Limit()


@contextmanager
def team() -> Iterator[Team]:
    """A team of as many threads as BLAS is allowed; BLAS itself has one while it is at work."""
    size = LIMIT.enter()
    try:
        if size == 1:
            yield one_by_one
        else:
            with ThreadPoolExecutor(size) as pool:
                yield lambda function, items: list(pool.map(function, items))
    finally:
        LIMIT.leave()
