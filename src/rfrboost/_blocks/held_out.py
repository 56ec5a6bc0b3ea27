"""Rows that a large fit holds out while it reads them, and early stopping by their loss.

For fits of rows that are not in memory: which rows are held out is decided row by row, by a random
number that belongs to a row's place among all rows, so that it does not depend on the blocks that
rows come in. Equal rows are decided on apart: tables of few columns have many of them, and would
otherwise hold out nearly all rows of a class, or none.
"""

from time import perf_counter

import numpy as np

from rfrboost._model.losses import Loss
from rfrboost._model.network import Network, centered
from rfrboost._numerics.arrays import hashed
from rfrboost._numerics.sizes import BATCH_ROWS
from rfrboost._paper.stopping import FEWEST_LAYERS, Stopping
from rfrboost._typing import Array, Indices

# The share of the rows that is held out, and about how many rows at most: the mean loss of 10,000
# rows has a standard error of one percent of the standard deviation of a single row's loss, and
# they fit into memory.
SHARE = 0.1
MOST_ROWS = 10_000


class HeldOutRows:
    """Takes the held-out rows out of each block.

    These are about SHARE of all rows, or about MOST_ROWS if that is fewer. ``n_rows`` is the number
    of all rows. After the first complete reading through this object, X, y and w are the held-out
    rows; y is afterwards replaced by the targets in the units of the fit, or by class columns.
    """

    def __init__(self, n_rows: int) -> None:
        self.share = min(SHARE, MOST_ROWS / n_rows)
        self.begin()

    def begin(self) -> None:
        """Forget the rows held out so far, before the rows are read again from the start."""
        self.complete = False
        self._parts: list[tuple[Array, Array, Array]] = []

    def split(
        self, X: Array, y: Array, w: Array | None, places: Indices
    ) -> tuple[Array, Array, Array | None]:
        """The rows of a block to fit; the others are kept until the first reading is complete.

        ``places`` (m,) are the places of the block's rows among all rows. No seed goes into this,
        so that models of all seeds are stopped by the same rows.
        """
        held = hashed(places + 1.0) < self.share
        if not self.complete:
            weights = np.ones(len(y)) if w is None else w
            self._parts.append((X[held], y[held], weights[held]))
        return X[~held], y[~held], None if w is None else w[~held]

    def close(self) -> None:
        """Put together what was held out, once all rows have been read."""
        if not self.complete:
            self.X, self.y, self.w = (np.concatenate(a) for a in zip(*self._parts, strict=True))
            self._parts = []
            self.complete = True


class HeldOutStopping:
    """Early stopping of :func:`rfrboost._paper.boost.boost` by held-out rows, and by time.

    Called with the network so far, it says whether another layer may be added: one that takes as
    long as the last must end before the ``deadline``, a reading of ``time.perf_counter``.
    ``phi`` is Φ, the representation, of the held-out rows; it is kept from call to call.
    """

    def __init__(self, held: HeldOutRows, loss: Loss, deadline: float) -> None:
        self.held = held
        self.loss = loss
        self.deadline = deadline
        self.called: float | None = None
        self.n_layers = -1
        self.stopping = Stopping()

    def __call__(self, network: Network) -> bool:
        now = perf_counter()
        last_layer = 0.0 if self.called is None else now - self.called
        in_time = now + last_layer < self.deadline
        self.called = now
        if not len(self.held.y):
            # No row was held out: fit FEWEST_LAYERS layers, if time allows, and keep them.
            self.stopping.best_layers = len(network.layers)
            return in_time and len(network.layers) < FEWEST_LAYERS
        self._advance(network)
        losses = self.loss.value(network.heads[-1](self.phi), self.held.y)
        mean = float(self.held.w @ losses / self.held.w.sum())
        self.stopping.improves(mean, self.n_layers)
        return in_time and not self.stopping.stalled(self.n_layers)

    def kept(self, network: Network) -> Network:
        """The network with the layers up to the best held-out loss."""
        if len(network.layers) > self.n_layers:
            self(network)
        t = self.stopping.best_layers
        return Network(network.mean, network.initial, network.layers[:t], network.heads[: t + 1])

    def _advance(self, network: Network) -> None:
        """Compute Φ of the held-out rows after the network's last layer."""
        if self.n_layers < 0:
            self.x = centered(self.held.X, network.mean)
            self.phi = network.start(self.x)
        for layer in network.layers[max(self.n_layers, 0) :]:
            for begin in range(0, len(self.x), BATCH_ROWS):
                rows = slice(begin, begin + BATCH_ROWS)
                shape = (len(self.x[rows]), layer.features.width)
                F = np.empty(shape, layer.features.dtype, order="F")
                layer.features(self.phi[rows], self.x[rows], F)
                layer.advance(self.phi[rows], layer.step.outputs(F))
        self.n_layers = len(network.layers)
