"""What model files hold of a network, its loss and its targets: a schema for every class.

A new kind of layer, step or feature map is one more ``Kind`` here. Losses describe themselves
(:data:`rfrboost._model.losses.BUILT_IN`), and their kinds are made from that. Each schema's comment
names the sizes that its ``fits`` is given.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rfrboost._auto.conformal import Calibration
from rfrboost._estimators.fitted import TargetScale
from rfrboost._files.schema import (
    FLAG,
    POSITIVE_NUMBER,
    JsonValue,
    Kind,
    ListOf,
    ModelFileError,
    NumberOrVector,
    Numbers,
    OneOf,
    OrNone,
    Schema,
    State,
    choice,
    is_number,
)
from rfrboost._model.bumps import Bumps, Distances
from rfrboost._model.features import ACTIVATIONS, DenseFeatures
from rfrboost._model.forest import Forest
from rfrboost._model.leaves import Leaf, LocalSums, Splits
from rfrboost._model.loss import BuiltInLoss
from rfrboost._model.losses import BUILT_IN
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
from rfrboost._typing import Array

SHARE = JsonValue("a number from 0 to 1", lambda v: is_number(v) and 0 <= v <= 1)

# The largest index in a file: it fits into four bytes.
LARGEST_PLACE = 2.0**31

# Every whole number up to this one is exact in float32.
LARGEST_SINGLE = 2**24

LEVEL = JsonValue("a number between 0 and 1", lambda v: is_number(v) and 0 < v < 1)


class Levels:
    """An array of numbers between 0 and 1, each larger than the one before."""

    def write(self, value: Any, where: str) -> State:
        return Numbers(1).write(value, where)

    def read(self, state: State, where: str) -> Any:
        levels = Numbers(1).read(state, where)
        if not rise_between_0_and_1(levels):
            raise ModelFileError(f"{where} should rise between 0 and 1")
        return levels


def rise_between_0_and_1(levels: Array) -> bool:
    """Whether there is a level, and each is larger than the one before."""
    return len(levels) > 0 and bool((np.diff(np.concatenate([[0.0], levels, [1.0]])) > 0).all())


class OneOrEach:
    """An array of positive numbers; a single one is written as a number, as format 1 has it."""

    def write(self, value: Any, where: str) -> State:
        return NumberOrVector().write(value if len(value) > 1 else float(value[0]), where)

    def read(self, state: State, where: str) -> Any:
        return frozen(np.atleast_1d(np.asarray(NumberOrVector().read(state, where), dtype=float)))


class Metric:
    """A matrix, or the vector of its diagonal if it is diagonal."""

    def write(self, value: Any, where: str) -> State:
        return Numbers(np.ndim(value)).write(value, where)

    def read(self, state: State, where: str) -> Any:
        return Numbers(1 if np.ndim(state) == 1 else 2).read(state, where)


@dataclass(frozen=True)
class Places:
    """An array of indices with ``ndim`` axes: whole numbers from 0 on, written as floats.

    ``dtype`` is the type of the array. Indices of four bytes are written as float32 if that holds
    all of them exactly.
    """

    ndim: int
    dtype: type[np.signedinteger]

    def write(self, value: Any, where: str) -> State:
        narrow = self.dtype is np.int32 and value.max(initial=0) <= LARGEST_SINGLE
        floats = np.asarray(value, dtype=np.float32 if narrow else np.float64)
        return Numbers(self.ndim, single=True).write(floats, where)

    def read(self, state: State, where: str) -> Any:
        numbers = Numbers(self.ndim, single=True).read(state, where)
        if not ((numbers >= 0) & (numbers < LARGEST_PLACE) & (numbers == np.rint(numbers))).all():
            raise ModelFileError(f"{where} should be whole numbers from 0 on")
        return frozen(numbers.astype(self.dtype))


#: size: columns
DISTANCES = OneOf(
    Kind(
        "Distances",
        Distances,
        {
            "L": Metric(),
            "spans": Numbers(1),
            "euclidean_unit": POSITIVE_NUMBER,
            "absolute_unit": POSITIVE_NUMBER,
        },
        lambda d, columns: (
            d.L.shape in ((columns,), (columns, columns)) and d.spans.shape == (columns,)
        ),
    ),
)


BUMPS_KIND = Kind(
    "Bumps",
    Bumps,
    {
        "centres": Numbers(2, single=True),
        "distances": DISTANCES,
        "reach": POSITIVE_NUMBER,
        "mix": SHARE,
    },
    lambda m, columns: (
        m.centres.shape[1] == columns and m.width > 0 and DISTANCES.fits(m.distances, columns)
    ),
)


#: size: columns
BUMPS = OneOf(BUMPS_KIND)


#: size: columns
SPLITS = OneOf(
    Kind(
        "Splits",
        Splits,
        {"directions": Numbers(2), "thresholds": Numbers(1)},
        lambda s, columns: (
            s.directions.shape == (len(s.thresholds), columns) and s.n_leaves.bit_count() == 1
        ),
    ),
)


#: sizes: columns, outputs of the leaf
LEAF = OneOf(
    Kind(
        "Leaf",
        Leaf,
        {"bumps": BUMPS, "C": Numbers(2, single=True), "c": Numbers(1)},
        lambda leaf, columns, width: (
            BUMPS.fits(leaf.bumps, columns)
            and leaf.C.shape == (leaf.bumps.width, width)
            and len(leaf.c) == width
        ),
    ),
)


def local_sums_fit(sums: LocalSums, columns: int) -> bool:
    """Whether every leaf of the tree has its kernel machine, all with equally many outputs."""
    return (
        SPLITS.fits(sums.splits, columns)
        and len(sums.leaves) == sums.splits.n_leaves
        and sums.width > 0
        and all(LEAF.fits(leaf, columns, sums.width) for leaf in sums.leaves)
    )


def forest_fits(forest: Forest, columns: int) -> bool:
    """Whether all splits are by columns that exist, and every path ends in a leaf."""
    splits = len(forest.columns)
    nodes = splits + len(forest.values)
    own = np.arange(splits)[:, None]
    return (
        forest.thresholds.shape == (splits,)
        and forest.children.shape == (splits, 2)
        and forest.roots.size > 0
        and forest.values.size > 0
        and bool((forest.columns < columns).all())
        and bool(((forest.children > own) & (forest.children < nodes)).all())
        and bool((forest.roots < nodes).all())
    )


#: size: columns of what the features are computed from
FEATURE_MAP = OneOf(
    BUMPS_KIND,
    Kind("LocalSums", LocalSums, {"splits": SPLITS, "leaves": ListOf(LEAF)}, local_sums_fit),
    Kind(
        "Forest",
        Forest,
        {
            "columns": Places(1, np.int32),
            "thresholds": Numbers(1, single=True),
            "children": Places(2, np.int32),
            "roots": Places(2, np.int32),
            "values": Numbers(2, single=True),
        },
        forest_fits,
    ),
    Kind(
        "DenseFeatures",
        DenseFeatures,
        {"weights": Numbers(2, single=True), "activation": choice(ACTIVATIONS)},
        lambda m, columns: m.weights.shape[0] == columns + 1 and m.width > 0,
    ),
)


def layer_features_fit(features: LayerFeatures, columns: int, width: int) -> bool:
    """Whether there are features of Φ or of x; those that are added up must be as wide as Φ."""
    sources = ((features.from_phi, width), (features.from_x, columns))
    return (
        bool(features.maps)
        and all(m is None or FEATURE_MAP.fits(m, size) for m, size in sources)
        and (not features.added or {m.width for m in features.maps} == {width})
    )


#: sizes: columns of x, width of Φ
LAYER_FEATURES = OneOf(
    Kind(
        "LayerFeatures",
        LayerFeatures,
        {"from_phi": OrNone(FEATURE_MAP), "from_x": OrNone(FEATURE_MAP), "added": FLAG},
        layer_features_fit,
    ),
)


#: sizes: number of features p, width of Φ
STEP = OneOf(
    Kind(
        "LowRankStep",
        LowRankStep,
        {"C": Numbers(2, single=True), "c": Numbers(1), "V": Numbers(2)},
        lambda s, p, width: s.C.shape == (p, len(s.c)) and s.V.shape == (width, len(s.c)),
    ),
    Kind(
        "DiagonalStep",
        DiagonalStep,
        {"a": Numbers(1)},
        lambda s, p, width: len(s.a) == p == width,
    ),
)


#: size: width of Φ
STANDARDIZER = OneOf(
    Kind(
        "Standardizer",
        Standardizer,
        {"mean": Numbers(1), "std": Numbers(1)},
        lambda s, width: len(s.mean) == len(s.std) == width and bool((s.std > 0).all()),
    ),
)


def layer_fits(layer: Layer, columns: int, width: int) -> bool:
    """Whether features, step and standardizer agree; a layer does not change the width of Φ."""
    return (
        LAYER_FEATURES.fits(layer.features, columns, width)
        and STEP.fits(layer.step, layer.features.width, width)
        and (layer.standardizer is None or STANDARDIZER.fits(layer.standardizer, width))
    )


#: sizes: columns of x, width of Φ
LAYER = OneOf(
    Kind(
        "Layer",
        Layer,
        {"features": LAYER_FEATURES, "step": STEP, "standardizer": OrNone(STANDARDIZER)},
        layer_fits,
    ),
)


#: sizes: width of Φ, outputs
HEAD = OneOf(
    Kind(
        "Head",
        Head,
        {"matrix": Numbers(2)},
        lambda h, width, d: h.matrix.shape == (width + 1, d),
    ),
)


def network_fits(network: Network, columns: int, outputs: int) -> bool:
    """Whether Φ₀, every layer and every head agree on the width of Φ."""
    initial = network.initial
    if len(network.mean) != columns or len(network.heads) != len(network.layers) + 1:
        return False
    if initial is not None and not FEATURE_MAP.fits(initial, columns):
        return False
    width = columns if initial is None else initial.width
    layers = all(LAYER.fits(layer, columns, width) for layer in network.layers)
    return layers and all(HEAD.fits(head, width, outputs) for head in network.heads)


#: sizes: columns of x, outputs
NETWORK = OneOf(
    Kind(
        "Network",
        Network,
        {
            "mean": Numbers(1),
            "initial": OrNone(FEATURE_MAP),
            "layers": ListOf(LAYER),
            "heads": ListOf(HEAD),
        },
        network_fits,
    ),
)


#: the schema of a loss's field, by what ``BuiltInLoss.stored`` says of it
LOSS_FIELDS: dict[str, Schema] = {
    "level": LEVEL,
    "levels": Levels(),
    "scale": NumberOrVector(),
}


def loss_kind(loss: type[BuiltInLoss]) -> Kind:
    """The kind of a built-in loss, made from what its class states."""
    fields = {name: LOSS_FIELDS[what] for name, what in loss.stored.items()}
    return Kind(loss.tag, loss, fields, loss.accepts)


#: size: outputs
REGRESSION_LOSS = OneOf(*(loss_kind(loss) for loss in BUILT_IN if not loss.for_classes))


#: size: outputs
LOG_LOSS = OneOf(*(loss_kind(loss) for loss in BUILT_IN if loss.for_classes))


#: size: outputs
TARGET_SCALE = OneOf(
    Kind(
        "TargetScale",
        TargetScale,
        {"shift": Numbers(1), "scale": OneOrEach()},
        lambda s, d: len(s.shift) in (1, d) and len(s.scale) in (1, d),
    ),
)


#: sizes: members of the ensemble, scores per row
CALIBRATION = OneOf(
    Kind(
        "Calibration",
        Calibration,
        {"scores": ListOf(Numbers(2)), "weights": ListOf(Numbers(2))},
        lambda c, members, d: c.fits(members, d),
    ),
)
