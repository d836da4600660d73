"""Check the scales and zero points of a quantised ONNX graph before anything is computed with them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

QUANTISERS = ("QuantizeLinear", "DequantizeLinear")
FIRST_OPSET = 10
"""The first operator set with :data:`QUANTISERS`."""
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32")
"""Types of integers that are read; 32 bits are for biases."""


def check_operator_set(model: onnx.ModelProto) -> None:
    """Check that a graph's operator set is one that is read, and has the quantisation that the graph has.

    Raises
    ------
    ValueError
        If it is newer than the installed ``onnx``, or older than the operators of a quantised graph.
    """
    opset = next((given.version for given in model.opset_import if given.domain in ("", "ai.onnx")), 0)
    newest = onnx.defs.onnx_opset_version()
    if opset > newest:
        raise ValueError(f"it is written in operator set {opset}; sets up to {newest} are read")
    if opset < FIRST_OPSET and _quantisers(model):
        raise ValueError(f"it is quantised in operator set {opset}; {QUANTISERS[0]} is from {FIRST_OPSET} on")


def check_quantisation(model: onnx.ModelProto) -> None:
    """Check the numbers of a graph's quantisation.

    Raises
    ------
    ValueError
        If a scale is not a positive number, a zero point is none of the integers' type, or scales do not
        fit the axis that they are for.
    """
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in _quantisers(model):
        _check_node(node, stored)


def _quantisers(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for node in model.graph.node if node.op_type in QUANTISERS]


def _check_node(node: onnx.NodeProto, stored: Mapping[str, onnx.TensorProto]) -> None:
    """Check one node whose parameters are stored."""
    label = f"{node.op_type} {node.name or node.output[0]!r}"
    given = [stored.get(name) for name in node.input[1:3]]
    arrays = [None if tensor is None else numpy_helper.to_array(tensor) for tensor in given]
    scale, zero = arrays[0], arrays[1] if len(arrays) > 1 else None
    if scale is None:  # it is computed at run time
        return
    broken = scale[~(np.isfinite(scale) & (scale > 0))]
    if broken.size:
        raise ValueError(f"{label} has the scale {float(broken.flat[0]):g}; scales are positive and finite")
    if zero is not None:
        _check_zero(label, zero, scale)
    if scale.ndim == 1 and scale.size > 1:
        shape = list(stored[node.input[0]].dims) if node.input[0] in stored else None
        _check_axis(label, node, scale.size, shape)


def _check_zero(label: str, zero: npt.NDArray[np.generic], scale: npt.NDArray[np.generic]) -> None:
    if zero.dtype.name not in INTEGERS:
        raise ValueError(f"{label} has a zero point of type {zero.dtype}; there are {', '.join(INTEGERS)}")
    if zero.dtype == np.int32 and zero.any():
        found = int(zero[zero != 0].flat[0])
        raise ValueError(f"{label} has the zero point {found}, out of range: that of 32-bit integers is 0")
    if zero.size != scale.size:
        raise ValueError(f"{label} has {zero.size} zero points for {scale.size} scales")


def _check_axis(label: str, node: onnx.NodeProto, scales: int, shape: list[int] | None) -> None:
    """Check that there is a scale for each index of the axis; ``shape`` is None where it is not stored."""
    axis = next((int(attribute.i) for attribute in node.attribute if attribute.name == "axis"), 1)
    if shape is None or len(shape) == 1:  # a bias has one axis whatever the node says
        shape, axis = shape or [scales], 0
    sizes = "x".join(map(str, shape))
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"{label} has scales along axis {axis} of a tensor {sizes}")
    if shape[axis] != scales:
        raise ValueError(f"{label} has {scales} scales along axis {axis} of a tensor {sizes}")
