"""bfloat16: weights and what convolutions and linear layers read, with the range of float32."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import onnx
from onnx import TensorProto, helper, numpy_helper

from dlas.axes.compression.precision.graphs import SmallerNumbers
from dlas.stack import Data, Unsupported, Workspace, to_bfloat16

LAYERS = ("Conv", "Gemm", "MatMul")
"""Operators that read a weight as their second input."""
OPSET = 13
"""The first set of operators that casts to bfloat16."""


@dataclass(frozen=True)
class Bfloat16(SmallerNumbers):
    """Rounds the network to bfloat16: float32 with 8 bits in place of 24 for the digits of a number.

    Weights of convolutions and linear layers are stored in it; what these layers read is rounded to
    it, for all its readers.  Sums, biases, images and outputs are float32.  ONNX Runtime has no
    such convolutions on processors: as the reference it casts to bfloat16 and back, and computes in
    float32.  TVM builds use the processor's dot products of bfloat16 where it has them.

    References
    ----------
    DLAS, section 4.2: types for which its hardware and compiler lacked support.
    """

    BITS: ClassVar[int] = 16
    # What layers read is rounded in the reference too: builds differ by the order of sums, and where that
    # moves a number to the next one of 8 bits.
    TOLERANCE: ClassVar[float] = 8e-2

    def convert(self, model: onnx.ModelProto, data: Data, workspace: Workspace) -> onnx.ModelProto:
        """Return the graph with casts to bfloat16 and back.

        Raises
        ------
        Unsupported
            If the graph's operators are too old for bfloat16.
        """
        opset = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 0)
        if opset < OPSET:
            raise Unsupported(f"the graph has operators of opset {opset}; bfloat16 needs {OPSET} or newer")
        graph = model.graph
        stored = {tensor.name for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT}
        layers = [node for node in graph.node if node.op_type in LAYERS and node.input[1] in stored]
        weights = dict.fromkeys(node.input[1] for node in layers)
        read = dict.fromkeys(node.input[0] for node in layers if node.input[0] not in stored)
        nodes = [*_stored(graph, weights), *_rounded(graph, read)]
        del graph.node[:]
        graph.node.extend(nodes)
        return model


def _stored(graph: onnx.GraphProto, weights: Iterable[str]) -> Iterator[onnx.NodeProto]:
    """Store tensors in bfloat16 under other names; yield the nodes that cast them to float32."""
    for tensor in graph.initializer:
        if tensor.name in weights:
            name, narrow = tensor.name, f"{tensor.name}_bfloat16"
            bits = to_bfloat16(numpy_helper.to_array(tensor))
            tensor.CopyFrom(
                onnx.TensorProto(
                    name=narrow,
                    dims=bits.shape,
                    data_type=TensorProto.BFLOAT16,
                    raw_data=bits.astype("<u2").tobytes(),
                )
            )
            yield helper.make_node("Cast", [narrow], [name], f"{name}/Cast", to=TensorProto.FLOAT)
    for value in [value for value in graph.input if value.name in weights]:
        graph.input.remove(value)  # files of old list stored tensors there too


def _rounded(graph: onnx.GraphProto, read: Iterable[str]) -> Iterator[onnx.NodeProto]:
    """Yield the graph's nodes, and behind each those that round what it writes, for all readers."""
    names = {name: f"{name}_rounded" for name in read}

    def casts(name: str) -> Iterator[onnx.NodeProto]:
        narrow = f"{name}_bfloat16"
        yield helper.make_node("Cast", [name], [narrow], f"{name}/Round", to=TensorProto.BFLOAT16)
        yield helper.make_node("Cast", [narrow], [names[name]], f"{name}/Widen", to=TensorProto.FLOAT)

    for value in graph.input:
        if value.name in names:
            yield from casts(value.name)
    for given in graph.node:
        node = onnx.NodeProto()
        node.CopyFrom(given)
        del node.input[:]
        node.input.extend(names.get(name, name) for name in given.input)
        yield node
        for name in node.output:
            if name in names:
                yield from casts(name)
