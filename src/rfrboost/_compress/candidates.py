"""The features of an ensemble as candidates: each may be kept in a smaller model, or left out.

An ensemble's raw prediction is x·linear + Σ_j leads_j f_j(x) (:mod:`rfrboost._model.prediction`).
A candidate is one f_j: a neuron, a bump around a training row, or a tree. Candidates of one kind
that differ in nothing but their numbers are one :class:`Part`, whose values can be computed and
which becomes a layer of a network again. Features of other kinds, such as those of a user's own
sampler, are no candidates (:data:`KINDS`).

Rows are homogeneous, x (n, D + 1) with a last column of 1; raw predictions are (n, d).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from rfrboost._model.bumps import Bumps
from rfrboost._model.features import DenseFeatures, FeatureMap
from rfrboost._model.forest import Forest, led, of_roots, owners
from rfrboost._model.leaves import LocalSums
from rfrboost._model.network import Layer, LayerFeatures, LowRankStep, Network
from rfrboost._numerics.arrays import frozen
from rfrboost._numerics.blas import product
from rfrboost._typing import Array, Indices, Mask

# Time of a bump with one distance, and of a tree, in units of a neuron's: about 4.5 and 5.5 beside
# 1.4 nanoseconds a row, with ten columns, in batches of 1,000 rows.
BUMP_COST = 3.0
TREE_COST = 4.0


class Part(Protocol):
    """Some candidates of one kind."""

    @property
    def size(self) -> int:
        """How many there are."""

    @property
    def cost(self) -> float:
        """The time of one of them, in units of a neuron's."""

    @property
    def is_row(self) -> bool:
        """Whether each of them holds a training row."""

    def chosen(self, kept: Indices) -> "Part":
        """Those with these indices."""

    def values(self, x: Array) -> Array:
        """The features (n, size) of rows x (n, D + 1), in single precision."""

    def layer(self, W: Array) -> Layer:
        """The layer that adds features·W to the raw predictions; W is (size, d)."""


@dataclass(frozen=True)
class Neurons:
    """Neurons σ(xB) with one activation, B in one precision."""

    features: DenseFeatures
    cost: ClassVar[float] = 1.0
    is_row: ClassVar[bool] = False

    @property
    def size(self) -> int:
        return self.features.width

    def chosen(self, kept: Indices) -> "Neurons":
        return Neurons(DenseFeatures(self.features.weights[:, kept], self.features.activation))

    def values(self, x: Array) -> Array:
        return single_values(self.features, x)

    def layer(self, W: Array) -> Layer:
        return added(self.features, W)


@dataclass(frozen=True)
class Centres:
    """Bumps in one metric, with one reach."""

    features: Bumps
    is_row: ClassVar[bool] = True

    @property
    def size(self) -> int:
        return self.features.width

    @property
    def cost(self) -> float:
        return BUMP_COST * (1.0 if self.features.mix in (0.0, 1.0) else 2.0)

    def chosen(self, kept: Indices) -> "Centres":
        own = self.features
        return Centres(Bumps(frozen(own.centres[kept]), own.distances, own.reach, own.mix))

    def values(self, x: Array) -> Array:
        return single_values(self.features, x)

    def layer(self, W: Array) -> Layer:
        return added(self.features, W)


@dataclass(frozen=True)
class SingleTrees:
    """Trees of one member with one output, each of which is a feature of its own."""

    trees: Forest
    cost: ClassVar[float] = TREE_COST
    is_row: ClassVar[bool] = False

    @property
    def size(self) -> int:
        return int(self.trees.roots.size)

    def chosen(self, kept: Indices) -> "SingleTrees":
        return SingleTrees(of_roots(self.trees, self.trees.roots[:, kept]))

    def values(self, x: Array) -> Array:
        leaves = self.trees.leaf_numbers(x[:, :-1])
        return np.asfortranarray(self.trees.values[leaves, 0], np.float32)

    def layer(self, W: Array) -> Layer:
        values = self.trees.values * W[owners(self.trees)]
        return added(replace(self.trees, values=frozen(values)), np.eye(W.shape[1]))


def single_values(features: FeatureMap, x: Array) -> Array:
    """The features (n, width) in single precision; those that need double precision are rounded."""
    F = np.empty((len(x), features.width), features.dtype, order="F")
    features(x, F)
    return F.astype(np.float32, copy=False)


