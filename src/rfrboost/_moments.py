"""Sufficient statistics of a weighted least-squares problem.

Every sub-problem of the method is a sum over rows, so a pass over row blocks leaves these few
small matrices, and solvers see nothing else.
"""

from collections.abc import Iterable
from copy import copy
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyr

from rfrboost._blas import gram, product
from rfrboost._typing import Array

# A variance below this share of the mean square is the rounding error of their difference.
CONSTANT = 1e-13


class Moments:
    """Σw, Σw·f, Σw·r, Σw·ffᵀ, Σw·frᵀ and Σw·rrᵀ over rows (f, r) with weights w.

    ``ff`` holds its lower triangle only. Single-precision features are multiplied in single
    precision block by block and summed in double (see :mod:`rfrboost._precision`).
    """

    def __init__(self, n_features: int, n_outputs: int, rr: bool = True) -> None:
        self.weight = 0.0
        self.f = np.zeros(n_features)
        self.r = np.zeros(n_outputs)
        self.ff = np.zeros((n_features, n_features), order="F")
        self.fr = np.zeros((n_features, n_outputs))
        # Where outputs are many and nobody asks for it, Σw·rrᵀ would be most of the work.
        self.rr: Any = np.zeros((n_outputs, n_outputs)) if rr else None

    def add(self, F: Array, R: Array, w: Array | None) -> None:
        """Take in a block of rows."""
        R1 = np.ones((len(R), R.shape[1] + 1), order="F")
        R1[:, :-1] = R
        if w is not None:
            root = np.sqrt(w)[:, None]
            F, R1 = F * root.astype(F.dtype), R1 * root
        r1f = product(R1.astype(F.dtype, copy=False).T, F)
        # Single-precision products of a block are summed in double.
        np.add(self.ff, gram(F), out=self.ff)
        self.fr += r1f[:-1].T
        self.f += r1f[-1]
        rr1 = product(R1.T, R1 if self.rr is not None else R1[:, -1:])
        self.r += rr1[:-1, -1]
        self.weight += rr1[-1, -1]
        if self.rr is not None:
            self.rr += rr1[:-1, :-1]

    def take(self, part: "Moments") -> None:
        """Take in the rows of another."""
        self.weight += part.weight
        self.f += part.f
        self.r += part.r
        self.ff += part.ff
        self.fr += part.fr
        if self.rr is not None:
            self.rr += part.rr

    def repeat(self, times: int) -> None:
        """As if every r stood side by side with itself so many times; Σw·rrᵀ is not kept."""
        self.r, self.fr, self.rr = np.tile(self.r, times), np.tile(self.fr, (1, times)), None

    def center(self) -> None:
        """Turn second moments into those about the mean: what an intercept leaves to fit.

        In place, since ``ff`` is the largest matrix there is; the sums f and r stay as they are.
        A feature that does not vary leaves rounding noise behind, which is set to zero.
        """
        about_zero = np.diag(self.ff).copy()
        self.ff = dsyr(-1.0 / self.weight, self.f, lower=1, a=self.ff, overwrite_a=1)
        self.fr -= np.outer(self.f, self.r) / self.weight
        if self.rr is not None:
            self.rr -= np.outer(self.r, self.r) / self.weight
        constant = np.diag(self.ff) <= CONSTANT * about_zero
        if constant.any():
            self.ff[constant] = 0.0
            self.ff[:, constant] = 0.0
            self.fr[constant] = 0.0


def merged(parts: Iterable[Moments]) -> Moments:
    """The moments of all rows of several."""
    first, *others = parts
    total = copy(first)
    for name in ("f", "r", "ff", "fr", "rr"):
        own = getattr(first, name)
        setattr(total, name, None if own is None else own.copy(order="K"))
    for part in others:
        total.take(part)
    return total
