"""Training a network end to end: AdamW on mini-batches, stopped by held-out rows.

The learning rate rises linearly for one epoch and then falls along half a cosine
(:func:`share_of_rate`). Used by :func:`rfrboost.torch.fine_tune`.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor

from rfrboost._export.torch.features import BumpsMap, DenseMap, LeafMap
from rfrboost._export.torch.losses import value
from rfrboost._export.torch.network import DiagonalModule, LowRankModule, NetworkModule
from rfrboost._model.loss import Loss

# Rows whose loss is computed at a time, to bound the memory for their features.
LOSS_ROWS = 4096

#: the parts that may be trained, with the modules whose parameters belong to them
PARTS: dict[str, tuple[type, ...]] = {
    "features": (DenseMap,),
    "centres": (BumpsMap,),
    "steps": (LowRankModule, DiagonalModule, LeafMap),
    "head": (NetworkModule,),
}


@dataclass(frozen=True)
class Training:
    """How to train; the parameters are documented in :func:`rfrboost.torch.fine_tune`."""

    n_epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    patience: int
    parts: tuple[str, ...]
    seed: int


@dataclass(frozen=True)
class Rows:
    """Encoded rows (n, D), targets (n, d) and weights (n,)."""

    X: Tensor
    y: Tensor
    w: Tensor

    def chosen(self, rows: Tensor) -> "Rows":
        """The rows with these indices."""
        return Rows(self.X[rows], self.y[rows], self.w[rows])

    def to(self, device: str) -> "Rows":
        """The rows in single precision on a device."""
        return Rows(*(t.to(device, torch.float32) for t in (self.X, self.y, self.w)))


def train(
    module: NetworkModule,
    loss: Loss,
    rows: Rows,
    held: Rows,
    training: Training,
    watch: Callable[[int, NetworkModule, float], None],
) -> int:
    """Train a module in place, and return the epoch whose parameters it has in the end.

    That is the epoch with the least loss on ``held``; 0 means the parameters before training.
    ``watch(epoch, module, held_out_loss)`` is called after every epoch, and before the first.
    """
    parameters = chosen_parameters(module, training.parts)
    optimizer = torch.optim.AdamW(
        parameters, lr=training.learning_rate, weight_decay=training.weight_decay
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share_of_rate(training, len(rows.X)))
    generator = torch.Generator().manual_seed(training.seed)
    least = mean_loss(module, loss, held)
    best = 0
    kept = deepcopy(module.state_dict())
    watch(0, module, least)
    for epoch in range(1, training.n_epochs + 1):
        for batch in torch.randperm(len(rows.X), generator=generator).split(training.batch_size):
            optimizer.zero_grad()
            w = rows.w[batch]
            values = value(loss, module(rows.X[batch]), rows.y[batch])
            ((w * values).sum() / w.sum()).backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            schedule.step()
        now = mean_loss(module, loss, held)
        watch(epoch, module, now)
        if now < least:
            least = now
            best = epoch
            kept = deepcopy(module.state_dict())
        elif epoch - best >= training.patience:
            break
    module.load_state_dict(kept)
    return best


def share_of_rate(training: Training, n_rows: int) -> Callable[[int], float]:
    """The learning rate at each step, as a share of the largest: a linear rise, then half a cosine.

    The rise takes one epoch. Adam's first steps do not know the scale of the gradients yet, and at
    the full rate they would undo the fit.
    """
    warm = math.ceil(n_rows / training.batch_size)
    total = warm * max(training.n_epochs, 1)
    return lambda step: min((step + 1) / warm, 1.0) * (1 + math.cos(math.pi * step / total)) / 2


def chosen_parameters(module: NetworkModule, parts: tuple[str, ...]) -> list[Tensor]:
    """The parameters to train; gradients of all others are switched off."""
    kinds = tuple(kind for part in parts for kind in PARTS[part])
    found: list[Tensor] = []
    for owner in module.modules():
        for parameter in owner.parameters(recurse=False):
            parameter.requires_grad_(isinstance(owner, kinds))
            found += [parameter] if parameter.requires_grad else []
    return found


def mean_loss(module: NetworkModule, loss: Loss, rows: Rows) -> float:
    """The weighted mean of the loss over rows."""
    with torch.no_grad():
        parts = zip(*(t.split(LOSS_ROWS) for t in (rows.X, rows.y, rows.w)), strict=True)
        total = sum((float((w * value(loss, module(X), y)).sum()) for X, y, w in parts), 0.0)
    return total / float(rows.w.sum())
