"""What ONNX Runtime's nodes compute: its profile tells shapes, its optimised graph the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from dlas.networks.onnx_operators import attributes_of, parameters_of
from dlas.stack import Layer

OPERATORS = {
    "BiasGelu": ("Gelu", ["Add"]),
    "BiasSoftmax": ("Softmax", ["Add"]),
    "FastGelu": ("Gelu", []),
    "FusedConv": ("Conv", []),
    "FusedGemm": ("Gemm", []),
    "FusedMatMul": ("MatMul", []),
    "QuickGelu": ("Swish", []),
    "SkipLayerNormalization": ("LayerNormalization", ["Add"]),
}
"""ONNX Runtime's own operators: ONNX's name, and what is computed in the same node."""
SUMMED = 3
"""Index of the input that a convolution adds to its result."""


def nodes_of(graph: onnx.GraphProto) -> tuple[dict[str, onnx.NodeProto], set[str]]:
    """Return the nodes of an optimised graph by name, and the names of its stored tensors."""
    return {node.name: node for node in graph.node}, {tensor.name for tensor in graph.initializer}


def describe_node(node: onnx.NodeProto | None, told: Mapping[str, Any], stored: set[str]) -> Layer:
    """Return what a node computes, without name and time.

    Parameters
    ----------
    node : NodeProto or None
        Of the optimised graph; None where it has none of that name.
    told : mapping
        The arguments of the node's event in a profile.
    stored : set of str
        Names of weights and other stored tensors, which are no ``inputs``.
    """
    operator, fused = OPERATORS.get(told["op_name"], (told["op_name"], []))
    read, written = (_shapes(told.get(f"{side}_type_shape", ())) for side in ("input", "output"))
    layer: Layer = {"operator": operator, "fused": list(fused), "inputs": read}
    if written:
        layer["output"] = written[0]
    given = [name for name in node.input if name] if node is not None else []
    if node is None or len(given) != len(read):
        return layer
    layer["inputs"] = [shape for name, shape in zip(given, read, strict=True) if name not in stored]
    layer["fused"] = [*fused, *_joined(node, operator)]
    if operator == "Conv":  # its sizes are the build's: here channels may be padded
        return {**layer, "bias": len(node.input) > 2 and bool(node.input[2])}
    shapes = {**dict(zip(given, read, strict=True)), **dict(zip(node.output, written, strict=False))}
    return {**layer, **parameters_of(node, shapes)}


def _joined(node: onnx.NodeProto, operator: str) -> list[str]:
    """Return what a node adds to its result, and its activation."""
    sums = operator == "Conv" and len(node.input) > SUMMED and bool(node.input[SUMMED])
    activation = attributes_of(node).get("activation", b"")
    return ["Add"] * sums + [activation.decode()] * bool(activation)


def _shapes(told: Sequence[Mapping[str, Sequence[int]]]) -> list[list[int]]:
    """Return shapes without the types that they are listed under."""
    return [list(shape) for each in told for shape in each.values()]
