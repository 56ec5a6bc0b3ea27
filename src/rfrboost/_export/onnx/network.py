"""The network as ONNX operators: Φ₀, every layer, the last head.

Follows :class:`rfrboost._model.network.Network`. The features of a layer are computed in single
precision where the rounding errors are small enough; everything else is in double precision.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from rfrboost._export.onnx.features import features
from rfrboost._export.onnx.graph import DOUBLE, Graph, Value, row
from rfrboost._model.network import DiagonalStep, Layer, LayerFeatures, LowRankStep, Network
from rfrboost._numerics.precision import LARGEST_NOISE

# The largest rounding error that an export may add to a prediction, as a share of LARGEST_NOISE,
# which the model itself allows: small, because both errors add up.
SHARE_OF_NOISE = 0.1


def raw(graph: Graph, network: Network, X: Value) -> Value:
    """The raw predictions W_TᵀΦ_T + b of rows X, in double precision."""
    x = graph.op("Sub", graph.cast(X, DOUBLE), row(network.mean))
    initial = network.initial
    phi = x if initial is None else features(graph, initial, x, DOUBLE)
    precisions = network.precisions_for(SHARE_OF_NOISE * LARGEST_NOISE)
    for layer, (dtype, _) in zip(network.layers, precisions, strict=True):
        phi = advanced(graph, layer, phi, x, dtype)
    head = network.heads[-1]
    return graph.op("Add", graph.op("MatMul", phi, head.W), row(head.b))


def advanced(graph: Graph, layer: Layer, phi: Value, x: Value, dtype: np.dtype) -> Value:
    """Φ_t = Φ_{t−1} + A_t f_t, standardised if the layer has a standardizer."""
    F = layer_features(graph, layer.features, phi, x, dtype)
    phi = graph.op("Add", phi, STEPS[type(layer.step)](graph, layer.step, F))
    if layer.standardizer is not None:
        phi = graph.op("Sub", phi, row(layer.standardizer.mean))
        phi = graph.op("Div", phi, row(layer.standardizer.std))
    return phi


def layer_features(
    graph: Graph, layer: LayerFeatures, phi: Value, x: Value, dtype: np.dtype
) -> Value:
    """f_t(x, Φ), computed in ``dtype``."""
    sources = ((layer.from_phi, phi), (layer.from_x, x))
    parts = [
        features(graph, feature_map, z, dtype)
        for feature_map, z in sources
        if feature_map is not None
    ]
    if len(parts) == 1:
        return parts[0]
    if layer.added:
        return graph.op("Add", *parts)
    return graph.op("Concat", *parts, attributes={"axis": 1})


def low_rank_step(graph: Graph, step: LowRankStep, F: Value) -> Value:
    """V(Cᵀf + c), summed in double precision."""
    C = graph.cast(graph.constant(step.C), DOUBLE)
    outputs = graph.op("Add", graph.op("MatMul", graph.cast(F, DOUBLE), C), row(step.c))
    return graph.op("MatMul", outputs, step.V.T)


def diagonal_step(graph: Graph, step: DiagonalStep, F: Value) -> Value:
    """a ⊙ f."""
    return graph.op("Mul", graph.cast(F, DOUBLE), row(step.a))


#: the operators of each kind of step
STEPS: dict[type, Callable[[Graph, Any, Value], Value]] = {
    LowRankStep: low_rank_step,
    DiagonalStep: diagonal_step,
}
