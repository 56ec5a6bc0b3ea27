"""How much each column matters to a model: what shuffling the column changes in its predictions.

With f the prediction of a row, and f_j the same after column j was taken from another row, the
total effect of the column is E(f − f_j)² / (2·Var f): Jansen's estimate (1999) of the share of the
variance of f that depends on column j, alone or together with others. If the predictions are right
in the mean, E(f − f_j)² is also what shuffling the column adds to the squared error (for
probabilities, the Brier score) of new rows. So the shares agree with permutation importance on
held-out rows, and need neither labels nor derivatives. Columns that carry the same information
share what it counts.

:func:`shares_at` is the only formula. An automatic fit keeps the few encoded training rows that it
needs (:class:`ShuffledRows`), because thousands of rows are predicted for it: that is done when
somebody asks. :mod:`rfrboost.inspection` calls it with the rows of any table.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng

from rfrboost._model.network import Network
from rfrboost._numerics.arrays import content_order
from rfrboost._typing import Array, Indices

#: predictions (q, d) of made-up rows: entry (i, j) of the indices (q, D) says from which row of a
#: table row i has its column j
Recombined = Callable[[Indices], Array]

# Each column is shuffled at FEWEST_ROWS to MOST_ROWS rows: as many as make the rows that are
# predicted in all those of the table, or LEAST_PREDICTED if it has fewer.
LEAST_PREDICTED = 8192
FEWEST_ROWS = 4
MOST_ROWS = 1024
# Rows and those that they take columns from are drawn in turn, in this number of parts.
PARTS = 8
# Rows that are predicted at a time, and numbers in them.
BATCH_ROWS = 4096
BATCH_ENTRIES = 2**16


@dataclass(frozen=True)
class ShuffledRows:
    """The encoded training rows at which the columns of a table are shuffled.

    The first half of ``X`` (2m, D) are rows, and each row of the second half is where one of the
    first takes a column from. ``sources`` (D,) says which column of the table each encoded column
    was made from: these are shuffled together. ``same_unit`` is that of :func:`column_shares`.
    """

    X: Array
    sources: Indices
    same_unit: bool

    def shares(self, network: Network, link: Callable[[Array], Array], n_columns: int) -> Array:
        """The shares (n_columns,) of a table's columns in an ensemble's predictions.

        ``link`` makes predictions of raw ones.
        """
        used, place = np.unique(self.sources, return_inverse=True)

        def recombined(indices: Indices) -> Array:
            rows = np.take_along_axis(self.X, indices[:, place], axis=0)
            return link(network.raw(rows))

        halves = np.arange(len(self.X)).reshape(2, -1)
        shares = shares_at(recombined, halves, len(used), self.same_unit)
        return np.bincount(used, shares, n_columns).astype(float)


def shuffled_rows(X: Array, w: Array | None, sources: Indices, same_unit: bool) -> ShuffledRows:
    """The rows that importances need of encoded training rows ``X`` (n, D) with weights ``w``."""
    rng = default_rng(SeedSequence(0))
    order = content_order(X, np.zeros((len(X), 1)), rng)
    chances = None if w is None else w[order] / w.sum()
    drawn = drawn_rows(len(X), len(np.unique(sources)), rng, chances)
    return ShuffledRows(X[order[drawn.ravel()]], sources, same_unit)


def drawn_rows(
    n_rows: int, n_columns: int, rng: Generator, chances: Array | None = None
) -> Indices:
    """Rows of a table, and those that they take columns from (2, m), drawn for its size.

    ``chances`` (n_rows,) are the probabilities with which rows are drawn, by default the same.
    """
    affordable = max(n_rows, LEAST_PREDICTED) // n_columns
    most = int(np.clip(affordable, FEWEST_ROWS, MOST_ROWS))
    parts = min(PARTS, most)
    drawn = spread_rows(n_rows, chances, 2 * (most // parts) * parts, rng)
    return drawn.reshape(parts, 2, -1).swapaxes(0, 1).reshape(2, -1)


def column_shares(
    recombined: Recombined,
    n_rows: int,
    n_columns: int,
    rng: Generator,
    same_unit: bool,
    chances: Array | None = None,
) -> Array:
    """The columns' shares in the sum of their total effects, (n_columns,).

    Parameters
    ----------
    recombined : function of indices (q, n_columns) to predictions (q, d)
        Predicts rows whose columns are taken from different rows of a table.
    n_rows, n_columns : int
        The size of that table.
    rng : Generator
        Draws the rows.
    same_unit : bool
        Whether outputs have the same unit, as probabilities do. Otherwise each is divided by its
        standard deviation.
    chances : array of shape (n_rows,), optional
        The probability with which a row is drawn, by default the same for all.
    """
    drawn = drawn_rows(n_rows, n_columns, rng, chances)
    return shares_at(recombined, drawn, n_columns, same_unit)


def shares_at(recombined: Recombined, drawn: Indices, n_columns: int, same_unit: bool) -> Array:
    """As :func:`column_shares`, at rows that were drawn before (:func:`drawn_rows`)."""
    rows, donors = drawn
    before = recombined(np.tile(rows[:, None], n_columns))
    moved = shuffled(recombined, rows, donors, n_columns)
    changes = np.stack([np.square(other - before).mean(axis=0) for other in moved])
    variances = before.var(axis=0)
    units = 1.0 if same_unit else np.where(variances > 0, variances, 1.0)
    effects: Array = (changes / units).sum(axis=1)
    return effects / (effects.sum() or 1.0)


def spread_rows(n_rows: int, chances: Array | None, size: int, rng: Generator) -> Indices:
    """``size`` rows in random order, each as often as its chance says, rounded up or down."""
    ends = np.cumsum(np.full(n_rows, 1 / n_rows) if chances is None else chances)
    places = (np.arange(size) + rng.random()) * (ends[-1] / size)
    return rng.permutation(np.minimum(np.searchsorted(ends, places), n_rows - 1))


def shuffled(
    recombined: Recombined, rows: Indices, donors: Indices, n_columns: int
) -> Iterator[Array]:
    """For each column in turn, predictions (m, d) of ``rows`` with it taken from ``donors``."""
    m = len(rows)
    at_a_time = max(1, min(BATCH_ROWS, BATCH_ENTRIES // n_columns) // m)
    for begin in range(0, n_columns, at_a_time):
        columns = np.arange(begin, min(begin + at_a_time, n_columns))
        indices = np.tile(rows[:, None], (len(columns), 1, n_columns))
        indices[np.arange(len(columns)), :, columns] = donors
        yield from np.split(recombined(indices.reshape(-1, n_columns)), len(columns))
