"""Several quantile levels of one target in one fit, in an order that never breaks."""

from dataclasses import dataclass

import numpy as np

from rfrboost._losses import Quantile, weighted_quantile
from rfrboost._typing import Array, frozen


@dataclass(frozen=True)
class Quantiles(Quantile):
    """The sum of the pinball losses at rising levels (an array), one raw prediction for each.

    Raw predictions of neighbouring levels may cross, so predictions are raw ones sorted
    (Chernozhukov, Fernández-Val, Galichon: Quantile and probability curves without crossing, 2010).
    Sorting never raises the sum of the losses, and it leaves the fit convex, which a link that
    orders levels, such as sums of exponentials, would not.
    """

    def in_units(self, scale: float) -> "Quantiles":
        return Quantiles(self.level, self.smoothing / scale)

    def n_outputs(self, y: Array) -> int:
        return np.size(self.level)

    def start(self, y: Array, w: Array) -> Array:
        return weighted_quantile(np.repeat(y, np.size(self.level), axis=1), w, self.level)

    def predict(self, raw: Array) -> Array:
        return np.sort(raw, axis=1)

    def check(self, y: Array) -> None:
        if y.shape[1] > 1:
            raise ValueError(
                f"Several quantile levels are predictions of one target, but y has {y.shape[1]} "
                "columns. Fit one model for each, or give one level."
            )

    def score(self, prediction: Array, y: Array, w: Array | None) -> float:
        """1 − the pinball losses' sum over that of the best constants; 1 is perfect."""
        w = np.ones(len(y)) if w is None else w
        y = np.asarray(y, dtype=float).reshape(-1, 1)
        constants = np.tile(self.start(y, w), (len(y), 1))
        lost, at_stake = (float(w @ pinball(p, y, self.level)) for p in (prediction, constants))
        if at_stake > 0:
            return 1.0 - lost / at_stake
        return float(lost == 0)


def pinball(prediction: Array, y: Array, level: float | Array) -> Array:
    """The pinball losses of every row, summed over levels."""
    r = y - prediction
    return np.sum(np.maximum(level * r, (level - 1.0) * r), axis=1)


def checked_levels(levels: object) -> Array:
    """A sequence of levels as an array, or a ValueError if they do not rise within (0, 1)."""
    try:
        array = np.asarray(levels, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    fine = array.ndim == 1 and len(array) > 0 and array.min() > 0 and array.max() < 1
    if not (fine and (np.diff(array) > 0).all()):
        raise ValueError(
            "quantile must be a level between 0 and 1 or a sequence of such levels, each larger "
            f"than the one before, as in (0.05, 0.5, 0.95); got {levels!r}."
        )
    return frozen(array)
