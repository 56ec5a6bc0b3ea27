"""TODO _model.history."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class LayerRecord:
    """What happened in one layer."""

    layer: int
    loss: float
    step_length: float
    gradient_norm: float
    seconds: float


Watch = Callable[[LayerRecord], None]


def in_units(record: LayerRecord, scale: float, degree: int) -> LayerRecord:
    """A record of a fit to scaled targets, in the units of y (as far as a float can hold them)."""

    def scaled(value: float, power: int) -> float:
        with np.errstate(all="ignore"):
            return float(np.nan_to_num(value * np.float64(scale) ** power))

    return replace(
        record,
        loss=scaled(record.loss, degree),
        gradient_norm=scaled(record.gradient_norm, degree),
        step_length=scaled(record.step_length, degree - 2 if degree else 0),
    )