def added(features: FeatureMap, C: Array) -> Layer:
    """The layer that adds features·C to Φ."""
    d = C.shape[1]
    step = LowRankStep(frozen(C.astype(features.dtype)), frozen(np.zeros(d)), frozen(np.eye(d)))
    return Layer(LayerFeatures(None, features), step, None)


# From an ensemble to candidates


def candidates_of(network: Network) -> list[tuple[Part, Array]]:
    """All candidates of an ensemble, part by part, with the leads (size, d) of each.

    Raises a TypeError if it has features of a kind that is not known here.
    """
    W = network.heads[-1].W
    found: list[tuple[Part, Array]] = []
    dense: dict[tuple[str, np.dtype], list[tuple[DenseFeatures, Array]]] = {}
    for layer in network.layers:
        features = layer.features.from_x
        leads = layer.step.leads(W)
        if isinstance(features, DenseFeatures):
            dense.setdefault((features.activation, features.dtype), []).append((features, leads))
        elif type(features) in KINDS:
            found += KINDS[type(features)](features, leads)
        else:
            raise TypeError(type(features).__name__)
    return [merged(own) for own in dense.values()] + found


def merged(terms: list[tuple[DenseFeatures, Array]]) -> tuple[Part, Array]:
    """The neurons of several layers as one part."""
    weights = np.hstack([features.weights for features, _ in terms])
    part = Neurons(DenseFeatures(weights, terms[0][0].activation))
    return part, np.vstack([leads for _, leads in terms])


def bump_parts(bumps: Bumps, leads: Array) -> list[tuple[Part, Array]]:
    """The bumps of all centres."""
    return [(Centres(bumps), leads)]


def leaf_parts(sums: LocalSums, leads: Array) -> list[tuple[Part, Array]]:
    """The bumps of every leaf, which in a smaller model reach beyond their leaf."""
    distinct = {id(leaf): leaf for leaf in sums.leaves}.values()
    return [(Centres(leaf.bumps), product(leaf.C.astype(float), leads)) for leaf in distinct]


def tree_parts(trees: Forest, leads: Array) -> list[tuple[Part, Array]]:
    """The trees of all members.

    Leaf values of several outputs are replaced by their first principal component, so that a tree
    is one feature, whatever the number of outputs.
    """
    one = led(trees, leads)
    tree = owners(one)
    values = np.empty((len(tree), 1))
    directions = np.empty((one.roots.size, leads.shape[1]))
    for t in range(one.roots.size):
        own = np.flatnonzero(tree == t)
        U, s, Vt = np.linalg.svd(one.values[own], full_matrices=False)
        values[own] = U[:, :1] * s[:1]
        directions[t] = Vt[0]
    single = replace(one, values=frozen(values))
    return [(SingleTrees(single), directions)]


#: the function that makes parts of a feature map and its leads (p, d)
KINDS: dict[type, Callable[[Any, Array], list[tuple[Part, Array]]]] = {
    Bumps: bump_parts,
    LocalSums: leaf_parts,
    Forest: tree_parts,
}


def strongest(candidates: list[tuple[Part, Array]], x: Array, most: int) -> tuple[Part, ...]:
    """At most ``most`` candidates, those that move the predictions of rows x most for their cost.

    A candidate moves them by its spread times its lead. Neurons, bumps and trees get equal shares
    of the number, because the weights of one kind say little about those of another: bumps of close
    centres have large weights that cancel each other.
    """
    kinds: dict[type, list[tuple[Part, Array]]] = {}
    for part, leads in candidates:
        moves = part.values(x).std(axis=0) * np.linalg.norm(leads, axis=1) / np.sqrt(part.cost)
        kinds.setdefault(type(part), []).append((part, moves))
    chosen: list[Part] = []
    left = most
    by_size = sorted(kinds.values(), key=lambda own: sum(part.size for part, _ in own))
    for i, own in enumerate(by_size):
        moves = np.concatenate([moves for _, moves in own])
        share = min(left // (len(by_size) - i), len(moves))
        left -= share
        kept = np.zeros(len(moves), bool)
        kept[np.argsort(-moves, kind="stable")[:share]] = True
        chosen += of_mask([part for part, _ in own], kept)
    return tuple(chosen)


def of_mask(parts: list[Part], kept: Mask) -> list[Part]:
    """The candidates that a mask over all parts keeps; parts without any are left out."""
    ends = np.cumsum([part.size for part in parts])
    each = np.split(kept, ends[:-1])
    pairs = zip(parts, map(np.flatnonzero, each), strict=True)
    return [part.chosen(own) for part, own in pairs if len(own)]
