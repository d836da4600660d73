"""An ONNX graph in 16 bits as the same graph in single precision, whose weights have 16 bits still."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

HALVES = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
"""ONNX's floating-point types of 16 bits, by name."""


def in_single(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a graph in float32 with the numbers of one in 16 bits, all of which float32 has too.

    It rounds nothing: a cast to 16 bits is one to float32 there.
    """
    single = onnx.ModelProto()
    single.CopyFrom(model)
    graph = single.graph
    for tensor in graph.initializer:
        _widen(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i in HALVES.values():
                attribute.i = TensorProto.FLOAT
            elif attribute.type == onnx.AttributeProto.TENSOR:
                _widen(attribute.t)
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type in HALVES.values():
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    del graph.value_info[:]
    return single


def _widen(tensor: onnx.TensorProto) -> None:
    """Make a tensor of 16 bits one of float32 in place."""
    if tensor.data_type in HALVES.values():
        wide = numpy_helper.to_array(tensor).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(wide, tensor.name))
