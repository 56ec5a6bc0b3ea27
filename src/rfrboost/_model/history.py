"""The history of a fit: a record for every layer."""

from collections.abc import Callable
from dataclasses import dataclass


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
