"""Whether predictions are compiled: they are if ``RFRBOOST_COMPILED=1`` asks for it, by numba.

numba takes about half a second to import, and the functions of :mod:`rfrboost._kernels.sums` and
:mod:`rfrboost._kernels.trees` are compiled when they are first called on a machine; later
processes read them from numba's cache. That is worth its time in a service, not in a program that
predicts once, and numba may be installed for another reason: so the environment variable decides.
Otherwise NumPy computes the same sums, up to rounding.
"""

import os
import warnings
from functools import cache
from types import ModuleType
from typing import NamedTuple

VARIABLE = "RFRBOOST_COMPILED"
# Read once, when the library is imported.
ASKED = os.environ.get(VARIABLE, "0") not in ("", "0")


class Kernels(NamedTuple):
    """The modules of compiled functions."""

    sums: ModuleType
    trees: ModuleType


@cache
def kernels() -> Kernels | None:
    """The compiled functions; None, with a warning, if numba cannot be imported."""
    try:
        from rfrboost._kernels import sums, trees
    except ImportError as error:
        # numba also refuses versions of NumPy that are newer than itself.
        warnings.warn(
            f"{VARIABLE} asks for compiled predictions, but numba cannot be imported ({error}). "
            "Predictions are computed by NumPy. Install numba: pip install 'rfrboost[fast]'.",
            stacklevel=2,
        )
        return None
    return Kernels(sums, trees)
