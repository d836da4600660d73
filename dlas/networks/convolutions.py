"""The convolutions of a network, read without compiling it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import numpy_helper
from torch import nn

from dlas.networks.exporting import as_onnx
from dlas.networks.forward import hooked, run_on_zeros
from dlas.networks.layer_names import CallNames, layer_of_node
from dlas.networks.onnx.counting import infer_shapes
from dlas.networks.onnx.operators import attributes_of, placed
from dlas.networks.torch.network import TorchNetwork
from dlas.stack import BFLOAT16, Conv, Layer, Network, describe_layer


def graph_convolutions(model: onnx.ModelProto) -> list[tuple[Conv, int]]:
    """Return the 2-D convolutions with stored weights of a graph that is fixed to its batch.

    Returns
    -------
    list of (Conv, int)
        Each with the number of its weights that are not zero.

    Raises
    ------
    ValueError
        If ONNX cannot infer a shape that is needed.
    """
    shapes, _ = infer_shapes(model)
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    # Weights in bfloat16 are cast to float32.
    cast = {node.output[0]: node.input[0] for node in model.graph.node if node.op_type == "Cast"}
    # In integer networks a DequantizeLinear (tensor, scale, zero point) feeds each input of a convolution.
    dequantised = {
        node.output[0]: node.input for node in model.graph.node if node.op_type == "DequantizeLinear"
    }
    convolutions = []
    for index, node in enumerate(model.graph.node):
        name = node.input[1] if node.op_type == "Conv" else ""
        weight = stored.get(dequantised[name][0] if name in dequantised else cast.get(name, name))
        if weight is None or weight.ndim != 4:
            continue
        zero = stored.get(dequantised[node.input[0]][2]) if node.input[0] in dequantised else None
        layer = layer_of_node(node, f"node{index}")
        fields = {**_geometry(node, weight.shape, shapes), **_numbers(weight, zero)}
        convolutions.append((Conv(layer, **fields), int(np.count_nonzero(weight))))
    return convolutions


def _geometry(node: onnx.NodeProto, weight: tuple[int, ...], shapes: dict[str, list[int]]) -> dict[str, Any]:
    """Return the sizes of a convolution by their letters, strides, padding, dilation and groups."""
    read, written = shapes.get(node.input[0], []), shapes.get(node.output[0], [])
    if len(read) != 4 or len(written) != 4 or 0 in (*read, *written):
        raise ValueError(f"the shapes at node {node.name or node.output[0]!r} cannot be inferred")
    attributes = attributes_of(node)
    k, _, r, s = weight
    placement = placed(attributes, (r, s), read, written)
    return {
        **dict(zip("nchw", read, strict=True)),
        **{"k": k, "r": r, "s": s, "groups": attributes.get("group", 1)},
        **{name: tuple(placement[name]) for name in ("strides", "padding", "dilation")},
    }


def _numbers(weight: npt.NDArray[Any], zero: npt.NDArray[Any] | None) -> dict[str, Any]:
    """Return a convolution's types and padding value, from its weight and its input's zero point."""
    types = ("input_type", "weight_type", "accumulator_type", "output_type")
    if weight.dtype.name == BFLOAT16:  # no operator computes in it: those between casts do in float32
        return dict(zip(types, (BFLOAT16, BFLOAT16, "float32", "float32"), strict=True))
    if zero is None or weight.dtype.kind == "f":
        kind = weight.dtype.name if weight.dtype.kind == "f" else "float32"
        return dict.fromkeys(types, kind)
    return {
        "input_type": zero.dtype.name,
        "weight_type": weight.dtype.name,
        "accumulator_type": "int32",
        "output_type": zero.dtype.name,
        "padding_value": int(zero.item()),
    }


def library_layers(network: Network, batch: int) -> list[Layer]:
    """Return the convolutions of a network as layers that a library computes.

    A torch module is run once, on zeros [batch, c, h, w], to list them in the order of their calls.
    """
    if not isinstance(network, TorchNetwork):
        convolutions = graph_convolutions(as_onnx(network, batch))
        return [describe_layer(conv, "library", nonzeros) for conv, nonzeros in convolutions]
    layers: list[Layer] = []
    calls = CallNames()

    def describe(name: str, layer: nn.Module, read: torch.Tensor, written: torch.Tensor) -> None:
        assert isinstance(layer, nn.Conv2d)
        conv = _read_conv(calls.next(name), layer, read.shape)
        layers.append(describe_layer(conv, "library", int(layer.weight.count_nonzero())))

    with hooked(network.module, (nn.Conv2d,), describe):
        run_on_zeros(network.module, network.facts.shape, batch)
    return layers


def _read_conv(name: str, layer: nn.Conv2d, shape: torch.Size) -> Conv:
    left, right, top, bottom = layer._reversed_padding_repeated_twice
    n, c, h, w = shape
    k, _, r, s = layer.weight.shape
    kind = str(layer.weight.dtype).removeprefix("torch.")
    return Conv(
        name,
        *(n, c, h, w, k, r, s),
        strides=(layer.stride[0], layer.stride[1]),
        padding=(top, left, bottom, right),
        dilation=(layer.dilation[0], layer.dilation[1]),
        groups=layer.groups,
        input_type=kind,
        weight_type=kind,
        accumulator_type=kind,
        output_type=kind,
    )
