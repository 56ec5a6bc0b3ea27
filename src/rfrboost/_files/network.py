"""What a fitted network consists of: every kind of part, its fields, and how parts fit together.

The table that model files are made from. A new kind of layer, step, feature map or loss is one
more ``Kind`` in its family here; nothing else knows the kinds by name.
"""

from typing import Any

import numpy as np

from rfrboost._auto.conformal import Calibration
from rfrboost._files.schema import (
    FLAG,
    POSITIVE_NUMBER,
    Kind,
    Many,
    Maybe,
    NumberOrVector,
    Numbers,
    Part,
    Plain,
    State,
    choice,
    is_number,
)
from rfrboost._model.bumps import Bumps, Distances
from rfrboost._model.features import ACTIVATIONS, DenseFeatures
from rfrboost._model.leaves import Leaf, LocalSums, Splits
from rfrboost._model.losses import (
    BinaryLogLoss,
    Huber,
    Poisson,
    Quantile,
    Quantiles,
    SoftmaxLogLoss,
    SquaredError,
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
from rfrboost._rows.units import TargetScale
from rfrboost._typing import Array

SHARE = Plain("a number from 0 to 1", lambda v: is_number(v) and 0 <= v <= 1)


class Metric:
    """A matrix, or its diagonal alone."""

    def write(self, value: Any, where: str) -> State:
        return Numbers(np.ndim(value)).write(value, where)

    def read(self, state: State, where: str) -> Any:
        return Numbers(1 if np.ndim(state) == 1 else 2).read(state, where)


#: told the number of columns
DISTANCES = Part(
    Kind(
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


BUMPS = Part(BUMPS_KIND)


#: told the number of columns
SPLITS = Part(
    Kind(
        Splits,
        {"directions": Numbers(2), "thresholds": Numbers(1)},
        lambda s, columns: (
            s.directions.shape == (len(s.thresholds), columns) and s.n_leaves.bit_count() == 1
        ),
    ),
)


#: told the number of columns and of sums
LEAF = Part(
    Kind(
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
    """A leaf for every end of the tree, all of one width."""
    return (
        SPLITS.fits(sums.splits, columns)
        and len(sums.leaves) == sums.splits.n_leaves
        and sums.width > 0
        and all(LEAF.fits(leaf, columns, sums.width) for leaf in sums.leaves)
    )


#: told the number of columns of what the features are of
FEATURE_MAP = Part(
    BUMPS_KIND,
    Kind(LocalSums, {"splits": SPLITS, "leaves": Many(LEAF)}, local_sums_fit),
    Kind(
        DenseFeatures,
        {"weights": Numbers(2, single=True), "activation": choice(ACTIVATIONS)},
        lambda m, columns: m.weights.shape[0] == columns + 1 and m.width > 0,
    ),
)


def layer_features_fit(features: LayerFeatures, columns: int, width: int) -> bool:
    """Features of Φ (``width``) and of x (``columns``); what is added must be of one width."""
    sources = ((features.from_phi, width), (features.from_x, columns))
    return (
        bool(features.maps)
        and all(m is None or FEATURE_MAP.fits(m, size) for m, size in sources)
        and (not features.added or {m.width for m in features.maps} == {width})
    )


LAYER_FEATURES = Part(
    Kind(
        LayerFeatures,
        {"from_phi": Maybe(FEATURE_MAP), "from_x": Maybe(FEATURE_MAP), "added": FLAG},
        layer_features_fit,
    ),
)


#: told the number of features and the width of Φ
STEP = Part(
    Kind(
        LowRankStep,
        {"C": Numbers(2, single=True), "c": Numbers(1), "V": Numbers(2)},
        lambda s, p, width: s.C.shape == (p, len(s.c)) and s.V.shape == (width, len(s.c)),
    ),
    Kind(DiagonalStep, {"a": Numbers(1)}, lambda s, p, width: len(s.a) == p == width),
)


#: told the width of Φ
STANDARDIZER = Part(
    Kind(
        Standardizer,
        {"mean": Numbers(1), "std": Numbers(1)},
        lambda s, width: len(s.mean) == len(s.std) == width and bool((s.std > 0).all()),
    ),
)


def layer_fits(layer: Layer, columns: int, width: int) -> bool:
    """Told the number of columns of x and the width of Φ, which a layer does not change."""
    return (
        LAYER_FEATURES.fits(layer.features, columns, width)
        and STEP.fits(layer.step, layer.features.width, width)
        and (layer.standardizer is None or STANDARDIZER.fits(layer.standardizer, width))
    )


LAYER = Part(
    Kind(
        Layer,
        {"features": LAYER_FEATURES, "step": STEP, "standardizer": Maybe(STANDARDIZER)},
        layer_fits,
    ),
)


#: told the width of Φ and the number of outputs
HEAD = Part(
    Kind(Head, {"matrix": Numbers(2)}, lambda h, width, d: h.matrix.shape == (width + 1, d)),
)


def network_fits(network: Network, columns: int, outputs: int) -> bool:
    """Told the number of columns of x and the number of outputs."""
    initial = network.initial
    if len(network.mean) != columns or len(network.heads) != len(network.layers) + 1:
        return False
    if initial is not None and not FEATURE_MAP.fits(initial, columns):
        return False
    width = columns if initial is None else initial.width
    layers = all(LAYER.fits(layer, columns, width) for layer in network.layers)
    return layers and all(HEAD.fits(head, width, outputs) for head in network.heads)


NETWORK = Part(
    Kind(
        Network,
        {
            "mean": Numbers(1),
            "initial": Maybe(FEATURE_MAP),
            "layers": Many(LAYER),
            "heads": Many(HEAD),
        },
        network_fits,
    ),
)


LEVEL = Plain("a number between 0 and 1", lambda v: is_number(v) and 0 < v < 1)


def rises_within(values: Array, low: float, high: float) -> bool:
    """Whether numbers rise from one to the next, between two bounds that are not among them."""
    return bool((np.diff(np.concatenate([[low], values, [high]])) > 0).all())


#: told the number of outputs
REGRESSION_LOSS = Part(
    Kind(SquaredError, {}, lambda loss, d: True),
    Kind(Huber, {"delta": NumberOrVector()}, lambda loss, d: np.size(loss.delta) in (1, d)),
    Kind(
        Quantile,
        {"level": LEVEL, "smoothing": NumberOrVector()},
        lambda loss, d: np.size(loss.smoothing) in (1, d),
    ),
    Kind(
        Quantiles,
        {"level": Numbers(1), "smoothing": NumberOrVector()},
        lambda loss, d: (
            rises_within(loss.level, 0.0, 1.0)
            and len(loss.level) == d
            and np.size(loss.smoothing) == 1
        ),
    ),
    Kind(Poisson, {}, lambda loss, d: True),
)


#: told the number of outputs
LOG_LOSS = Part(
    Kind(BinaryLogLoss, {}, lambda loss, d: d == 1),
    Kind(SoftmaxLogLoss, {}, lambda loss, d: d > 1),
)


#: told the number of outputs
TARGET_SCALE = Part(
    Kind(
        TargetScale,
        {"shift": Numbers(1), "scale": POSITIVE_NUMBER},
        lambda s, d: len(s.shift) in (1, d),
    ),
)


#: told the number of members and of scores a row
CALIBRATION = Part(
    Kind(
        Calibration,
        {"scores": Many(Numbers(2)), "weights": Many(Numbers(2))},
        lambda c, members, d: c.fits(members, d),
    ),
)
