"""Oblivious trees as random features: sums of leaf values, for what neurons and bumps see badly.

An oblivious tree of height h asks the same h questions of every row, "is column j above this
threshold?", and the answers, read as a binary number, are the number of the row's leaf. Thresholds,
counters and categories that interact are steps of few columns; trees represent them directly.

A leaf indicator is a random feature like any other, and its coefficients are the leaf's values. All
trees of a member are kept as one sum, so that :class:`Trees` is a feature map with one feature for
each member and output.

Shapes: m members, T trees for each of them, d outputs; rows are (x, 1), of shape (n, D + 1).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rfrboost._numerics.arrays import frozen
from rfrboost._typing import Array, Indices

# Rows that are sent through the trees at a time: the answers to all distinct questions, a byte
# each, then stay in a processor's cache.
TREE_ROWS = 256
# Leaf values that are looked up at a time, 1 MB: one row is sent through thousands of trees at
# once.
LOOKED_UP = 2**17


@dataclass(frozen=True)
class Trees:
    """The sums of m·d features: for each member and output, the values of the row's leaves.

    ``columns`` and ``thresholds`` (m, T, h) are the questions of every tree, the first of which
    decides the highest bit of a leaf's number; ``values`` (m, T, 2^h, d) are those of the leaves.
    """

    columns: Indices
    thresholds: Array
    values: Array

    # What every feature map states (see FeatureMap); sums are always in double precision.
    bound: ClassVar[float] = np.inf
    dtype: ClassVar[np.dtype] = np.dtype(np.float64)

    @property
    def width(self) -> int:
        return int(self.values.shape[0] * self.values.shape[3])

    def astype(self, dtype: type[np.floating], largest_input: float) -> "Trees":
        return self

    def of_members(self, kept: tuple[int, ...]) -> "Trees":
        """The trees of some of the members, with d features for each of these."""
        if kept == tuple(range(len(self.values))):
            return self
        own = list(kept)
        columns = self.columns[own]
        columns.flags.writeable = False
        return Trees(columns, frozen(self.thresholds[own]), frozen(self.values[own]))

    @cached_property
    def questions(self) -> tuple[Indices, Array, Indices]:
        """All distinct questions, as columns and thresholds, and which of them each node asks.

        The last is (m·T, h). There are few questions, because thresholds are drawn from few.
        """
        asked = np.stack([self.columns.ravel().astype(float), self.thresholds.ravel()], axis=1)
        distinct, which = np.unique(asked, axis=0, return_inverse=True)
        height = self.columns.shape[2]
        return distinct[:, 0].astype(np.intp), distinct[:, 1], which.reshape(-1, height)

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle holds: the trees alone, without the questions kept for predicting."""
        return {name: self.__dict__[name] for name in ("columns", "thresholds", "values")}

    def __call__(self, rows: Array, out: Array) -> None:
        for begin in range(0, len(rows), TREE_ROWS):
            some = slice(begin, begin + TREE_ROWS)
            out[some] = self._sums(rows[some])

    def _sums(self, rows: Array) -> Array:
        """The features (n, m·d) of some rows."""
        members, trees, leaves, outputs = self.values.shape
        columns, thresholds, which = self.questions
        answers = (rows.T[columns] > thresholds[:, None]).view(np.uint8)
        by_leaf = self.values.reshape(-1, outputs)
        sums = np.zeros((members, len(rows) * outputs))
        step = max(LOOKED_UP // (len(rows) * outputs), 1)
        for member in range(members):
            first, end = member * trees, (member + 1) * trees
            for begin in range(first, end, step):
                some = slice(begin, min(begin + step, end))
                places = leaf_numbers(answers, which[some])
                places += np.arange(some.start, some.stop)[:, None] * leaves
                # Places are inside by construction; "clip" looks them up without a second check.
                values = by_leaf.take(places.ravel(), axis=0, mode="clip")
                sums[member] += values.reshape(len(places), -1).sum(axis=0)
        return sums.reshape(members, len(rows), outputs).transpose(1, 0, 2).reshape(len(rows), -1)

    def pullback(self, rows: Array) -> Callable[[Array], Array]:
        """The chain rule at rows (x, 1): steps are flat almost everywhere, so that it is zero."""
        return lambda cotangent: np.zeros((len(rows), rows.shape[1] - 1))


def leaf_numbers(answers: NDArray[np.uint8], which: Indices) -> Indices:
    """The leaf that each row falls into, for every tree (T, n).

    ``answers`` (questions, n) are those to all distinct questions, and ``which`` (T, h) says which
    of these each tree asks.
    """
    # Most trees have a height of at most eight, so that a byte holds the number of a leaf.
    narrow = np.uint8 if which.shape[1] <= 8 else np.uint32
    number = answers.take(which[:, 0], axis=0).astype(narrow, copy=False)
    for level in range(1, which.shape[1]):
        # Doubled by an addition: NumPy's shifts of bytes are ten times as slow.
        np.add(number, number, out=number)
        np.add(number, answers.take(which[:, level], axis=0), out=number)
    return number.astype(np.intp)
