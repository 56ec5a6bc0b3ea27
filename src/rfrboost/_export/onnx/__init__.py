"""A fitted model as an ONNX graph, from table to prediction."""
