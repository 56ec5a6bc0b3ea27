"""The history of a fit: a record for every layer."""

from dataclasses import dataclass
from typing import Protocol


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


class Watch(Protocol):
    """An observer of a fit: it gets the record of every layer, and decides whether to go on."""

    #: whether the fit is to end with what has been fitted, without another family
    ended: bool

    def begin(self, phase: str) -> None:
        """Take note that a phase of the fit begins."""

    def layer(self, record: LayerRecord) -> bool:
        """Take the record of a layer that was fitted; whether another one may follow."""
