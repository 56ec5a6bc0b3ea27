"""Feature maps as PyTorch modules, and back."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rfrboost._bumps import FARTHEST, ROUNDING, Bumps
from rfrboost._features import DenseFeatures, FeatureMap
from rfrboost._metric import column_scales
from rfrboost._typing import Array, frozen

#: σ of every name
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda z: z,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "sin": torch.sin,
    "cos": torch.cos,
}
# Differences, not products: near centres those have no digits left.
EXACT = "donot_use_mm_for_euclid_dist"


def tensor(array: Array | float) -> Tensor:
    """A copy in double precision."""
    return torch.tensor(np.asarray(array, dtype=float))


def array(value: Tensor, dtype: np.dtype | type = np.float64) -> Array:
    """A frozen copy for a network."""
    return frozen(value.detach().cpu().numpy().astype(dtype))


def redraw(parameter: Tensor, fan_in: int) -> None:
    """Draw a parameter as PyTorch's linear layers do."""
    nn.init.uniform_(parameter, -(fan_in**-0.5), fan_in**-0.5)


class DenseMap(nn.Module):
    """σ(zB + b)."""

    def __init__(self, source: DenseFeatures) -> None:
        super().__init__()
        self.source = source
        self.weight = nn.Parameter(tensor(source.weights[:-1]))
        self.bias = nn.Parameter(tensor(source.weights[-1]))

    def forward(self, z: Tensor) -> Tensor:
        return ACTIVATIONS[self.source.activation](z @ self.weight + self.bias)

    def numpy(self) -> DenseFeatures:
        """The map as it is now."""
        weights = torch.vstack([self.weight, self.bias])
        return DenseFeatures(array(weights, self.source.dtype), self.source.activation)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for parameter in (self.weight, self.bias):
            redraw(parameter, len(self.weight))


class BumpsMap(nn.Module):
    """Bumps around centres; the metric stays what it is."""

    metric: Tensor
    scales: Tensor
    two: Tensor

    def __init__(self, source: Bumps) -> None:
        super().__init__()
        self.source = source
        distances = source.distances
        scales, two = column_scales(distances.L) / distances.absolute_unit, distances.spans > 0
        spans = np.where(two, distances.spans, 1.0)
        self.centres = nn.Parameter(tensor(source.centres))
        self.register_buffer("metric", tensor(distances.L / distances.euclidean_unit))
        self.register_buffer("scales", tensor(np.where(two, np.sqrt(scales / spans), scales)))
        self.register_buffer("two", torch.tensor(two))

    def forward(self, z: Tensor) -> Tensor:
        reach, mix = self.source.reach, self.source.mix
        total: Any = 0.0
        if mix < 1:
            total = (1 - mix) * torch.exp(-self._euclidean(z) / reach)
        if mix > 0:
            total = total + mix * torch.exp(-self._absolute(z) / reach)
        return total

    def _euclidean(self, z: Tensor) -> Tensor:
        diagonal = self.metric.ndim == 1
        A, B = (X * self.metric if diagonal else X @ self.metric for X in (z, self.centres))
        return distance(single(A), single(B))

    def _absolute(self, z: Tensor) -> Tensor:
        A, B = (single(X * self.scales) for X in (z, self.centres))
        two = self.two
        return torch.cdist(A[:, ~two], B[:, ~two], p=1.0) + distance(A[:, two], B[:, two]) ** 2

    def numpy(self) -> Bumps:
        """The map as it is now."""
        return replace(self.source, centres=array(self.centres, np.float32))

    def reset_parameters(self) -> None:
        """Draw all centres anew, as unlike training rows as random weights are."""
        nn.init.normal_(self.centres)


def distance(A: Tensor, B: Tensor) -> Tensor:
    """‖a − b‖ of rows; 0 where the model takes it for rounding."""
    lengths = torch.cdist(A, B, compute_mode=EXACT)
    least = float(ROUNDING) * ((A**2).sum(dim=1)[:, None] + (B**2).sum(dim=1))
    return lengths * (lengths.detach() ** 2 > least)


def single(z: Tensor) -> Tensor:
    """Coordinates rounded to single precision, as the model has them."""
    return z.clamp(-FARTHEST, FARTHEST).float().to(z.dtype)


def module_of(source: FeatureMap) -> Any:
    """The module of a feature map."""
    kind = KINDS.get(type(source))
    if kind is None:
        raise ValueError(
            f"Features of the class {type(source).__name__} have no form in PyTorch; those that "
            "rfrboost draws itself have one."
        )
    return kind(source)


KINDS: dict[type, Callable[[Any], nn.Module]] = {DenseFeatures: DenseMap, Bumps: BumpsMap}
