"""Bumps leaf by leaf: as many centres as rows, of which a row meets those of its own leaf only."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rfrboost._blas import product
from rfrboost._bumps import Bumps
from rfrboost._leaves import Splits
from rfrboost._typing import Array, Indices


@dataclass(frozen=True)
class Leaf:
    """Bumps around the rows of a leaf, and their coefficients: Cᵀf + c."""

    bumps: Bumps
    C: Array
    c: Array

    def __call__(self, X: Array) -> Array:
        # In double precision: coefficients of close centres are large, and cancel.
        F = self.bumps.between(X, self.bumps.centres, np.float64)
        return product(F, self.C.astype(float)) + self.c

    def pull(self, rows: Array, cotangent: Array) -> Array:
        """Cotangents of the sums to those of x."""
        return self.bumps.pullback(rows)(product(cotangent, self.C.T.astype(float)))


@dataclass(frozen=True)
class LocalSums:
    """A feature map of few features: the sums Cᵀf + c of the leaf that a row falls into.

    A leaf that no training row fell into has its neighbour's.
    """

    splits: Splits
    leaves: tuple[Leaf, ...]

    @property
    def width(self) -> int:
        return len(self.leaves[0].c)

    @property
    def bound(self) -> float:
        return np.inf

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float64)

    def astype(self, dtype: type[np.floating], largest_input: float) -> "LocalSums":
        return self

    def __call__(self, rows: Array, out: Array) -> None:
        for leaf, own in self._own_rows(rows):
            out[own] = leaf(rows[own, :-1])

    def _own_rows(self, rows: Array) -> Iterator[tuple[Leaf, Indices]]:
        """Every leaf that some rows fall into, with these rows."""
        where = self.splits(rows[:, :-1])
        for j in np.unique(where):
            yield self.leaves[j], np.flatnonzero(where == j)

    def pullback(self, rows: Array) -> Callable[[Array], Array]:
        """Cotangents of the sums at some rows to those of x; leaves have no width to cross."""

        def pull(cotangent: Array) -> Array:
            total = np.zeros((len(rows), rows.shape[1] - 1))
            for leaf, own in self._own_rows(rows):
                total[own] = leaf.pull(rows[own], cotangent[own])
            return total

        return pull
