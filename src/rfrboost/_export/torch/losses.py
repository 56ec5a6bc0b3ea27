"""Losses and their links on PyTorch tensors.

A built-in loss has its value in ``torch_value``, beside its NumPy form in
:mod:`rfrboost._model.losses`; here are the links. Losses that users define are refused.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from rfrboost._model.loss import LARGEST_EXPONENT, BuiltInLoss, Link, Loss
from rfrboost._model.losses import is_built_in


def two_probabilities(raw: Tensor) -> Tensor:
    """1 − p and p of one logit, (n, 1) to (n, 2)."""
    return torch.hstack([torch.sigmoid(-raw), torch.sigmoid(raw)])


#: how raw predictions become predictions, for every link
LINKS: dict[Link, Callable[[Tensor], Tensor]] = {
    "identity": lambda raw: raw,
    "exponential": lambda raw: torch.exp(raw.clamp(max=LARGEST_EXPONENT)),
    "sigmoid": two_probabilities,
    "sigmoids": torch.sigmoid,
    "softmax": lambda raw: torch.softmax(raw, dim=1),
    "sorted": lambda raw: raw.sort(dim=1).values,
}


def value(loss: Loss, raw: Tensor, y: Tensor) -> Tensor:
    """l(raw, y), one value per row, up to a constant."""
    values: Tensor = checked(loss).torch_value(torch, raw, y)
    return values.sum(dim=1)


def predicted(loss: Loss, raw: Tensor) -> Tensor:
    """Predictions from raw predictions."""
    return LINKS[checked(loss).link](raw)


def checked(loss: Loss) -> BuiltInLoss:
    """The loss, if it is a built-in one; otherwise a ValueError that says what to do."""
    if not is_built_in(loss):
        raise ValueError(
            f"The loss {type(loss).__name__} cannot be used in PyTorch: only the losses of "
            "rfrboost have a form there. Fit with a loss of rfrboost."
        )
    return loss
