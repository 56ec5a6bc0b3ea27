"""The MLP ResNet of the paper in PyTorch and its training. Importing this module needs PyTorch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh}
# Rows predicted at a time, so that memory does not grow with the number of rows.
PREDICT_ROWS = 8192
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Shape:
    """Widths and depth; with ``hidden_dim`` None the blocks act on the inputs."""

    n_inputs: int
    hidden_dim: int | None
    bottleneck_dim: int
    n_blocks: int
    n_outputs: int
    activation: str


@dataclass(frozen=True)
class Training:
    """Settings of Adam, whose learning rate falls along a half cosine."""

    lr: float
    end_lr_factor: float
    n_epochs: int
    weight_decay: float
    batch_size: int


class ResNet(nn.Module):
    """Up-scaling layer, residual blocks, linear head."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        activation = ACTIVATIONS[shape.activation]
        width = shape.n_inputs
        self.upscaling: nn.Module = nn.Identity()
        if shape.hidden_dim is not None:
            width = shape.hidden_dim
            self.upscaling = nn.Sequential(
                nn.Linear(shape.n_inputs, width), nn.BatchNorm1d(width), activation()
            )
        self.blocks = nn.ModuleList(
            residual_block(width, shape.bottleneck_dim, activation) for _ in range(shape.n_blocks)
        )
        self.head = nn.Linear(width, shape.n_outputs)

    def stages(self, x: Tensor) -> Iterator[Tensor]:
        """Φ_0, …, Φ_T: after the up-scaling layer and after each block."""
        phi = self.upscaling(x)
        yield phi
        for block in self.blocks:
            phi = phi + block(phi)
            yield phi

    def forward(self, x: Tensor) -> Tensor:
        """The raw outputs of the rows ``x``."""
        *_, last = self.stages(x)
        return self.head(last)


def residual_block(width: int, bottleneck_dim: int, activation: type[nn.Module]) -> nn.Module:
    """What a block adds to Φ: [dense, batch norm, activation, dense, batch norm]."""
    return nn.Sequential(
        nn.Linear(width, bottleneck_dim),
        nn.BatchNorm1d(bottleneck_dim),
        activation(),
        nn.Linear(bottleneck_dim, width),
        nn.BatchNorm1d(width),
    )


def trained(
    X: Tensor, Y: Tensor, shape: Shape, training: Training, loss: Loss, seed: int
) -> ResNet:
    """A network initialised and trained from ``seed``; torch's global random state is unchanged."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = ResNet(shape)
        _train(network, X, Y, training, loss)
    if not all(torch.isfinite(parameter).all() for parameter in network.parameters()):
        raise FloatingPointError(f"The training diverged with lr={training.lr:g}.")
    return network.eval()


def _train(network: ResNet, X: Tensor, Y: Tensor, training: Training, loss: Loss) -> None:
    optimizer = torch.optim.Adam(
        network.parameters(), lr=training.lr, weight_decay=training.weight_decay, fused=True
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, T_max=training.n_epochs, eta_min=training.lr * training.end_lr_factor
    )
    network.train()
    for _ in range(training.n_epochs):
        for rows in epoch_batches(len(X), training.batch_size):
            optimizer.zero_grad()
            loss(network(X[rows]), Y[rows]).backward()
            optimizer.step()
        schedule.step()


def epoch_batches(n_rows: int, batch_size: int) -> list[Tensor]:
    """The row positions in random order, in full batches only.

    The remaining rows would make a small batch with noisy batch-norm statistics; they are
    different rows in every epoch. A table with fewer rows than a batch is one batch.
    """
    size = min(batch_size, n_rows)
    return list(torch.randperm(n_rows)[: n_rows // size * size].split(size))


@torch.inference_mode()
def outputs(network: ResNet, X: Tensor) -> Tensor:
    """Raw outputs of a trained network, ``PREDICT_ROWS`` rows at a time."""
    return torch.cat([network(rows) for rows in X.split(PREDICT_ROWS)])


@torch.inference_mode()
def stages(network: ResNet, X: Tensor) -> list[Tensor]:
    """Φ_0, …, Φ_T of a trained network."""
    return list(network.stages(X))
