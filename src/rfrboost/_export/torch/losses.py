"""The losses in PyTorch: their values, and their links."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rfrboost._model.losses import (
    LARGEST_EXPONENT,
    BinaryLogLoss,
    Huber,
    Loss,
    Poisson,
    Quantile,
    Quantiles,
    SoftmaxLogLoss,
    SquaredError,
)


def huber(loss: Huber, raw: Tensor, y: Tensor) -> Tensor:
    """½r² up to δ, linear beyond."""
    r = (raw - y).abs()
    inside = torch.minimum(r, torch.as_tensor(loss.delta, dtype=r.dtype, device=r.device))
    return inside * (r - 0.5 * inside)


def quantile(loss: Quantile, raw: Tensor, y: Tensor) -> Tensor:
    """The pinball loss, its kink rounded."""
    r = y - raw
    h, level = (
        torch.as_tensor(np.asarray(v), dtype=r.dtype, device=r.device)
        for v in (loss.smoothing, loss.level)
    )
    inside = torch.minimum(r.abs(), h)
    return r.abs() / 2 + (h - inside) ** 2 / (4 * h) + (level - 0.5) * r


def two_classes(raw: Tensor) -> Tensor:
    """1 − p and p."""
    return torch.hstack([torch.sigmoid(-raw), torch.sigmoid(raw)])


#: of every loss its value entry by entry, and what raw predictions predict
LOSSES: dict[type, tuple[Callable[[Any, Tensor, Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    SquaredError: (lambda loss, raw, y: 0.5 * (raw - y) ** 2, lambda raw: raw),
    Huber: (huber, lambda raw: raw),
    Quantile: (quantile, lambda raw: raw),
    Quantiles: (quantile, lambda raw: raw.sort(dim=1).values),
    Poisson: (
        lambda loss, raw, y: functional.poisson_nll_loss(raw, y, reduction="none"),
        lambda raw: torch.exp(raw.clamp(max=LARGEST_EXPONENT)),
    ),
    BinaryLogLoss: (
        lambda loss, raw, y: functional.binary_cross_entropy_with_logits(raw, y, reduction="none"),
        two_classes,
    ),
    SoftmaxLogLoss: (
        lambda loss, raw, y: -y * torch.log_softmax(raw, dim=1),
        lambda raw: torch.softmax(raw, dim=1),
    ),
}


def value(loss: Loss, raw: Tensor, y: Tensor) -> Tensor:
    """l(raw, y), one value a row, up to a constant."""
    return known(loss)[0](loss, raw, y).sum(dim=1)


def predicted(loss: Loss, raw: Tensor) -> Tensor:
    """Raw predictions as predictions."""
    return known(loss)[1](raw)


def known(loss: Loss) -> tuple[Callable[..., Tensor], Callable[[Tensor], Tensor]]:
    """The entry of a loss, if it has one."""
    if type(loss) not in LOSSES:
        raise ValueError(
            f"The loss {type(loss).__name__} is one of your own and has no form in PyTorch."
        )
    return LOSSES[type(loss)]
