"""Compute once what an ONNX graph computes from constants alone.

Exporters write weights behind nodes: a ``Constant``, an ``Identity`` where two layers share one,
``Transpose``, ``Cast`` or the arithmetic of a normalised weight.  Layers are found by their stored
weights, so such nodes are evaluated when the file is read.  Sizes that a graph computes from shapes, as
for any batch, are constants too once the batch is known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from dlas.networks.onnx.counting import graph_input

KEPT = re.compile("Random|Bernoulli|Multinomial|Dropout|Quantize")
"""Operators that stay: their results are random, or say in which type a layer computes."""


def fold_constants(model: onnx.ModelProto, most_bytes: int) -> onnx.ModelProto:
    """Return the graph with every node of constants replaced by a stored tensor of its name.

    Parameters
    ----------
    model : onnx.ModelProto
        Its weights are in it, and not in other files.
    most_bytes : int
        Largest sum of the new tensors.

    Raises
    ------
    ValueError
        If they would be larger; nothing so large is computed before.
    """
    folded = onnx.ModelProto()
    folded.CopyFrom(model)
    graph = folded.graph
    stored = {tensor.name: tensor for tensor in graph.initializer}
    fixed = {value.name for value in graph.output} | set(_nested_inputs(graph))
    aliases: dict[str, str] = {}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = aliases.get(name, name)
        if not _constant(node, stored) or not fixed.isdisjoint(node.output):
            nodes.append(node)
        elif node.op_type == "Identity":
            aliases[node.output[0]] = node.input[0]  # a shared weight stays one
        else:
            results = _evaluated(node, stored, folded, most_bytes)
            most_bytes -= sum(_bytes_of(tensor.dims, tensor.data_type) for tensor in results)
            stored.update({tensor.name: tensor for tensor in results})
            if not results:
                nodes.append(node)
    _replace(graph, nodes, stored, fixed)
    return folded


def fold_shapes(model: onnx.ModelProto, shape: Sequence[int], most_bytes: int) -> onnx.ModelProto:
    """Return the graph for inputs of one shape, with what it computes from shapes alone stored.

    Parameters
    ----------
    model : onnx.ModelProto
        Its shapes may depend on the batch.
    shape : sequence of int
        Of the input, [batch, c, h, w].
    most_bytes : int
        As for :func:`fold_constants`.

    Raises
    ------
    ValueError
        As :func:`fold_constants`.
    """
    while any(node.op_type == "Shape" for node in model.graph.node):
        own = onnx.ModelProto()
        own.CopyFrom(model)
        del own.graph.value_info[:]  # for any batch
        kind = graph_input(own).type
        kind.CopyFrom(helper.make_tensor_type_proto(kind.tensor_type.elem_type, list(shape)))
        stored = _stored_shapes(own)
        if not stored:
            break
        for node in [each for each in own.graph.node if each.output[0] in stored]:
            own.graph.node.remove(node)
        own.graph.initializer.extend(stored.values())
        model = fold_constants(own, most_bytes)
    return model


def _stored_shapes(model: onnx.ModelProto) -> dict[str, TensorProto]:
    """Return what each node ``Shape`` gives whose input has a known shape, by the name of its output."""
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    shapes = {tensor.name: list(tensor.dims) for tensor in inferred.initializer}
    for value in (*inferred.input, *inferred.value_info):
        dims = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(size.HasField("dim_value") for size in dims):
            shapes[value.name] = [size.dim_value for size in dims]
    stored = {}
    for node in model.graph.node:
        if node.op_type == "Shape" and node.input[0] in shapes:
            given = {attribute.name: attribute.i for attribute in node.attribute}
            sizes = shapes[node.input[0]][given.get("start", 0) : given.get("end")]
            stored[node.output[0]] = numpy_helper.from_array(np.array(sizes, np.int64), node.output[0])
    return stored


def _constant(node: onnx.NodeProto, stored: Mapping[str, TensorProto]) -> bool:
    """Return whether a node gives the same result at each inference and may be replaced by it."""
    if node.domain not in ("", "ai.onnx") or KEPT.search(node.op_type):
        return False
    nested = any(attribute.g.node or attribute.graphs for attribute in node.attribute)
    return not nested and all(name in stored for name in node.input if name)


def _evaluated(
    node: onnx.NodeProto, stored: Mapping[str, TensorProto], model: onnx.ModelProto, most_bytes: int
) -> list[TensorProto]:
    """Return the results of a node; none where ONNX does not know their shapes, or has no reference."""
    single = helper.make_model(
        helper.make_graph(
            [node],
            "constants",
            [],
            [onnx.ValueInfoProto(name=name) for name in node.output if name],
            [stored[name] for name in dict.fromkeys(node.input) if name],
        ),
        opset_imports=model.opset_import,
        ir_version=model.ir_version,
    )
    try:
        inferred = onnx.shape_inference.infer_shapes(single, data_prop=True, strict_mode=True)
        size = sum(map(_value_bytes, inferred.graph.output))
    except (onnx.shape_inference.InferenceError, _UnknownSize):
        return []
    if size > most_bytes:
        name = node.name or node.output[0]
        raise ValueError(f"node {name!r} ({node.op_type}) makes {size:,} bytes of constants: too large")
    try:
        results = ReferenceEvaluator(single).run(None, {})
    except Exception:  # what the reference lacks may still be understood by whoever runs the graph
        return []
    names = [name for name in node.output if name]
    return [numpy_helper.from_array(np.asarray(a), name) for name, a in zip(names, results, strict=True)]


class _UnknownSize(Exception):
    """The size of a tensor cannot be inferred."""


def _value_bytes(value: onnx.ValueInfoProto) -> int:
    """Return the bytes of an inferred tensor."""
    tensor = value.type.tensor_type
    if not tensor.elem_type or not tensor.HasField("shape"):
        raise _UnknownSize
    if any(not size.HasField("dim_value") for size in tensor.shape.dim):
        raise _UnknownSize
    return _bytes_of([size.dim_value for size in tensor.shape.dim], tensor.elem_type)


def _bytes_of(dims: Sequence[int], element_type: int) -> int:
    itemsize: int = helper.tensor_dtype_to_np_dtype(element_type).itemsize
    return math.prod(dims) * itemsize


def _nested_inputs(graph: onnx.GraphProto) -> Iterator[str]:
    """Yield the names that graphs inside nodes read, which may be those of the graph around them."""
    for node in graph.node:
        for attribute in node.attribute:
            for inside in [attribute.g, *attribute.graphs]:
                yield from (name for nested in inside.node for name in nested.input)
                yield from (value.name for value in inside.output)
                yield from _nested_inputs(inside)


def _replace(
    graph: onnx.GraphProto, nodes: list[onnx.NodeProto], stored: Mapping[str, TensorProto], fixed: set[str]
) -> None:
    """Put the nodes that are left into the graph, and the stored tensors that they read."""
    read = {name for node in nodes for name in node.input} | fixed
    tensors = [tensor for name, tensor in stored.items() if name in read]
    values = [value for value in graph.value_info if value.name not in stored]
    # Old files list stored tensors as inputs, too.
    inputs = [value for value in graph.input if value.name not in stored or value.name in read]
    for field, items in (
        (graph.node, nodes),
        (graph.initializer, tensors),
        (graph.value_info, values),
        (graph.input, inputs),
    ):
        kept = [type(item).FromString(item.SerializeToString()) for item in items]
        del field[:]
        field.extend(kept)
