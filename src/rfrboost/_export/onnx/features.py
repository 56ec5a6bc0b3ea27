"""Feature maps as ONNX operators: every kind of map, and every activation.

Each function follows the map of the same name in ``rfrboost._model`` and takes rows z (n, D) in
double precision. Features are computed in the precision ``dtype`` that it is given.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from rfrboost._export.onnx.graph import (
    BOOL,
    COLUMNS,
    DOUBLE,
    FLOAT,
    Graph,
    Value,
    absolute_differences,
    row,
)
from rfrboost._model.bumps import FARTHEST, LARGEST_CENTRE, ROUNDING, Bumps, single
from rfrboost._model.features import DenseFeatures, FeatureMap
from rfrboost._model.forest import Forest
from rfrboost._model.leaves import LocalSums, Splits
from rfrboost._numerics.blas import column_scales, stretched
from rfrboost._typing import Array

INDEX = np.dtype(np.int64)
NODE = np.dtype(np.int32)

#: the axes of a sum over the columns of each row
ALONG_ROWS = np.array([1], dtype=np.int64)


def shifted_sine(graph: Graph, z: Value) -> Value:
    """cos z as sin(z + π/2), because onnxruntime has no cosine in double precision."""
    return graph.op("Sin", graph.op("Add", z, row(np.pi / 2, z.dtype)))


#: the activation σ of every name
ACTIVATIONS: dict[str, Callable[[Graph, Value], Value]] = {
    "identity": lambda graph, z: z,
    "tanh": lambda graph, z: graph.op("Tanh", z),
    "relu": lambda graph, z: graph.op("Relu", z),
    "sigmoid": lambda graph, z: graph.op("Sigmoid", z),
    "sin": lambda graph, z: graph.op("Sin", z),
    "cos": shifted_sine,
}


def features(graph: Graph, feature_map: FeatureMap, z: Value, dtype: np.dtype) -> Value:
    """f(z) for rows z (n, D), computed in ``dtype``."""
    write = KINDS.get(type(feature_map))
    if write is None:
        raise ValueError(
            f"Features of the class {type(feature_map).__name__} cannot be exported to ONNX: only "
            "the features of rfrboost can. Set features='swim', or another name."
        )
    return write(graph, feature_map, z, dtype)


def dense_features(graph: Graph, feature_map: DenseFeatures, z: Value, dtype: np.dtype) -> Value:
    """σ(zB + b)."""
    # Constants keep the precision that they are stored in, which keeps the file small.
    B, b = (
        graph.cast(graph.constant(part), dtype)
        for part in (feature_map.weights[:-1], feature_map.weights[-1:])
    )
    z = graph.op("Add", graph.op("MatMul", graph.cast(z, dtype), B), b)
    return ACTIVATIONS[feature_map.activation](graph, z)


def bumps(graph: Graph, feature_map: Bumps, z: Value, dtype: np.dtype) -> Value:
    """(1 − mix)·exp(−euclidean/reach) + mix·exp(−absolute/reach)."""
    mix = feature_map.mix
    parts = [
        bump(graph, measure(graph, feature_map, z, dtype), share, feature_map.reach)
        for share, measure in ((1.0 - mix, euclidean), (mix, absolute))
        if share > 0
    ]
    return parts[0] if len(parts) == 1 else graph.op("Add", *parts)


def bump(graph: Graph, distance: Value, share: float, reach: float) -> Value:
    """share·exp(−distance/reach)."""
    height = graph.op("Exp", graph.op("Mul", distance, row(-1.0 / reach, distance.dtype)))
    return height if share == 1 else graph.op("Mul", height, row(share, height.dtype))


def euclidean(graph: Graph, feature_map: Bumps, z: Value, dtype: np.dtype) -> Value:
    """‖(z − c)L‖ in units of ``euclidean_unit``."""
    L = feature_map.distances.L
    unit = feature_map.distances.euclidean_unit
    in_metric = graph.op("Mul" if L.ndim == 1 else "MatMul", z, np.atleast_2d(L))
    A = rounded(graph, graph.op("Div", in_metric, row(unit)))
    B = single(stretched(feature_map.centres, L) / unit)
    return graph.op("Sqrt", squares(graph, A, B, dtype))


def absolute(graph: Graph, feature_map: Bumps, z: Value, dtype: np.dtype) -> Value:
    """Σ_j scale_j·|z_j − c_j|.

    For a column of two values ``span`` apart, |z − c| is (z − c)²/span, which needs no loop.
    """
    distances = feature_map.distances
    centres = feature_map.centres
    scales = column_scales(distances.L) / distances.absolute_unit
    two = distances.spans > 0
    roots = np.sqrt(scales[two]) / np.sqrt(distances.spans[two])
    parts = []
    for columns, by, add_up in ((two, roots, squares), (~two, scales[~two], absolute_differences)):
        if columns.any():
            A = stretched_columns(graph, z, columns, by)
            B = single(centres[:, columns] * by)
            parts.append(add_up(graph, A, B, dtype))
    return parts[0] if len(parts) == 1 else graph.op("Add", *parts)


def stretched_columns(graph: Graph, z: Value, columns: np.ndarray, by: Array) -> Value:
    """The chosen columns, each multiplied by its entry of ``by``."""
    which = np.flatnonzero(columns).astype(np.int64)
    some = graph.op("Gather", z, which, attributes={"axis": 1})
    return rounded(graph, graph.op("Mul", some, row(by)))


def rounded(graph: Graph, z: Value, largest: float = FARTHEST) -> Value:
    """Coordinates in single precision, limited to ±largest so that their squares are finite."""
    return graph.cast(graph.op("Clip", z, np.array(-largest), np.array(largest)), FLOAT)


def squares(graph: Graph, A: Value, B: Array, dtype: np.dtype) -> Value:
    """Squared distances ‖a‖² + ‖b‖² − 2ab of rows of A (n, k) and B (m, k).

    They are 0 where the model takes them for rounding errors. The sum is computed in double
    precision, because near a centre its terms cancel and single precision has no digits left.
    """
    wide = graph.cast(A, DOUBLE)
    b = row(np.square(B.astype(float)).sum(axis=1))
    a = graph.op("ReduceSum", graph.op("Mul", wide, wide), ALONG_ROWS)
    norms = graph.op("Add", a, b)
    product = graph.op("MatMul", wide, graph.cast(graph.constant(-2 * B.T), DOUBLE))
    squared = graph.op("Add", product, norms)
    least = graph.op("Mul", norms, row(float(ROUNDING)))
    above = graph.op("Greater", squared, least, dtype=BOOL)
    return graph.cast(graph.op("Where", above, squared, row(0.0), dtype=DOUBLE), dtype)


def local_sums(graph: Graph, feature_map: LocalSums, z: Value, dtype: np.dtype) -> Value:
    """Cᵀf + c of the leaf that each row falls into, computed leaf by leaf."""
    where = leaf_numbers(graph, feature_map.splits, z)
    places = []
    sums = []
    for j, leaf in enumerate(feature_map.leaves):
        own = graph.op("Equal", where, np.array([[j]]), dtype=BOOL)
        found = graph.op("NonZero", own, dtype=INDEX)
        place = graph.op(
            "Gather", graph.op("Transpose", found), np.array([0]), attributes={"axis": 1}
        )
        rows = graph.op("GatherND", z, place)
        F = graph.cast(bumps(graph, leaf.bumps, rows, dtype), DOUBLE)
        C = graph.cast(graph.constant(leaf.C), DOUBLE)
        sums.append(graph.op("Add", graph.op("MatMul", F, C), row(leaf.c)))
        places.append(place)
    zeros = graph.op(
        "MatMul", z, np.zeros((feature_map.splits.directions.shape[1], feature_map.width))
    )
    every = [graph.op("Concat", *parts, attributes={"axis": 0}) for parts in (places, sums)]
    return graph.op("ScatterND", zeros, *every)


def leaf_numbers(graph: Graph, splits: Splits, z: Value) -> Value:
    """The index of the leaf that each row falls into, found level by level from the root."""
    along = graph.op("MatMul", z, np.ascontiguousarray(splits.directions.T))
    right = graph.cast(graph.op("Greater", along, row(splits.thresholds), dtype=BOOL), INDEX)
    first = graph.op("Gather", right, np.array([0]), attributes={"axis": 1})
    node = graph.op("Mul", first, np.array([[0]]))
    for _ in range(splits.n_leaves.bit_length() - 1):
        turn = graph.op("GatherElements", right, node, attributes={"axis": 1})
        node = graph.op(
            "Add", graph.op("Add", graph.op("Mul", node, np.array([[2]])), turn), np.array([[1]])
        )
    return graph.op("Sub", node, np.array([[len(splits.thresholds)]]))


def forest(graph: Graph, feature_map: Forest, z: Value, dtype: np.dtype) -> Value:
    """For every member and output, the sum of the values of the leaves that a row falls into.

    Every tree is followed for as many steps as the deepest tree has; a leaf leads to itself.
    """
    members, count = feature_map.roots.shape
    leaves, outputs = feature_map.values.shape
    questions = len(feature_map.columns)
    own = np.arange(questions, questions + leaves)
    columns, thresholds, children = (
        graph.constant(np.concatenate([of_questions.ravel(), of_leaves.astype(of_questions.dtype)]))
        for of_questions, of_leaves in (
            (feature_map.columns, np.zeros(leaves)),
            (feature_map.thresholds, np.zeros(leaves)),
            (feature_map.children, own.repeat(2)),
        )
    )
    x = rounded(graph, z, LARGEST_CENTRE)
    first = graph.op("Gather", x, np.array([0]), attributes=COLUMNS)
    zeros = graph.cast(graph.op("Mul", first, np.zeros((1, 1), FLOAT)), NODE)
    node = graph.op("Add", zeros, feature_map.roots.reshape(1, -1))
    for _ in range(feature_map.depth):
        column = graph.op("Gather", columns, node)
        asked = graph.op("GatherElements", x, column, attributes=COLUMNS)
        above = graph.op("Greater", asked, graph.op("Gather", thresholds, node), dtype=BOOL)
        twice = graph.op("Add", node, node)
        node = graph.op("Gather", children, graph.op("Add", twice, graph.cast(above, NODE)))
    place = graph.op("Sub", node, np.array([[questions]], NODE))
    of_trees = graph.op("Gather", graph.constant(feature_map.values), place)
    return member_sums(graph, graph.cast(of_trees, DOUBLE), members, count, outputs)


def member_sums(graph: Graph, of_trees: Value, members: int, count: int, outputs: int) -> Value:
    """The sums (n, m·d) over the trees of each member, of values (n, m·T, d)."""
    by_member = graph.op("Reshape", of_trees, np.array([-1, members, count, outputs]))
    sums = graph.op("ReduceSum", by_member, np.array([2]), attributes={"keepdims": 0})
    return graph.op("Reshape", sums, np.array([-1, members * outputs]))


#: the operators of each kind of map
KINDS: dict[type, Callable[[Graph, Any, Value, np.dtype], Value]] = {
    DenseFeatures: dense_features,
    Bumps: bumps,
    LocalSums: local_sums,
    Forest: forest,
}
