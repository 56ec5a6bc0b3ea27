"""Columns of free text: how often words occur in a cell, reduced to a few numbers.

The words of a cell are counted, weighted by how rare they are (TF-IDF), and projected on the
directions in which cells differ most (latent semantic analysis: a truncated singular value
decomposition). Words are found by scikit-learn's ``CountVectorizer``, directions by its
``TruncatedSVD``. The words, their weights and the directions are kept, at most MOST_WORDS ×
MOST_DIRECTIONS numbers, however many rows there are.

Not for names of categories: a column whose texts recur in several rows is a column of levels.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.sizes import BATCH_ROWS
from rfrboost._tables.table import Table
from rfrboost._typing import Array, Mask

# The most words that are kept, the most frequent ones, and the most columns of numbers that a
# column of text becomes: 2000 × 16 numbers take 256 KB in a model file.
MOST_WORDS = 2000
MOST_DIRECTIONS = 16

# Words in fewer rows than this are too rare to learn from.
FEWEST_ROWS = 3

# A column is free text if its cells have at least this many words on average.
FEWEST_WORDS = 2.0


@dataclass(frozen=True)
class TextColumn:
    """One column of free text: its words' counts times ``weights`` (words,), each row divided by
    its length, projected on ``directions`` (words, columns). Missing text is zeros."""

    column: int
    words: tuple[str, ...]
    weights: Array
    directions: Array

    @property
    def sources(self) -> tuple[int, ...]:
        return (self.column,) * int(self.directions.shape[1])

    @property
    def suffixes(self) -> tuple[str, ...]:
        return tuple(f" text {k}" for k in range(self.directions.shape[1]))

    def __call__(self, table: Table, out: Array) -> Mask | None:
        texts = table.texts(self.column)
        counter = CountVectorizer(vocabulary=list(self.words))
        for begin in range(0, len(texts), BATCH_ROWS):
            rows = slice(begin, begin + BATCH_ROWS)
            counts = counter.transform(documents(texts[rows]))
            out[rows] = weighted(counts, self.weights) @ self.directions
        return None


def has_words(texts: Collection[str]) -> bool:
    """Whether texts have at least ``FEWEST_WORDS`` words on average."""
    return sum(len(text.split()) for text in texts) >= FEWEST_WORDS * len(texts)


def fit_text(column: int, texts: Sequence[str | None], w: Array | None) -> TextColumn | None:
    """The encoder of a column of free text, or None if fewer than two words recur."""
    counter = CountVectorizer()
    try:
        counts = counter.fit_transform(documents(texts))
    except ValueError:
        # No cell has a word.
        return None
    w = np.ones(len(texts)) if w is None else w
    rows_with: Array = np.asarray((counts > 0).T @ w, dtype=float)
    words = counter.get_feature_names_out()
    frequent = np.lexsort((words, -rows_with))[:MOST_WORDS]
    chosen = np.sort(frequent[rows_with[frequent] >= FEWEST_ROWS])
    n_directions = min(MOST_DIRECTIONS, len(chosen) - 1, len(texts) - 1)
    if n_directions < 1:
        return None
    weights = 1 + np.log((1 + w.sum()) / (1 + rows_with[chosen]))
    found = TruncatedSVD(n_directions, algorithm="arpack", random_state=0)
    # A row of weight 2 counts as two equal rows.
    with np.errstate(divide="ignore", invalid="ignore"):
        # If all texts are alike, scikit-learn divides by their variance, which is 0.
        found.fit(sparse.diags(np.sqrt(w)) @ weighted(counts[:, chosen], weights))
    names = tuple(map(str, words[chosen]))
    return TextColumn(column, names, frozen(weights), frozen(found.components_.T))


def documents(texts: Sequence[str | None]) -> list[str]:
    """Texts, empty where missing."""
    return ["" if text is None else text for text in texts]


def weighted(counts: sparse.csr_matrix, weights: Array) -> sparse.csr_matrix:
    """Counts of words (n, words) times their weights, rows of length one."""
    return normalize(sparse.csr_matrix(counts.multiply(weights), dtype=float))
