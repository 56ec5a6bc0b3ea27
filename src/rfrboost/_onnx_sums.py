"""Sums of absolute differences as an ONNX operator: one column after the other.

All columns at once would take memory of rows × centres × columns.
"""

import numpy as np
from onnx import helper, numpy_helper

from rfrboost._onnx_graph import Graph, Value, tensor_info
from rfrboost._typing import Array

COLUMNS = {"axis": 1}


def absolute_differences(graph: Graph, A: Value, B: Array, dtype: np.dtype) -> Value:
    """Σ_j |a_j − b_j| for all rows a of A (n, k) and b of B (m, k), in a precision."""
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
    """The body of the loop: total + |a − b| for a column a (n) and b (m)."""
    # The number of rows has a name too: those of a leaf are not those of the table.
    total, a, b, axis, tall, difference, size, sum_, rows = map(
        graph.free_name,
        ("total", "a", "b", "axis", "tall", "difference", "size", "sum", "rows"),
    )
    nodes = [
        helper.make_node("Unsqueeze", [a, axis], [tall]),
        helper.make_node("Sub", [tall, b], [difference]),
        helper.make_node("Abs", [difference], [size]),
        helper.make_node("Add", [total, size], [sum_]),
    ]
    inputs = [
        tensor_info(total, dtype, [rows, m], ""),
        tensor_info(a, dtype, [rows], ""),
        tensor_info(b, dtype, [m], ""),
    ]
    outputs = [tensor_info(sum_, dtype, [rows, m], "")]
    constant = numpy_helper.from_array(np.array([1]), axis)
    return helper.make_graph(nodes, graph.free_name("column"), inputs, outputs, [constant])
