"""Feature maps as PyTorch modules, and back.

Each module holds a map of ``rfrboost._model`` as ``source``, its trainable arrays as parameters in
double precision, and gives the map with the present parameters by ``numpy()``. Rows are (n, D).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rfrboost._model.bumps import FARTHEST, LARGEST_CENTRE, ROUNDING, Bumps
from rfrboost._model.features import DenseFeatures, FeatureMap
from rfrboost._model.forest import Forest
from rfrboost._model.leaves import Leaf, LocalSums
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import column_scales
from rfrboost._typing import Array

#: the activation σ of every name
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda z: z,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "sin": torch.sin,
    "cos": torch.cos,
}

# Makes torch.cdist compute distances from differences of coordinates. Products of matrices are
# faster, but near a centre they leave no correct digits.
EXACT = "donot_use_mm_for_euclid_dist"


def tensor(array: Array | float) -> Tensor:
    """A tensor in double precision with a copy of the numbers."""
    return torch.tensor(np.asarray(array, dtype=float))


def array(value: Tensor, dtype: np.dtype | type = np.float64) -> Array:
    """A read-only NumPy copy of a tensor."""
    return frozen(value.detach().cpu().numpy().astype(dtype))


def redraw(parameter: Tensor, fan_in: int) -> None:
    """Draw a parameter as PyTorch's linear layers do: uniform within ±1/√fan_in."""
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
        """The map with the present parameters."""
        weights = torch.vstack([self.weight, self.bias])
        return DenseFeatures(array(weights, self.source.dtype), self.source.activation)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for parameter in (self.weight, self.bias):
            redraw(parameter, len(self.weight))


class BumpsMap(nn.Module):
    """Bumps around centres, which can be trained; the metric is fixed."""

    metric: Tensor
    scales: Tensor
    two: Tensor

    def __init__(self, source: Bumps) -> None:
        super().__init__()
        self.source = source
        distances = source.distances
        scales = column_scales(distances.L) / distances.absolute_unit
        two = distances.spans > 0
        spans = np.where(two, distances.spans, 1.0)
        self.centres = nn.Parameter(tensor(source.centres))
        self.register_buffer("metric", tensor(distances.L / distances.euclidean_unit))
        self.register_buffer("scales", tensor(np.where(two, np.sqrt(scales / spans), scales)))
        self.register_buffer("two", torch.tensor(two))

    def forward(self, z: Tensor) -> Tensor:
        reach = self.source.reach
        mix = self.source.mix
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
        """The map with the present parameters."""
        return replace(self.source, centres=array(self.centres, np.float32))

    def reset_parameters(self) -> None:
        """Draw all centres anew from a normal distribution, without looking at training rows."""
        nn.init.normal_(self.centres)


class LeafMap(nn.Module):
    """Cᵀf + c of a leaf's bumps."""

    def __init__(self, source: Leaf) -> None:
        super().__init__()
        self.dtype = source.C.dtype
        self.bumps = BumpsMap(source.bumps)
        self.C = nn.Parameter(tensor(source.C))
        self.c = nn.Parameter(tensor(source.c))

    def forward(self, z: Tensor) -> Tensor:
        return self.bumps(z) @ self.C + self.c

    def numpy(self) -> Leaf:
        """The leaf with the present parameters."""
        return Leaf(self.bumps.numpy(), array(self.C, self.dtype), array(self.c))

    def reset_parameters(self) -> None:
        """Draw C and c anew; the centres are drawn by the module of the bumps."""
        redraw(self.C, len(self.C))
        redraw(self.c, len(self.C))


