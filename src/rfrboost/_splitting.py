"""Sample splitting: rows in memory, shuffled and cut into equal runs, one for every layer."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from rfrboost._chunks import InMemory
from rfrboost._rows import Rows, content_order
from rfrboost._typing import Indices


@dataclass(frozen=True)
class RunOrder:
    """Draws rows of the run that the present layer is fitted on."""

    rows: Rows

    def draw(self, size: int, rng: Generator) -> Indices:
        n = self.rows.size // self.rows.parts
        first, u = self.rows.part * n, rng.random(size)
        if self.rows.w is None:
            return first + (u * n).astype(np.intp)
        cumulative = np.cumsum(self.rows.w[first : first + n])
        return first + np.searchsorted(cumulative, u * cumulative[-1], side="right")


def split(chunks: InMemory, rng: Generator) -> RunOrder:
    """Shuffle the rows, by their content and not by their order; what is too many is left out."""
    (rows,) = chunks.chunks
    order = content_order(rows.x, rows.y, rng)
    kept = order[rng.permutation(rows.size)[: rows.size // rows.parts * rows.parts]]
    rows.x, rows.y, rows.w = rows.x[kept], rows.y[kept], None if rows.w is None else rows.w[kept]
    rows.size = len(kept)
    chunks.facts = replace(chunks.facts, n_rows=len(kept))
    return RunOrder(rows)
