"""The operators of an ONNX graph: names, shapes and parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from dlas.networks.layer_names import CallNames, layer_of_node
from dlas.networks.onnx.counting import WEIGHT_OF_CONVOLUTION, WEIGHT_OF_PRODUCT, graph_input, run_for_shapes
from dlas.stack import Computation, NetworkOperator, TensorView

VIEWS = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"}
"""Operators that compute nothing."""
SIZES = {"Constant", "Shape", "Size"}
"""Operators whose results are known before an image is."""
POOLS = {"MaxPool", "AveragePool", "LpPool"}
GLOBAL_POOLS = {"GlobalAveragePool", "GlobalMaxPool"}
REDUCTIONS = {"ReduceMean": "GlobalAveragePool", "ReduceMax": "GlobalMaxPool"}
"""Global pooling by what it is called in graphs that reduce height and width."""


def graph_operators(model: onnx.ModelProto, batch: int) -> list[NetworkOperator]:
    """Return what :func:`operators_by_output` finds, without the names of tensors."""
    return [*operators_by_output(model, batch).values()]


def operators_by_output(model: onnx.ModelProto, batch: int) -> dict[str, NetworkOperator]:
    """Return the operators of one inference of ``batch`` images, in the order of the graph.

    What is computed from stored tensors and sizes alone is left out, and so are reshapes.
    A convolution has its layer's name, another operator its node's.

    Returns
    -------
    dict of str to NetworkOperator
        By the name of the first tensor that the operator writes.

    Raises
    ------
    ValueError
        If ONNX cannot infer a shape that is needed.
    """
    graph, calls = _graph(model, batch), CallNames()
    operators: dict[str, NetworkOperator] = {}
    origins: dict[str, tuple[int | None, list[TensorView]]] = {}
    known = {tensor.name for tensor in model.graph.initializer} | {""}
    for index, node in enumerate(model.graph.node):
        if node.op_type in SIZES or known.issuperset(node.input):
            known.update(node.output)
        elif node.op_type in VIEWS:
            before, views = origins.get(node.input[0], (None, []))
            view: TensorView = {"operator": node.op_type, "output": graph.shape(first_output(node))}
            origins[first_output(node)] = before, [*views, view]
        else:
            convolves = node.op_type in WEIGHT_OF_CONVOLUTION
            own = layer_of_node(node, f"node{index}") if convolves else node.name or f"node{index}"
            read = [graph.shape(name) for name in node.input if name not in known]
            computed: Computation = {
                "operator": node.op_type,
                "inputs": read,
                "output": graph.shape(first_output(node)),
                "types": {"output": graph.types.get(first_output(node), "float32")},
            }
            sources = [origins.get(name, (None, [])) for name in node.input if name not in known]
            origins.update(dict.fromkeys(node.output, (len(operators), [])))
            operators[first_output(node)] = {
                "name": calls.next(own),
                **computed,
                **_parameters(node, graph),
                "reads": [before for before, _ in sources],
                "views": [views for _, views in sources],
            }
    return operators


def parameters_of(node: onnx.NodeProto, shapes: Mapping[str, list[int]]) -> Computation:
    """Return a node's parameters from the shapes of what it reads and writes."""
    try:
        return _parameters(node, _Graph(shapes, {}))
    except ValueError:  # a scalar, or a stored tensor that the node takes in a form of its own
        return {}


