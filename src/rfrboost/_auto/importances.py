"""How much each column matters to a model: what shuffling the column changes in its predictions.

With f the prediction of a row, and f_j the same after column j was taken from another row, the
total effect of the column is E(f − f_j)² / (2·Var f): Jansen's estimate (1999) of the share of the
variance of f that depends on column j, alone or together with others. If the predictions are right
in the mean, E(f − f_j)² is also what shuffling the column adds to the squared error (for
probabilities, the Brier score) of new rows. So the shares agree with permutation importance on
held-out rows, and need neither labels nor derivatives. Columns that carry the same information
share what it counts.

:func:`column_shares` is the only formula. An automatic fit calls it through :func:`importances`
with the encoded training rows, and :mod:`rfrboost.inspection` with the rows of any table.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng

from rfrboost._model.network import Network
from rfrboost._numerics.arrays import content_order
from rfrboost._numerics.threads import OutOfTimeError, check_clock
from rfrboost._typing import Array, Indices

#: predictions (q, d) of made-up rows: entry (i, j) of the indices (q, D) says from which row of a
#: table row i has its column j
Recombined = Callable[[Indices], Array]

# Each column is shuffled at FEWEST_ROWS to MOST_ROWS rows: as many as make the rows that are
# predicted in all those of the table, or LEAST_PREDICTED if it has fewer. So it costs little beside
# the fit, which predicts all rows many times.
LEAST_PREDICTED = 8192
FEWEST_ROWS = 4
MOST_ROWS = 1024
# Most passes over all columns, each with an equal part of the rows: when time is up, those that are
# complete count.
PASSES = 8
# Rows that are predicted between two looks at the clock, and numbers in them: a row of thousands of
# columns takes tens of milliseconds.
BATCH_ROWS = 4096
BATCH_ENTRIES = 2**16


def importances(
    network: Network,
    link: Callable[[Array], Array],
    X: Array,
    w: Array | None,
    sources: Indices,
    same_unit: bool,
    deadline: float,
) -> Array:
    """The shares of a table's columns in an ensemble's predictions.

    ``link`` makes predictions of raw ones. ``X`` are the encoded training rows (n, D), ``w`` their
    weights, and ``sources`` (D,) says which column of the table each encoded column was made from:
    these are shuffled together. For ``same_unit`` and ``deadline`` see :func:`column_shares`. The
    result ends with the last column that is a source.
    """
    check_clock(deadline)
    rng = default_rng(SeedSequence(0))
    order = content_order(X, np.zeros((len(X), 1)), rng)
    used, place = np.unique(sources, return_inverse=True)

    def recombined(indices: Indices) -> Array:
        rows = np.take_along_axis(X, order[indices[:, place]], axis=0)
        return link(network.raw(rows))

    chances = None if w is None else w[order] / w.sum()
    shares = column_shares(recombined, len(X), len(used), rng, same_unit, chances, deadline)
    return np.bincount(used, shares).astype(float)


def column_shares(
    recombined: Recombined,
    n_rows: int,
    n_columns: int,
    rng: Generator,
    same_unit: bool,
    chances: Array | None = None,
    deadline: float = np.inf,
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
    deadline : float, optional
        The reading of ``perf_counter`` after which no more is predicted. If it comes before the end
        of the first pass, ``OutOfTimeError`` is raised.
    """
    affordable = max(n_rows, LEAST_PREDICTED) // n_columns
    in_all = int(np.clip(affordable, FEWEST_ROWS, MOST_ROWS))
    passes = min(PASSES, in_all)
    m = in_all // passes
    drawn = spread_rows(n_rows, chances, 2 * m * passes, rng).reshape(passes, 2, m)
    before = []
    changes: list[list[Array]] = []
    for rows, donors in drawn:
        predicted = recombined(np.tile(rows[:, None], n_columns))
        try:
            moved = list(shuffled(recombined, rows, donors, n_columns, deadline))
        except OutOfTimeError:
            if changes:
                break
            raise
        before.append(predicted)
        changes.append([np.square(other - predicted).mean(axis=0) for other in moved])
    variances = np.concatenate(before).var(axis=0)
    units = 1.0 if same_unit else np.where(variances > 0, variances, 1.0)
    effects: Array = (np.mean(changes, axis=0) / units).sum(axis=1)
    return effects / (effects.sum() or 1.0)


def spread_rows(n_rows: int, chances: Array | None, size: int, rng: Generator) -> Indices:
    """``size`` rows in random order, each as often as its chance says, rounded up or down."""
    ends = np.cumsum(np.full(n_rows, 1 / n_rows) if chances is None else chances)
    places = (np.arange(size) + rng.random()) * (ends[-1] / size)
    return rng.permutation(np.minimum(np.searchsorted(ends, places), n_rows - 1))


def shuffled(
    recombined: Recombined, rows: Indices, donors: Indices, n_columns: int, deadline: float
) -> Iterator[Array]:
    """For each column in turn, predictions (m, d) of ``rows`` with it taken from ``donors``.

    Raises ``OutOfTimeError`` at the first batch after the deadline.
    """
    m = len(rows)
    at_a_time = max(1, min(BATCH_ROWS, BATCH_ENTRIES // n_columns) // m)
    for begin in range(0, n_columns, at_a_time):
        check_clock(deadline)
        columns = np.arange(begin, min(begin + at_a_time, n_columns))
        indices = np.tile(rows[:, None], (len(columns), 1, n_columns))
        indices[np.arange(len(columns)), :, columns] = donors
        yield from np.split(recombined(indices.reshape(-1, n_columns)), len(columns))
