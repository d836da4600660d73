"""An ONNX graph in half precision as the same graph in single precision, whose weights are halves still."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper


def in_single(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a graph in float32 with the numbers of one in float16: every half is a float32 number."""
    single = onnx.ModelProto()
    single.CopyFrom(model)
    graph = single.graph
    for tensor in graph.initializer:
        _widen(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT16:
                attribute.i = TensorProto.FLOAT
            elif attribute.type == onnx.AttributeProto.TENSOR:
                _widen(attribute.t)
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT16:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    del graph.value_info[:]
    return single


def _widen(tensor: onnx.TensorProto) -> None:
    """Make a tensor of halves one of float32 in place."""
    if tensor.data_type == TensorProto.FLOAT16:
        wide = numpy_helper.to_array(tensor).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(wide, tensor.name))
