"""Rows that a streamed fit holds out, and what they say about when to stop."""

from time import perf_counter

import numpy as np
from numpy.random import default_rng

from rfrboost._model.losses import Loss
from rfrboost._model.network import Network, centered
from rfrboost._numerics.arrays import hashed, projection
from rfrboost._numerics.sizes import BATCH_ROWS
from rfrboost._paper.stopping import FEWEST_LAYERS, Stopping
from rfrboost._typing import Array

SHARE, MOST_ROWS = 0.1, 10_000


# Decides, with a row's content, whether it is held out; not part of any model's randomness.
SEED = 0


class HeldOutRows:
    """Takes rows out of blocks as they pass: about a tenth, and never many more than 10,000.

    Which ones depends on their content: rows are the same whatever blocks they come in.
    """

    def __init__(self, n_rows: int) -> None:
        self.share = min(SHARE, MOST_ROWS / n_rows)
        self.begin()

    def begin(self) -> None:
        """Forget what was kept."""
        self.complete = False
        self._parts: list[tuple[Array, Array, Array]] = []

    def split(
        self, X: Array, y: Array, w: Array | None, content: Array
    ) -> tuple[Array, Array, Array | None]:
        """The rows that are fitted; the others are kept, if that has not been done before.

        ``content`` is the targets in numbers that are the same wherever a row is.
        """
        direction = default_rng(SEED).standard_normal(X.shape[1] + content.shape[1])
        held = hashed(projection(np.hstack([X, content]), direction)) < self.share
        if not self.complete:
            weights = np.ones(len(y)) if w is None else w
            self._parts.append((X[held], y[held], weights[held]))
        return X[~held], y[~held], None if w is None else w[~held]

    def close(self) -> None:
        """All rows have passed."""
        if not self.complete:
            self.X, self.y, self.w = (np.concatenate(a) for a in zip(*self._parts, strict=True))
            self._parts, self.complete = [], True


class Judge:
    """Asked after every layer whether another one may help, as in an ensemble; and whether there
    is time for it."""

    def __init__(self, held: HeldOutRows, loss: Loss, max_seconds: float | None) -> None:
        self.held, self.loss = held, loss
        self.deadline = np.inf if max_seconds is None else perf_counter() + max_seconds
        self.n_layers = -1
        self.stopping = Stopping()

    def __call__(self, network: Network) -> bool:
        more = perf_counter() < self.deadline
        if not len(self.held.y):
            # Nothing to go by: as many layers as would not be judged anyhow.
            self.stopping.best_layers = len(network.layers)
            return more and len(network.layers) < FEWEST_LAYERS
        self._catch_up(network)
        losses = self.loss.value(network.heads[-1](self.phi), self.held.y)
        mean = float(self.held.w @ losses / self.held.w.sum())
        self.stopping.improves(mean, self.n_layers)
        return more and not self.stopping.stalled(self.n_layers)

    def kept(self, network: Network) -> Network:
        """The layers that helped."""
        if len(network.layers) > self.n_layers:
            self(network)
        t = self.stopping.best_layers
        return Network(network.mean, network.initial, network.layers[:t], network.heads[: t + 1])

    def _catch_up(self, network: Network) -> None:
        """Bring the held-out rows' Φ to the network's last layer."""
        if self.n_layers < 0:
            self.x = centered(self.held.X, network.mean)
            self.phi = network.start(self.x)
        for layer in network.layers[max(self.n_layers, 0) :]:
            for begin in range(0, len(self.x), BATCH_ROWS):
                s = slice(begin, begin + BATCH_ROWS)
                shape = (len(self.x[s]), layer.features.width)
                F = np.empty(shape, layer.features.dtype, order="F")
                layer.features(self.phi[s], self.x[s], F)
                layer.advance(self.phi[s], layer.step.outputs(F))
        self.n_layers = len(network.layers)
