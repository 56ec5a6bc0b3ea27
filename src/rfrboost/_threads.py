"""BLAS threads where they pay.

Products and factorisations of a few hundred columns gain nothing from a second thread, and lose
much where other work is on the machine: every call waits for the last of its threads.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def controller() -> ThreadpoolController:
    """The BLAS libraries of this process; looking for them takes some milliseconds."""
    return ThreadpoolController()


def one_thread(alone: bool) -> AbstractContextManager[object]:
    """One BLAS thread while this lasts, if ``alone``; else as many as there are."""
    return controller().limit(limits=1, user_api="blas") if alone else nullcontext()
