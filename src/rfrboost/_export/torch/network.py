"""The network as a PyTorch module, and back."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rfrboost._export.torch.features import array, module_of, redraw, tensor
from rfrboost._model.network import (
    DiagonalStep,
    Head,
    Layer,
    LayerFeatures,
    LowRankStep,
    Network,
    Standardizer,
)
from rfrboost._numerics.arrays import frozen


class LowRankModule(nn.Module):
    """V(Cᵀf + c)."""

    def __init__(self, step: LowRankStep) -> None:
        super().__init__()
        self.dtype = step.C.dtype
        self.C, self.c, self.V = (nn.Parameter(tensor(a)) for a in (step.C, step.c, step.V))

    def forward(self, f: Tensor) -> Tensor:
        return (f @ self.C + self.c) @ self.V.T

    def numpy(self) -> LowRankStep:
        """The step as it is now."""
        return LowRankStep(array(self.C, self.dtype), array(self.c), array(self.V))

    def reset_parameters(self) -> None:
        """Draw what comes before V anew, and V too unless it is the identity."""
        redraw(self.C, len(self.C))
        redraw(self.c, len(self.C))
        if not torch.equal(self.V, torch.eye(*self.V.shape, dtype=self.V.dtype)):
            redraw(self.V, self.V.shape[1])


class DiagonalModule(nn.Module):
    """a ⊙ f."""

    def __init__(self, step: DiagonalStep) -> None:
        super().__init__()
        self.a = nn.Parameter(tensor(step.a))

    def forward(self, f: Tensor) -> Tensor:
        return self.a * f

    def numpy(self) -> DiagonalStep:
        """The step as it is now."""
        return DiagonalStep(array(self.a))

    def reset_parameters(self) -> None:
        """Draw the diagonal anew."""
        redraw(self.a, 1)


STEPS: dict[type, Callable[[Any], nn.Module]] = {
    LowRankStep: LowRankModule,
    DiagonalStep: DiagonalModule,
}


class LayerModule(nn.Module):
    """Φ + A f(x, Φ), then standardised if the layer is."""

    mean: Tensor
    std: Tensor

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        sources = {"phi": layer.features.from_phi, "x": layer.features.from_x}
        maps = {name: module_of(m) for name, m in sources.items() if m is not None}
        self.maps: Any = nn.ModuleDict(maps)
        self.added = layer.features.added
        self.step: Any = STEPS[type(layer.step)](layer.step)
        self.standardizer = layer.standardizer
        if layer.standardizer is not None:
            self.register_buffer("mean", tensor(layer.standardizer.mean))
            self.register_buffer("std", tensor(layer.standardizer.std))

    def forward(self, phi: Tensor, x: Tensor) -> Tensor:
        parts = [m(phi if name == "phi" else x) for name, m in self.maps.items()]
        f = torch.stack(parts).sum(dim=0) if self.added else torch.cat(parts, dim=1)
        phi = phi + self.step(f)
        return phi if self.standardizer is None else (phi - self.mean) / self.std

    def numpy(self) -> Layer:
        """The layer as it is now."""
        maps = {name: m.numpy() for name, m in self.maps.items()}
        features = LayerFeatures(maps.get("phi"), maps.get("x"), self.added)
        kept: Standardizer | None = self.standardizer
        return Layer(features, self.step.numpy(), kept)


class NetworkModule(nn.Module):
    """Rows of numbers to raw predictions: Φ₀, the layers, the last head."""

    mean: Tensor
    initial: Any
    layers: Any

    def __init__(self, network: Network) -> None:
        super().__init__()
        head = network.heads[-1]
        self.register_buffer("mean", tensor(network.mean))
        self.initial = None if network.initial is None else module_of(network.initial)
        self.layers = nn.ModuleList(LayerModule(layer) for layer in network.layers)
        self.weight, self.bias = nn.Parameter(tensor(head.W)), nn.Parameter(tensor(head.b))

    def forward(self, X: Tensor) -> Tensor:
        x = X - self.mean
        phi = x if self.initial is None else self.initial(x)
        for layer in self.layers:
            phi = layer(phi, x)
        return phi @ self.weight + self.bias

    def numpy(self) -> Network:
        """The network as it is now, with the last head after every layer."""
        initial = None if self.initial is None else self.initial.numpy()
        layers = tuple(layer.numpy() for layer in self.layers)
        head = Head(array(torch.vstack([self.weight, self.bias])))
        return Network(array(self.mean), initial, layers, (head,) * (len(layers) + 1))

    def reset_parameters(self) -> None:
        """Draw all parameters anew, as PyTorch's linear layers do: the same network untrained."""
        owners: Any = self.modules()
        for module in owners:
            if module is not self and hasattr(module, "reset_parameters"):
                module.reset_parameters()
        redraw(self.weight, len(self.weight))
        redraw(self.bias, len(self.weight))


def full_rank(network: Network) -> Network:
    """The same predictions by steps A f of full rank, so that training has more to move."""
    layers = []
    for layer in network.layers:
        step = layer.step
        if isinstance(step, LowRankStep):
            C = frozen((step.C.astype(float) @ step.V.T).astype(step.C.dtype))
            step = LowRankStep(C, frozen(step.V @ step.c), frozen(np.eye(len(step.V))))
        layers.append(Layer(layer.features, step, layer.standardizer))
    return Network(network.mean, network.initial, tuple(layers), network.heads)
