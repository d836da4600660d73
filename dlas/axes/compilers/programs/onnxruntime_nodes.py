"""What ONNX Runtime's nodes compute: its profile tells shapes, its optimised graph the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from dlas.networks.onnx.operators import attributes_of, parameters_of
from dlas.stack import Computation

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
NORM = "_bn_nchwc"
"""Suffix of the name of a convolution that computes a batch norm on blocks of channels."""
SUMMED = 3
"""Index of the input that a convolution adds to its result."""


def nodes_of(graph: onnx.GraphProto) -> tuple[dict[str, onnx.NodeProto], dict[str, list[int]]]:
    """Return the nodes of an optimised graph and the shapes of its stored tensors, by name."""
    return {node.name: node for node in graph.node}, {t.name: list(t.dims) for t in graph.initializer}


def describe_node(
    node: onnx.NodeProto | None, told: Mapping[str, Any], stored: Mapping[str, list[int]]
) -> Computation:
    """Return what a node computes, without name and time.

    Parameters
    ----------
    node : NodeProto or None
        Of the optimised graph; None where it has none of that name.
    told : mapping
        The arguments of the node's event in a profile.
    stored : mapping of str to list of int
        Shapes of weights and other stored tensors, which are no ``inputs``.
    """
    operator, fused = OPERATORS.get(told["op_name"], (told["op_name"], []))
    read, written = (_shapes(told.get(f"{side}_type_shape", ())) for side in ("input", "output"))
    layer: Computation = {"operator": operator, "fused": list(fused), "inputs": read}
    if written:
        layer["output"] = written[0]
    shapes = _by_name(node, read, stored) if node is not None else {}
    if node is None or not shapes:
        return layer
    layer["inputs"] = [shapes[name] for name in node.input if name in shapes and name not in stored]
    layer["fused"] = [*fused, *_joined(node, operator)]
    if operator == "Conv":  # its sizes are the build's: here channels may be padded
        return {**layer, "bias": len(node.input) > 2 and bool(node.input[2]), **_norm(node, layer)}
    plain = onnx.NodeProto()
    plain.CopyFrom(node)
    plain.op_type = operator
    return {**layer, **parameters_of(plain, {**shapes, **dict(zip(node.output, written, strict=False))})}


def _norm(node: onnx.NodeProto, layer: Computation) -> Computation:
    """Return the sizes of a convolution that computes a batch norm on blocks of channels; {} of others."""
    return norm_in_blocks(layer["output"]) if node.name.endswith(NORM) else {}


def norm_in_blocks(shape: Sequence[int]) -> Computation:
    """Return the depthwise convolution that computes a batch norm [n, c, h, w] on blocks of channels."""
    n, c, h, w = shape
    one: Computation = {"n": n, "c": c, "h": h, "w": w, "k": c, "r": 1, "s": 1, "p": h, "q": w}
    placed: Computation = {"strides": [1, 1], "padding": [0, 0, 0, 0], "dilation": [1, 1], "groups": c}
    return {"operator": "Conv", **one, **placed, "bias": True, "macs": n * c * h * w}


def _by_name(
    node: onnx.NodeProto, read: Sequence[list[int]], stored: Mapping[str, list[int]]
) -> dict[str, list[int]]:
    """Return the shapes of a node's inputs; {} where the profile lists others.

    The profile leaves out weights that were packed when the session began.
    """
    given = [name for name in node.input if name]
    packed = [name for name in given if name in stored][: max(0, len(given) - len(read))]
    listed = [name for name in given if name not in packed]
    if len(listed) != len(read):
        return {}
    return {**dict(zip(listed, read, strict=True)), **{name: stored[name] for name in packed}}


def _joined(node: onnx.NodeProto, operator: str) -> list[str]:
    """Return what a node adds to its result, and its activation."""
    sums = operator == "Conv" and len(node.input) > SUMMED and bool(node.input[SUMMED])
    activation = attributes_of(node).get("activation", b"")
    return ["Add"] * sums + [activation.decode()] * bool(activation)


def _shapes(told: Sequence[Mapping[str, Sequence[int]]]) -> list[list[int]]:
    """Return shapes without the types that they are listed under."""
    return [list(shape) for each in told for shape in each.values()]
