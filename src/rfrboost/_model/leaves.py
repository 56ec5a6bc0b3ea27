"""Leaves: rows halved again and again along the direction in which they spread most.

A row's neighbours are then mostly in its own leaf, so that what is fitted leaf by leaf costs as
much a row however many rows there are.

Bumps leaf by leaf: as many centres as rows, of which a row meets those of its own leaf only.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.linalg import eigh

from rfrboost._model.bumps import Bumps
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import product, stretched
from rfrboost._numerics.sizes import BATCH_ROWS
from rfrboost._typing import Array, Indices

# Rows that say in which direction a node spreads most.
SPREAD_ROWS = 4096


@dataclass(frozen=True)
class Splits:
    """A complete tree: node i sends rows to node 2i + 1, or past its threshold to 2i + 2.

    ``directions`` are (nodes, D), ``thresholds`` (nodes,); leaves are numbered from left to right.
    """

    directions: Array
    thresholds: Array

    @property
    def n_leaves(self) -> int:
        return len(self.thresholds) + 1

    def __call__(self, X: Array) -> Indices:
        """The leaf of every row, some rows at a time."""
        node = np.zeros(len(X), np.intp)
        for begin in range(0, len(X), BATCH_ROWS):
            rows, own = X[begin : begin + BATCH_ROWS], node[begin : begin + BATCH_ROWS]
            for _ in range(self.n_leaves.bit_length() - 1):
                along = np.einsum("ij,ij->i", rows, self.directions[own])
                own[...] = 2 * own + 1 + (along > self.thresholds[own])
        return node - len(self.thresholds)


def grow(X: Array, L: Array, most: int, rng: Generator) -> Splits:
    """Splits into leaves of at most ``most`` rows of X, as far as rows differ; L is the metric."""
    n_nodes = 2 ** max(int(np.ceil(np.log2(len(X) / most))), 0) - 1
    directions, thresholds = np.zeros((n_nodes, X.shape[1])), np.zeros(n_nodes)
    parts = [np.arange(len(X))]
    for i in range(n_nodes):
        rows = parts[i]
        directions[i] = widest(X[rows[rng.permutation(len(rows))[:SPREAD_ROWS]]], L)
        along = product(X[rows], directions[i][:, None])[:, 0]
        thresholds[i] = middle(along)
        right = along > thresholds[i]
        parts += [rows[~right], rows[right]]
    return Splits(frozen(directions), frozen(thresholds))


def widest(X: Array, L: Array) -> Array:
    """The direction v along which x·v, the first principal component in the metric, varies most."""
    if len(X) < 2:
        return np.zeros(X.shape[1])
    Z = stretched(X, L)
    Z = Z - Z.mean(axis=0)
    _, vectors = eigh(product(Z.T, Z))
    u = vectors[:, -1:]
    # A sign is nobody's choice: the largest entry is positive.
    u = u * np.sign(u[np.argmax(np.abs(u)), 0])
    return (L[:, None] * u if L.ndim == 1 else product(L, u))[:, 0]


def middle(values: Array) -> float:
    """Half way across the gap between values that is nearest to the middle row.

    Between values, so that rounding sends no row elsewhere; where all are equal, at them.
    """
    ordered = np.sort(values) if len(values) else np.zeros(1)
    half, n = ordered[len(ordered) // 2], len(ordered)
    ends = [int(np.searchsorted(ordered, half, side)) for side in ("left", "right")]
    gaps = [end for end in ends if 0 < end < n]
    if not gaps:
        return float(half)
    at = min(gaps, key=lambda end: abs(end - n / 2))
    return float((ordered[at - 1] + ordered[at]) / 2)


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