def placed(
    attributes: Mapping[str, Any], window: Sequence[int], read: Sequence[int], written: Sequence[int]
) -> Computation:
    """Return strides, padding and dilation of a two-dimensional window.

    Parameters
    ----------
    attributes : mapping
        Of the node, by name.
    window : sequence of int
        Height and width.
    read, written : sequence of int
        Shapes [n, c, h, w] of its input and its output.
    """
    strides, dilation = (list(attributes.get(name) or (1, 1)) for name in ("strides", "dilations"))
    padding = list(attributes.get("pads") or (0, 0, 0, 0))
    if attributes.get("auto_pad", b"NOTSET").startswith(b"SAME"):
        spans = zip(read[2:], written[2:], window, strides, dilation, strict=True)
        total = [max((p - 1) * stride + step * (r - 1) + 1 - h, 0) for h, p, r, stride, step in spans]
        less, more = [size // 2 for size in total], [size - size // 2 for size in total]
        padding = [*less, *more] if attributes["auto_pad"] == b"SAME_UPPER" else [*more, *less]
    return {"strides": strides, "padding": padding, "dilation": dilation}


def first_output(node: onnx.NodeProto) -> str:
    """Return the first of a node's outputs that it writes; some are optional."""
    return next(filter(None, node.output), "")


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Return the attributes of a node by name."""
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


@dataclass(frozen=True)
class _Graph:
    """Shapes of tensors, 0 for unknown sizes, and their types."""

    shapes: Mapping[str, list[int]]
    types: Mapping[str, str]

    def shape(self, name: str) -> list[int]:
        found = self.shapes.get(name, [0])
        if not all(found):
            raise ValueError(f"the shape of tensor {name!r} cannot be inferred")
        return list(found)


def _graph(model: onnx.ModelProto, batch: int) -> _Graph:
    """Return what ONNX infers of a graph for a batch; what it cannot infer, by running it on zeros."""
    single = onnx.ModelProto()
    single.CopyFrom(model)
    # Shapes stored in the graph may be symbolic or, after a conversion, of another type.
    del single.graph.value_info[:]
    graph_input(single).type.tensor_type.shape.dim[0].dim_value = batch
    for value in single.graph.output:
        value.type.tensor_type.ClearField("shape")
    graph = onnx.shape_inference.infer_shapes(single, data_prop=True).graph
    shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    types = {tensor.name: _type(tensor.data_type) for tensor in graph.initializer}
    for value in [*graph.value_info, *graph.input, *graph.output]:
        kind = value.type.tensor_type
        types.setdefault(value.name, _type(kind.elem_type))
        if kind.HasField("shape"):
            shapes.setdefault(value.name, [size.dim_value for size in kind.shape.dim])
    tensors = {value.name for value in graph.value_info if value.type.HasField("tensor_type")}
    written = [first_output(node) for node in model.graph.node]
    unknown = [name for name in written if name in tensors and not all(shapes.get(name, [0]))]
    return _Graph({**shapes, **run_for_shapes(single, unknown)}, types)


def _type(kind: int) -> str:
    return (
        str(np.dtype(helper.tensor_dtype_to_np_dtype(kind))) if kind != TensorProto.UNDEFINED else "float32"
    )


def _parameters(node: onnx.NodeProto, graph: _Graph) -> Computation:
    """Return an operator's parameters."""
    kind, attributes = node.op_type, attributes_of(node)
    read, written = graph.shape(node.input[0]), graph.shape(node.output[0])
    if kind in WEIGHT_OF_CONVOLUTION:
        return _convolution(node, attributes, graph)
    if kind in WEIGHT_OF_PRODUCT:
        terms = read[0] if attributes.get("transA") else read[-1]
        rows = math.prod(written) // written[-1]
        sums: Computation = {"n": rows, "c": terms, "k": written[-1], "macs": math.prod(written) * terms}
        return {**sums, "bias": len(node.input) > 2} if kind == "Gemm" else sums
    if kind == "Concat":
        return {"axis": attributes["axis"] % len(written)}
    if len(read) != 4 or len(written) != 4:
        return {}
    if kind in POOLS:
        r, s = attributes["kernel_shape"]
        window: Computation = {"r": r, "s": s, "p": written[2], "q": written[3]}
        ceil: Computation = {"ceil_mode": bool(attributes.get("ceil_mode"))}
        return {**_images(read), **window, **placed(attributes, (r, s), read, written), **ceil}
    if kind in GLOBAL_POOLS or (kind in REDUCTIONS and written == [*read[:2], 1, 1]):
        named: Computation = {"operator": REDUCTIONS.get(kind, kind), "p": written[2], "q": written[3]}
        return {**_images(read), **named}
    return _images(read) if kind == "BatchNormalization" else {}


def _convolution(node: onnx.NodeProto, attributes: Mapping[str, Any], graph: _Graph) -> Computation:
    name = node.input[WEIGHT_OF_CONVOLUTION[node.op_type]]
    read, written, weight = (graph.shape(each) for each in (node.input[0], node.output[0], name))
    bias = len(node.input) > (8 if node.op_type == "QLinearConv" else 2) and node.op_type != "ConvInteger"
    layer: Computation = {"groups": attributes.get("group", 1), "bias": bias}
    if len(weight) != 4:
        return layer
    k, _, r, s = weight
    window: Computation = {"k": k, "r": r, "s": s, "p": written[2], "q": written[3]}
    macs: Computation = {"macs": math.prod(written) * math.prod(weight[1:])}
    return {**layer, **_images(read), **window, **placed(attributes, (r, s), read, written), **macs}


def _images(read: Sequence[int]) -> Computation:
    """Return the letters of images [n, c, h, w]."""
    n, c, h, w = read
    return {"n": n, "c": c, "h": h, "w": w}
