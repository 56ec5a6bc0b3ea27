"""A graph of ONNX operators, built one operator at a time.

Operators and versions are old ones on purpose, so that old runtimes can run the model.
Sums of absolute differences, for which ONNX has no operator, are a loop over columns
(:func:`absolute_differences`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

from rfrboost._typing import Array

# Versions of the main operator set, the machine learning set and the file format: onnxruntime
# reads all three from its version 1.12 (2022) on.
OPSET = 17
OPSET_ML = 3
IR_VERSION = 8

#: operators outside the main set, with the domain they belong to
ML_OPERATORS = {"LabelEncoder": "ai.onnx.ml"}

COLUMNS = {"axis": 1}


FLOAT, DOUBLE, LONG, BOOL, TEXT = (
    np.dtype(t) for t in (np.float32, np.float64, np.int64, np.bool_, object)
)


@dataclass(frozen=True)
class Value:
    """The result of an operator: its name in the graph, and the type of its entries."""

    name: str
    dtype: np.dtype


class Graph:
    """Inputs, constants, operators and outputs that have been added so far."""

    def __init__(self, input_names: Sequence[str]) -> None:
        self._taken = set(input_names)
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._casts: dict[tuple[Value, np.dtype], Value] = {}

    def input(self, name: str, dtype: np.dtype, width: int, doc: str) -> Value:
        """An input of ``width`` columns and any number of rows."""
        self._inputs.append(tensor_info(name, dtype, ["N", width], doc))
        return Value(name, dtype)

    def output(self, value: Value, name: str, width: int | None) -> None:
        """Make a value an output: (n, ``width``), or (n,) if ``width`` is None."""
        free = self.free_name(name)
        self._nodes.append(helper.make_node("Identity", [value.name], [free], name=free))
        shape: list[str | int] = ["N"] if width is None else ["N", width]
        self._outputs.append(tensor_info(free, value.dtype, shape, ""))

    def op(
        self,
        kind: str,
        *inputs: Value | np.ndarray,
        dtype: np.dtype | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> Value:
        """Add an operator; arrays become constants. Its type is by default its first input's."""
        values = [i if isinstance(i, Value) else self.constant(i) for i in inputs]
        result = Value(self.free_name(kind), dtype or values[0].dtype)
        names = [value.name for value in values]
        domain = ML_OPERATORS.get(kind)
        # Some versions of onnxruntime fuse operators and fail where two of them have no name.
        own = {"name": result.name, "domain": domain, **(attributes or {})}
        self._nodes.append(helper.make_node(kind, names, [result.name], **own))
        return result

    def sorted_rows(self, value: Value) -> Value:
        """The entries of every row in rising order: ``TopK`` of all, without its indices."""
        result = Value(self.free_name("TopK"), value.dtype)
        places = self.free_name("places")
        width = self.op("Shape", value, dtype=np.dtype(np.int64), attributes={"start": 1, "end": 2})
        names = [value.name, width.name]
        order: dict[str, Any] = {"axis": 1, "largest": 0, "sorted": 1, "name": result.name}
        self._nodes.append(helper.make_node("TopK", names, [result.name, places], **order))
        return result

    def constant(self, array: np.ndarray) -> Value:
        """An array that is part of the model."""
        name = self.free_name("constant")
        array = np.asarray(array)
        self._constants.append(
            helper.make_tensor(name, TensorProto.STRING, array.shape, array.ravel().tolist())
            if array.dtype == TEXT
            else numpy_helper.from_array(np.ascontiguousarray(array), name)
        )
        return Value(name, array.dtype)

    def cast(self, value: Value, dtype: np.dtype) -> Value:
        """A value in another type; a value that is used several times is cast only once."""
        if value.dtype == dtype:
            return value
        if (value, dtype) not in self._casts:
            to = {"to": helper.np_dtype_to_tensor_dtype(dtype)}
            self._casts[value, dtype] = self.op("Cast", value, dtype=dtype, attributes=to)
        return self._casts[value, dtype]

    def free_name(self, stem: str) -> str:
        """A name that nothing in the graph has yet."""
        name = stem
        i = 0
        while name in self._taken:
            i += 1
            name = f"{stem}_{len(self._taken) + i}"
        self._taken.add(name)
        return name

    def model(self, doc: str, version: str) -> ModelProto:
        """The finished model, checked by the package onnx."""
        graph = helper.make_graph(
            self._nodes, "rfrboost", self._inputs, self._outputs, self._constants
        )
        model = helper.make_model(
            graph,
            opset_imports=[
                helper.make_opsetid("", OPSET),
                helper.make_opsetid("ai.onnx.ml", OPSET_ML),
            ],
            ir_version=IR_VERSION,
            producer_name="rfrboost",
            producer_version=version,
            doc_string=doc,
        )
        checker.check_model(model)
        return model


def tensor_info(name: str, dtype: np.dtype, shape: Sequence[str | int], doc: str) -> Any:
    """The declaration of a tensor's type and shape."""
    kind = TensorProto.STRING if dtype == TEXT else helper.np_dtype_to_tensor_dtype(dtype)
    return helper.make_tensor_value_info(name, kind, shape, doc)


def row(values: Array | float, dtype: np.dtype = DOUBLE) -> np.ndarray:
    """A constant that is added to, or multiplied with, every row."""
    return np.atleast_2d(np.asarray(values, dtype=dtype))


def absolute_differences(graph: Graph, A: Value, B: Array, dtype: np.dtype) -> Value:
    """Σ_j |a_j − b_j| for all rows a of A (n, k) and b of B (m, k), computed in ``dtype``.

    Columns are added one after the other: all at once would take memory for n × m × k numbers.
    """
    A = graph.cast(A, dtype)
    first = graph.op("Gather", A, np.array([0]), attributes=COLUMNS)
    total = graph.op("Abs", graph.op("Sub", first, B[:, :1].T.astype(dtype)))
    if B.shape[1] == 1:
        return total
    rest = graph.op("Gather", A, np.arange(1, B.shape[1]), attributes=COLUMNS)
    columns = graph.op("Transpose", rest, attributes={"perm": [1, 0]})
    loop = {"num_scan_inputs": 2, "body": one_more_column(graph, len(B), dtype)}
    others = graph.cast(graph.constant(B[:, 1:].T), dtype)
    return graph.op("Scan", total, columns, others, attributes=loop)


def one_more_column(graph: Graph, m: int, dtype: np.dtype) -> object:
    """The body of the loop: total (n, m) + |a − b| for columns a (n,) and b (m,)."""
    # The number of rows is not called as that of the table, because a leaf has fewer rows.
    total, a, b, axis, tall, difference, size, sum_, rows = map(
        graph.free_name,
        ("total", "a", "b", "axis", "tall", "difference", "size", "sum", "rows"),
    )
    nodes = [
        helper.make_node("Unsqueeze", [a, axis], [tall], name=tall),
        helper.make_node("Sub", [tall, b], [difference], name=difference),
        helper.make_node("Abs", [difference], [size], name=size),
        helper.make_node("Add", [total, size], [sum_], name=sum_),
    ]
    inputs = [
        tensor_info(total, dtype, [rows, m], ""),
        tensor_info(a, dtype, [rows], ""),
        tensor_info(b, dtype, [m], ""),
    ]
    outputs = [tensor_info(sum_, dtype, [rows, m], "")]
    constant = numpy_helper.from_array(np.array([1]), axis)
    return helper.make_graph(nodes, graph.free_name("column"), inputs, outputs, [constant])
