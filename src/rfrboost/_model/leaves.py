"""Leaves: regions of input space, each with its own kernel machine.

A tree halves the rows again and again, across the direction in which they spread most
(:class:`Splits`). Most neighbours of a row are then in its own leaf. The feature map
:class:`LocalSums` predicts a row by the bumps of its leaf only, so that with any number of training
rows the cost per row stays the same. At the edge of a leaf predictions may jump.

Rows are x (n, D), except for the feature map, which takes rows (x, 1).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.linalg import eigh

from rfrboost._model.bumps import Bumps
from rfrboost._model.metric import DENSE_COLUMNS
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import product, stretched
from rfrboost._numerics.sizes import BATCH_ROWS
from rfrboost._numerics.threads import check_clock
from rfrboost._typing import Array, Indices

# The most rows of a node from which the direction of largest spread is computed; with more than
# DENSE_COLUMNS columns that many, so that it is one of a matrix of that size.
SPREAD_ROWS = 4096


@dataclass(frozen=True)
class Splits:
    """A complete binary tree.

    Node i sends a row x to node 2i + 2 if x·directions[i] is above thresholds[i], else to node
    2i + 1. ``directions`` are (nodes, D), ``thresholds`` (nodes,). Leaves are numbered from left to
    right.
    """

    directions: Array
    thresholds: Array

    @property
    def n_leaves(self) -> int:
        return len(self.thresholds) + 1

    def __call__(self, X: Array) -> Indices:
        """The number of the leaf (n,) that each row falls into."""
        node = np.zeros(len(X), np.intp)
        for begin in range(0, len(X), BATCH_ROWS):
            rows = X[begin : begin + BATCH_ROWS]
            own = node[begin : begin + BATCH_ROWS]
            for _ in range(self.n_leaves.bit_length() - 1):
                along = np.einsum("ij,ij->i", rows, self.directions[own])
                own[...] = 2 * own + 1 + (along > self.thresholds[own])
        return node - len(self.thresholds)


def grow(
    X: Array, rows: Indices, L: Array, most: int, rng: Generator, deadline: float = np.inf
) -> Splits:
    """Splits of some ``rows`` of X into leaves of at most ``most`` of them.

    Spread is measured in the metric L. Equal rows stay in one leaf, even if there are more of them
    than ``most``. Raises ``OutOfTimeError`` at the first split after the deadline.
    """
    n_nodes = 2 ** max(int(np.ceil(np.log2(len(rows) / most))), 0) - 1
    spread_rows = SPREAD_ROWS if X.shape[1] <= DENSE_COLUMNS else DENSE_COLUMNS
    directions = np.zeros((n_nodes, X.shape[1]))
    thresholds = np.zeros(n_nodes)
    parts = [rows]
    for i in range(n_nodes):
        check_clock(deadline)
        own = parts[i]
        directions[i] = widest(X[own[rng.permutation(len(own))[:spread_rows]]], L)
        # Some rows at a time, of which there may be more than memory has room for twice.
        along = np.empty(len(own))
        for begin in range(0, len(own), BATCH_ROWS):
            s = slice(begin, begin + BATCH_ROWS)
            along[s] = product(X[own[s]], directions[i][:, None])[:, 0]
        thresholds[i] = middle(along)
        right = along > thresholds[i]
        parts += [own[~right], own[right]]
    return Splits(frozen(directions), frozen(thresholds))


def widest(X: Array, L: Array) -> Array:
    """The direction v such that x·v is the first principal component of rows x·L."""
    if len(X) < 2:
        return np.zeros(X.shape[1])
    Z = stretched(X, L)
    u = principal(Z - Z.mean(axis=0))
    # The sign of an eigenvector is arbitrary: here its largest entry is positive.
    u = u * np.sign(u[np.argmax(np.abs(u)), 0])
    return (L[:, None] * u if L.ndim == 1 else product(L, u))[:, 0]


def principal(Z: Array) -> Array:
    """The first principal component (D, 1) of centred rows.

    Of fewer rows than columns it follows from their inner products, which are fewer.
    """
    if len(Z) >= Z.shape[1]:
        _, vectors = eigh(product(Z.T, Z))
        of_columns: Array = vectors[:, -1:]
        return of_columns
    _, vectors = eigh(product(Z, Z.T))
    along = product(Z.T, vectors[:, -1:])
    return along / (float(np.linalg.norm(along)) or 1.0)


def middle(values: Array) -> float:
    """The threshold that halves the values: the centre of a gap between two of them.

    Of the two gaps around the median value it is that which halves better. In the centre of a gap
    rounding sends no row to the wrong side. If all values are equal it is that value.
    """
    ordered = np.sort(values) if len(values) else np.zeros(1)
    n = len(ordered)
    half = ordered[n // 2]
    ends = [int(np.searchsorted(ordered, half, side)) for side in ("left", "right")]
    gaps = [end for end in ends if 0 < end < n]
    if not gaps:
        return float(half)
    at = min(gaps, key=lambda end: abs(end - n / 2))
    return float((ordered[at - 1] + ordered[at]) / 2)


@dataclass(frozen=True)
class Leaf:
    """The kernel machine of a leaf: bumps f around its rows, and their sums Cᵀf + c."""

    bumps: Bumps
    C: Array
    c: Array

    def __call__(self, X: Array) -> Array:
        # In double precision: coefficients of close centres are large and cancel each other.
        F = self.bumps.between(X, self.bumps.centres, np.float64)
        return product(F, self.C.astype(float)) + self.c

    def pull(self, rows: Array, cotangent: Array) -> Array:
        """The chain rule at rows (x, 1): cotangents of the sums (n, d) to those of x."""
        return self.bumps.pullback(rows)(product(cotangent, self.C.T.astype(float)))


@dataclass(frozen=True)
class LocalSums:
    """A feature map of few features: the sums Cᵀf + c of the leaf that a row falls into.

    ``leaves`` has an entry for each leaf of ``splits``. A leaf without training rows has the entry
    of a neighbour.
    """

    splits: Splits
    leaves: tuple[Leaf, ...]

    # What every feature map states (see FeatureMap); sums are always in double precision.
    bound: ClassVar[float] = np.inf
    dtype: ClassVar[np.dtype] = np.dtype(np.float64)

    @property
    def width(self) -> int:
        return len(self.leaves[0].c)

    def astype(self, dtype: type[np.floating], largest_input: float) -> "LocalSums":
        return self

    def __call__(self, rows: Array, out: Array) -> None:
        for leaf, own in self._own_rows(rows):
            out[own] = leaf(rows[own, :-1])

    def _own_rows(self, rows: Array) -> Iterator[tuple[Leaf, Indices]]:
        """Each leaf that some rows fall into, with the numbers of these rows."""
        where = self.splits(rows[:, :-1])
        for j in np.unique(where):
            yield self.leaves[j], np.flatnonzero(where == j)

    def pullback(self, rows: Array) -> Callable[[Array], Array]:
        """The chain rule at rows (x, 1): cotangents of the sums (n, d) to those of x.

        It is that within the leaf of each row; jumps at the edges of leaves are ignored.
        """

        def pull(cotangent: Array) -> Array:
            total = np.zeros((len(rows), rows.shape[1] - 1))
            for leaf, own in self._own_rows(rows):
                total[own] = leaf.pull(rows[own], cotangent[own])
            return total

        return pull
