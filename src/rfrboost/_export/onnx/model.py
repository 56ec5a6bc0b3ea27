"""A fitted estimator as an ONNX model: table in, predictions out."""

from collections.abc import Callable

import numpy as np
from onnx import ModelProto

from rfrboost._estimators.fitted import ClassTargets, Fitted, NumberTargets
from rfrboost._estimators.labels import LabelTargets
from rfrboost._export.onnx.columns import Columns, encoded
from rfrboost._export.onnx.graph import DOUBLE, LONG, TEXT, Graph, Value, row
from rfrboost._export.onnx.inputs import inputs_of
from rfrboost._export.onnx.network import raw
from rfrboost._model.loss import LARGEST_EXPONENT, BuiltInLoss, Link, Loss
from rfrboost._model.losses import is_built_in
from rfrboost._version import __version__

#: ONNX's types for labels, by NumPy's kinds
LABEL_TYPES = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64, "U": object}

# A regressor's output is in double precision if its predictions are more than this many times as
# large as their spread: single precision, with seven digits, would then err by more than 1e-6 of
# the spread.
LARGEST_OFFSET = 16.0

# The smallest and the largest scale of y with which an output is in single precision: predictions
# a million times as large as the scale are still within its range (1e-38 to 3e38).
SINGLE_SCALES = (1e-30, 1e30)

# The largest typical prediction exp(b) of a loss for counts, with the head's intercept b, for which
# the output is in single precision. The spread of counts may be as small as the root of their mean,
# here 16: see LARGEST_OFFSET.
LARGEST_COUNT = 256.0


def onnx_model(fitted: Fitted, name: str, dtype: np.dtype) -> ModelProto:
    """The graph ``name`` of a fitted regressor or classifier; numbers come in as ``dtype``.

    They come out as ``dtype`` too, or in double precision where single precision has too few
    digits.
    """
    inputs = inputs_of(fitted.inputs)
    graph = Graph(inputs.all_names)
    columns = Columns(graph, inputs, dtype)
    encoder = fitted.inputs.encoder
    X = columns.numbers(inputs.numbers) if encoder is None else encoded(graph, encoder, columns)
    predicted = linked(graph, fitted.loss, raw(graph, fitted.network, X))
    if isinstance(fitted.targets, LabelTargets):
        write_labels(graph, predicted, fitted.n_outputs, dtype)
    elif isinstance(fitted.targets, ClassTargets):
        write_classes(graph, fitted.targets.classes, predicted, dtype)
    else:
        written = dtype if single_suffices(fitted) else DOUBLE
        write_numbers(graph, fitted.targets, fitted.n_outputs, predicted, written)
    return graph.model(name, __version__)


def linked(graph: Graph, loss: Loss, value: Value) -> Value:
    """Predictions from raw predictions."""
    if not is_built_in(loss):
        raise ValueError(
            f"The loss {type(loss).__name__} cannot be exported: only the losses of rfrboost have "
            "a form in ONNX. Predict with the model itself, or fit with a loss of rfrboost."
        )
    return LINKS[loss.link](graph, value)


def exponential(graph: Graph, value: Value) -> Value:
    """exp(raw), constant beyond the largest exponent."""
    return graph.op("Exp", graph.op("Min", value, row(LARGEST_EXPONENT)))


def two_probabilities(graph: Graph, value: Value) -> Value:
    """1 − p and p of one logit."""
    p = graph.op("Sigmoid", value)
    return graph.op("Concat", graph.op("Sub", row(1.0), p), p, attributes={"axis": 1})


#: how raw predictions become predictions, for every link
LINKS: dict[Link, Callable[[Graph, Value], Value]] = {
    "identity": lambda graph, value: value,
    "exponential": exponential,
    "sigmoid": two_probabilities,
    "sigmoids": lambda graph, value: graph.op("Sigmoid", value),
    "softmax": lambda graph, value: graph.op("Softmax", value, attributes={"axis": 1}),
    "sorted": lambda graph, value: graph.sorted_rows(value),
}


def single_suffices(fitted: Fitted) -> bool:
    """Whether predictions keep enough digits in single precision, in units of their spread."""
    if isinstance(fitted.loss, BuiltInLoss) and fitted.loss.link == "exponential":
        return bool(np.exp(fitted.network.heads[-1].b).max() < LARGEST_COUNT)
    scale = fitted.targets.scale
    low, high = SINGLE_SCALES
    small_offset = np.abs(scale.shift) <= LARGEST_OFFSET * scale.scale
    return bool(np.all(small_offset & (low <= scale.scale) & (scale.scale <= high)))


def write_numbers(
    graph: Graph, targets: NumberTargets, n_outputs: int, predicted: Value, dtype: np.dtype
) -> None:
    """One output, ``variable``, in the units of y and within the bounds of predictions.

    The offset is added in double precision.
    """
    scale = targets.scale
    if targets.bounds is not None:
        low, high = map(row, targets.bounds)
        predicted = graph.op("Min", graph.op("Max", predicted, low), high)
    y = graph.op("Add", graph.op("Mul", predicted, row(scale.scale)), row(scale.shift))
    graph.output(graph.cast(y, dtype), "variable", n_outputs)


def write_classes(graph: Graph, classes: np.ndarray, predicted: Value, dtype: np.dtype) -> None:
    """``label``, the most probable class, and ``probabilities`` in the order of ``classes_``."""
    best = {"axis": 1, "keepdims": 0}
    code = graph.op("ArgMax", predicted, dtype=LONG, attributes=best)
    labels = graph.constant(label_array(classes))
    graph.output(graph.op("Gather", labels, code, attributes={"axis": 0}), "label", None)
    graph.output(graph.cast(predicted, dtype), "probabilities", len(classes))


def write_labels(graph: Graph, predicted: Value, n_labels: int, dtype: np.dtype) -> None:
    """``label`` (n, n_labels), 0 or 1 for each of several labels, and their ``probabilities``."""
    present = graph.op("Greater", predicted, row(0.5), dtype=np.dtype(np.bool_))
    graph.output(graph.cast(present, LONG), "label", n_labels)
    graph.output(graph.cast(predicted, dtype), "probabilities", n_labels)


def label_array(classes: np.ndarray) -> np.ndarray:
    """Labels in a type that ONNX has; objects are text if all of them are."""
    if classes.dtype.kind == "u" and classes.max() > np.iinfo(np.int64).max:
        return classes.astype(np.uint64)
    texts = classes.dtype.kind == "O" and all(type(label) is str for label in classes)
    dtype = np.dtype(TEXT) if texts else LABEL_TYPES.get(classes.dtype.kind)
    if dtype is None:
        raise ValueError(
            "The labels are of mixed types, for which ONNX has none; make all of them text."
        )
    return classes.astype(dtype)
