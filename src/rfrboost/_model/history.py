"""The history of a fit: a record for every layer, and its conversion to the units of y."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class LayerRecord:
    """What happened in one layer; ``history_`` of an estimator is a list of these as dicts.

    ``loss`` is the mean loss after the layer (of held-out rows in an ensemble), ``step_length`` the
    step's α, ``gradient_norm`` the L₂ norm of the functional gradient, and ``seconds`` the time
    that the layer took.
    """

    layer: int
    loss: float
    step_length: float
    gradient_norm: float
    seconds: float


#: a function that a fit calls after every layer
Watch = Callable[[LayerRecord], None]


def in_units(record: LayerRecord, scale: float, degree: int) -> LayerRecord:
    """The record of a fit to targets y / scale, in the units of y.

    ``degree`` is that of the loss, l(c·raw, c·y) = c^degree · l(raw, y), or 0 for a loss without
    units. Numbers too large for a float become the largest that it can hold.
    """

    def scaled(value: float, power: int) -> float:
        with np.errstate(all="ignore"):
            return float(np.nan_to_num(value * np.float64(scale) ** power))

    return replace(
        record,
        loss=scaled(record.loss, degree),
        gradient_norm=scaled(record.gradient_norm, degree),
        step_length=scaled(record.step_length, degree - 2 if degree else 0),
    )