class LocalMap(nn.Module):
    """The outputs of the leaf that each row falls into; the tree is fixed."""

    directions: Tensor
    thresholds: Tensor
    leaves: Any

    def __init__(self, source: LocalSums) -> None:
        super().__init__()
        self.source = source
        self.register_buffer("directions", tensor(source.splits.directions))
        self.register_buffer("thresholds", tensor(source.splits.thresholds))
        self.leaves = nn.ModuleList(LeafMap(leaf) for leaf in source.leaves)

    def forward(self, z: Tensor) -> Tensor:
        where = self._leaf_numbers(z)
        total = z.new_zeros((len(z), self.source.width))
        for j in where.unique().tolist():
            own = torch.nonzero(where == j)[:, 0]
            total = total.index_copy(0, own, self.leaves[j](z[own]))
        return total

    def _leaf_numbers(self, z: Tensor) -> Tensor:
        right = (z @ self.directions.T > self.thresholds).long()
        node = torch.zeros((len(z), 1), dtype=torch.long, device=z.device)
        for _ in range(self.source.splits.n_leaves.bit_length() - 1):
            node = 2 * node + 1 + right.gather(1, node)
        return node[:, 0] - len(self.thresholds)

    def numpy(self) -> LocalSums:
        """The map with the present parameters."""
        return LocalSums(self.source.splits, tuple(leaf.numpy() for leaf in self.leaves))


class ForestMap(nn.Module):
    """Sums of leaf values, which can be trained; the splits are fixed."""

    columns: Tensor
    thresholds: Tensor
    followers: Tensor
    roots: Tensor

    def __init__(self, source: Forest) -> None:
        super().__init__()
        self.source = source
        self.register_buffer("columns", torch.tensor(source.columns).long())
        self.register_buffer("followers", torch.tensor(source.children).long())
        self.register_buffer("roots", torch.tensor(source.roots).long())
        self.register_buffer("thresholds", torch.tensor(source.thresholds))
        self.values = nn.Parameter(tensor(source.values))

    def forward(self, z: Tensor) -> Tensor:
        members, count = self.roots.shape
        of_trees = self.values[self._leaf_numbers(z)]
        return of_trees.reshape(len(z), members, count, -1).sum(2).reshape(len(z), -1)

    def _leaf_numbers(self, z: Tensor) -> Tensor:
        x = single(z, LARGEST_CENTRE)
        questions = len(self.columns)
        node = self.roots.reshape(1, -1).repeat(len(z), 1)
        for _ in range(self.source.depth):
            row, tree = torch.nonzero(node < questions, as_tuple=True)
            asking = node[row, tree]
            above = (x[row, self.columns[asking]] > self.thresholds[asking]).long()
            node[row, tree] = self.followers[asking, above]
        return node - questions

    def numpy(self) -> Forest:
        """The map with the present parameters."""
        return replace(self.source, values=array(self.values, self.source.values.dtype))

    def reset_parameters(self) -> None:
        """Draw all leaf values anew."""
        redraw(self.values, self.roots.shape[1])


def distance(A: Tensor, B: Tensor) -> Tensor:
    """‖a − b‖ of rows of A (n, k) and B (m, k); 0 where the model takes it for a rounding error."""
    lengths = torch.cdist(A, B, compute_mode=EXACT)
    least = float(ROUNDING) * ((A**2).sum(dim=1)[:, None] + (B**2).sum(dim=1))
    return lengths * (lengths.detach() ** 2 > least)


def single(z: Tensor, largest: float = FARTHEST) -> Tensor:
    """Coordinates rounded to single precision, as the model rounds them."""
    return z.clamp(-largest, largest).float().to(z.dtype)


def module_of(source: FeatureMap) -> Any:
    """The module for a feature map."""
    kind = KINDS.get(type(source))
    if kind is None:
        raise ValueError(
            f"Features of the class {type(source).__name__} cannot be used in PyTorch: only "
            "the features of rfrboost can. Set features='swim', or another name."
        )
    return kind(source)


#: the module of each kind of map
KINDS: dict[type, Callable[[Any], nn.Module]] = {
    DenseFeatures: DenseMap,
    Bumps: BumpsMap,
    LocalSums: LocalMap,
    Forest: ForestMap,
}
