"""The network as a PyTorch module, and back.

:class:`NetworkModule` computes what :meth:`rfrboost._model.network.Network.raw` computes, with the
arrays as parameters in double precision; ``numpy()`` gives the network with the present parameters.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rfrboost._export.torch.features import (
    BumpsMap,
    DenseMap,
    ForestMap,
    LeafMap,
    array,
    module_of,
    redraw,
    tensor,
)
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
        """The step with the present parameters."""
        return LowRankStep(array(self.C, self.dtype), array(self.c), array(self.V))

    def reset_parameters(self) -> None:
        """Draw C and c anew, and V too unless it is the identity (a step of full rank)."""
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
        """The step with the present parameters."""
        return DiagonalStep(array(self.a))

    def reset_parameters(self) -> None:
        """Draw the diagonal anew."""
        redraw(self.a, 1)


#: the module of each kind of step
STEPS: dict[type, Callable[[Any], nn.Module]] = {
    LowRankStep: LowRankModule,
    DiagonalStep: DiagonalModule,
}


#: the modules inside a network that draw parameters of their own
DRAWN = (DenseMap, BumpsMap, LeafMap, ForestMap, LowRankModule, DiagonalModule)


class LayerModule(nn.Module):
    """Φ + A f(x, Φ), standardised if the layer has a standardizer."""

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
        """The layer with the present parameters."""
        maps = {name: m.numpy() for name, m in self.maps.items()}
        features = LayerFeatures(maps.get("phi"), maps.get("x"), self.added)
        kept: Standardizer | None = self.standardizer
        return Layer(features, self.step.numpy(), kept)


class NetworkModule(nn.Module):
    """Encoded rows (n, D) to raw predictions (n, d): Φ₀, the layers, the last head."""

    mean: Tensor
    initial: Any
    layers: Any

    def __init__(self, network: Network) -> None:
        super().__init__()
        head = network.heads[-1]
        self.register_buffer("mean", tensor(network.mean))
        self.initial = None if network.initial is None else module_of(network.initial)
        self.layers = nn.ModuleList(LayerModule(layer) for layer in network.layers)
        self.weight: nn.Parameter = nn.Parameter(tensor(head.W))
        self.bias: nn.Parameter = nn.Parameter(tensor(head.b))

    def forward(self, X: Tensor) -> Tensor:
        x = X - self.mean
        phi = x if self.initial is None else self.initial(x)
        for layer in self.layers:
            phi = layer(phi, x)
        return phi @ self.weight + self.bias

    def numpy(self) -> Network:
        """The network with the present parameters; it has the last head after every layer."""
        initial = None if self.initial is None else self.initial.numpy()
        layers = tuple(layer.numpy() for layer in self.layers)
        head = Head(array(torch.vstack([self.weight, self.bias])))
        return Network(array(self.mean), initial, layers, (head,) * (len(layers) + 1))

    def reset_parameters(self) -> None:
        """Draw all parameters anew, which makes an untrained network of the same shape."""
        for module in self.modules():
            if isinstance(module, DRAWN):
                module.reset_parameters()
        redraw(self.weight, len(self.weight))
        redraw(self.bias, len(self.weight))


def full_rank(network: Network) -> Network:
    """The same network with every low-rank A in full, so that training may raise its rank."""
    layers = []
    for layer in network.layers:
        step = layer.step
        if isinstance(step, LowRankStep):
            C = frozen((step.C.astype(float) @ step.V.T).astype(step.C.dtype))
            step = LowRankStep(C, frozen(step.V @ step.c), frozen(np.eye(len(step.V))))
        layers.append(Layer(layer.features, step, layer.standardizer))
    return Network(network.mean, network.initial, tuple(layers), network.heads)
