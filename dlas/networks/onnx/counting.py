"""Counts of an ONNX graph: parameters, multiply-adds, bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from dlas.stack import csr_bytes

WEIGHT_OF_CONVOLUTION = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}
WEIGHT_OF_PRODUCT = {"Gemm": 1, "MatMul": 1, "MatMulInteger": 1, "QLinearMatMul": 3}
"""Index of the weight among an operator's inputs."""

SETTINGS = {
    "BatchNormalization": {3, 4},
    "QuantizeLinear": {1, 2},
    "DequantizeLinear": {1, 2},
    "ConvInteger": {2, 3},
    "MatMulInteger": {2, 3},
    "QLinearConv": {1, 2, 4, 5, 6, 7},
    "QLinearMatMul": {1, 2, 4, 5, 6, 7},
}
"""Indices of stored inputs that are no parameters: batch norm statistics, scales, zero points."""


@dataclass(frozen=True)
class GraphCounts:
    """Counts of a graph."""

    parameters: int
    nonzeros: int
    """Of the stored tensors without single numbers (a clip's bounds), 64-bit integers (shapes, axes), batch
    norm statistics, scales and zero points.
    """
    macs: int
    effective_macs: int
    """Multiply-adds for one image of convolutions and of products with stored weights; and without those
    whose weight is zero.
    """
    model_bytes: int
    csr_bytes: int
    """All stored tensors; and with the weights of 2-D convolutions in compressed sparse rows."""


def count_graph(model: onnx.ModelProto) -> GraphCounts:
    """Return the counts of a graph.

    Raises
    ------
    ValueError
        If ONNX cannot infer a shape that is needed.
    """
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    nonzeros = {name: int(np.count_nonzero(array)) for name, array in stored.items()}
    parameters = _parameters(model.graph)
    layers = _layers(model)
    model_bytes = sum(array.nbytes for array in stored.values())
    convolved = {layer.weight for layer in layers if layer.convolution and layer.weight in stored}
    sparse = {name: stored[name] for name in convolved if stored[name].ndim == 4}
    return GraphCounts(
        parameters=sum(stored[name].size for name in parameters),
        nonzeros=sum(nonzeros[name] for name in parameters),
        macs=sum(layer.macs for layer in layers),
        # All weights of a layer are used equally often.
        effective_macs=sum(
            layer.macs * nonzeros[layer.weight] // stored[layer.weight].size
            if layer.weight in stored
            else layer.macs
            for layer in layers
        ),
        model_bytes=model_bytes,
        csr_bytes=model_bytes
        + sum(csr_bytes(len(a), nonzeros[name], a.itemsize) - a.nbytes for name, a in sparse.items()),
    )


def graph_input(model: onnx.ModelProto) -> onnx.ValueInfoProto:
    """Return the graph's only input.

    Raises
    ------
    ValueError
        If it has none or several (stored weights that old files list as inputs do not count).
    """
    stored = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in stored]
    if len(inputs) != 1:
        listed = ", ".join(value.name for value in inputs)
        raise ValueError(f"it has {len(inputs)} inputs ({listed}), not one")
    return inputs[0]


def _parameters(graph: onnx.GraphProto) -> list[str]:
    """Return the names of the stored tensors that are parameters."""
    settings = {
        node.input[place]
        for node in graph.node
        for place in SETTINGS.get(node.op_type, ())
        if place < len(node.input)
    }
    return [
        tensor.name
        for tensor in graph.initializer
        if tensor.dims and tensor.data_type != TensorProto.INT64 and tensor.name not in settings
    ]


@dataclass(frozen=True)
class _Layer:
    """A convolution or linear layer: the name of its stored weight, multiply-adds for one image."""

    weight: str
    convolution: bool
    macs: int


def _layers(model: onnx.ModelProto) -> list[_Layer]:
    """Return the graph's convolutions and products with stored weights."""
    shapes, batch = infer_shapes(model)
    # Tensors computed from stored ones alone, by the stored tensor: weights behind DequantizeLinear.
    source = {tensor.name: tensor.name for tensor in model.graph.initializer}
    layers = []
    for node in model.graph.node:
        if all(name in source for name in node.input if name):
            behind = source[node.input[0]] if node.input else node.output[0]
            source.update(dict.fromkeys(node.output, behind))
            continue
        place = {**WEIGHT_OF_CONVOLUTION, **WEIGHT_OF_PRODUCT}.get(node.op_type)
        if place is not None and node.input[place] in source:
            macs = _node_macs(node, node.input[place], shapes) // batch
            layers.append(_Layer(source[node.input[place]], node.op_type in WEIGHT_OF_CONVOLUTION, macs))
    return layers


def infer_shapes(model: onnx.ModelProto) -> tuple[dict[str, list[int]], int]:
    """Return the shapes of tensors, 0 for unknown sizes, and the batch they are for.

    Shapes around convolutions and products are known if the graph can be run.
    The batch is 1 where the graph takes any.
    """
    single = onnx.ModelProto()
    single.CopyFrom(model)
    # Shapes stored in the graph may be symbolic or, after a conversion, of another type.
    del single.graph.value_info[:]
    batch = graph_input(single).type.tensor_type.shape.dim[0]
    batch.dim_value = batch.dim_value or 1
    graph = onnx.shape_inference.infer_shapes(single, data_prop=True).graph
    shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for value in [*graph.value_info, *graph.input, *graph.output]:
        shapes.setdefault(value.name, [size.dim_value for size in value.type.tensor_type.shape.dim])
    layers = [node for node in graph.node if node.op_type in (*WEIGHT_OF_CONVOLUTION, *WEIGHT_OF_PRODUCT)]
    around = {name for node in layers for name in (node.input[0], node.output[0])}
    unknown = sorted(name for name in around if not all(shapes.get(name) or [0]))
    return {**shapes, **run_for_shapes(single, unknown)}, int(batch.dim_value)


def run_for_shapes(model: onnx.ModelProto, names: list[str]) -> dict[str, list[int]]:
    """Return the shapes of tensors that depend on computed sizes, by running the graph on zeros."""
    value = graph_input(model)
    shape = [size.dim_value for size in value.type.tensor_type.shape.dim]
    if not names or 0 in shape:
        return {}
    import onnxruntime

    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        probe.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    outputs = session.run(None, {value.name: np.zeros(shape, np.float32)})
    return {name: list(output.shape) for name, output in zip(names, outputs, strict=True)}


def _node_macs(node: onnx.NodeProto, weight_name: str, shapes: dict[str, list[int]]) -> int:
    """Return a layer's multiply-adds for the whole batch."""
    written, weight = shapes.get(node.output[0], [0]), shapes.get(weight_name, [0])
    if not math.prod(written) or not math.prod(weight):
        raise ValueError(f"the shapes at node {node.name or node.output[0]!r} cannot be inferred")
    if node.op_type in WEIGHT_OF_CONVOLUTION:
        return math.prod(written) * math.prod(weight[1:])
    transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
    return math.prod(written) * (weight[-1] if transposed else weight[-2])
