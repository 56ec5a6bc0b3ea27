"""Training a network end to end: mini-batches, Adam, half a cosine, stopped by held-out rows."""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor

from rfrboost._export.torch.features import BumpsMap, DenseMap, LeafMap
from rfrboost._export.torch.losses import value
from rfrboost._export.torch.network import DiagonalModule, LowRankModule, NetworkModule
from rfrboost._model.losses import Loss

# Rows whose loss is computed at a time.
LOSS_ROWS = 4096


#: what may be trained, by the modules it is in
PARTS: dict[str, tuple[type, ...]] = {
    "features": (DenseMap,),
    "centres": (BumpsMap,),
    "steps": (LowRankModule, DiagonalModule, LeafMap),
    "head": (NetworkModule,),
}


@dataclass(frozen=True)
class Training:
    """How it is trained; what the names say is in :func:`rfrboost.torch.fine_tune`."""

    n_epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    patience: int
    parts: tuple[str, ...]
    seed: int


@dataclass(frozen=True)
class Rows:
    """Rows of numbers, their targets, their weights."""

    X: Tensor
    y: Tensor
    w: Tensor

    def chosen(self, rows: Tensor) -> "Rows":
        """Some of the rows."""
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
    """Train a module in place; returns the epoch whose parameters it has in the end.

    That is the one with the least loss on ``held``, 0 for the start. ``watch`` is told every
    epoch, the module after it, and its held-out loss.
    """
    parameters = chosen_parameters(module, training.parts)
    optimizer = torch.optim.AdamW(
        parameters, lr=training.learning_rate, weight_decay=training.weight_decay
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share_of_rate(training, len(rows.X)))
    generator = torch.Generator().manual_seed(training.seed)
    least, best, kept = mean_loss(module, loss, held), 0, deepcopy(module.state_dict())
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
            least, best, kept = now, epoch, deepcopy(module.state_dict())
        elif epoch - best >= training.patience:
            break
    module.load_state_dict(kept)
    return best


def share_of_rate(training: Training, n_rows: int) -> Callable[[int], float]:
    """The learning rate of every step: up in a line for an epoch, down along half a cosine.

    Adam's first steps know nothing of the parameters' sizes and would undo what was fitted.
    """
    warm = math.ceil(n_rows / training.batch_size)
    total = warm * max(training.n_epochs, 1)
    return lambda step: min((step + 1) / warm, 1.0) * (1 + math.cos(math.pi * step / total)) / 2


def chosen_parameters(module: NetworkModule, parts: tuple[str, ...]) -> list[Tensor]:
    """The parameters to train; the others are told that they are not."""
    kinds = tuple(kind for part in parts for kind in PARTS[part])
    found: list[Tensor] = []
    for owner in module.modules():
        for parameter in owner.parameters(recurse=False):
            parameter.requires_grad_(isinstance(owner, kinds))
            found += [parameter] if parameter.requires_grad else []
    return found


@torch.no_grad()
def mean_loss(module: NetworkModule, loss: Loss, rows: Rows) -> float:
    """The mean loss over rows."""
    total = sum(
        float((w * value(loss, module(X), y)).sum())
        for X, y, w in zip(*(t.split(LOSS_ROWS) for t in (rows.X, rows.y, rows.w)), strict=True)
    )
    return total / float(rows.w.sum())
