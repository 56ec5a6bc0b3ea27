"""How functions are compiled: without the interpreter's lock, and kept on disk where possible.

No option allows LLVM to assume that numbers are finite, so that NaN and infinity stay what they
are. ``SUMS`` also allows it to add numbers in another order, which vector instructions need; which
order is decided when a function is compiled, so that equal rows give equal bits.
"""

from collections.abc import Callable
from typing import Any

from numba import njit

EXACT = frozenset({"contract"})
SUMS = frozenset({"contract", "reassoc", "nsz"})


def compiled(fastmath: frozenset[str]) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles a function of arrays and numbers."""

    def decorate(function: Callable[..., Any]) -> Any:
        # NumPy's rule for division by zero: Python's is a branch, which no vector instruction has.
        options: dict[str, Any] = {"nogil": True, "fastmath": set(fastmath), "error_model": "numpy"}
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:
            # No folder for the cache can be written: each process compiles anew.
            return njit(**options)(function)

    return decorate
