"""TODO _model.history."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class LayerRecord:
    """What happened in one layer."""

    layer: int
    loss: float
    step_length: float
    gradient_norm: float
    seconds: float


Watch = Callable[[LayerRecord], None]
