"""Import a network into Relax, with the names that its layers have in the network itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import onnx
import torch
import tvm
from tvm import relax, tirx
from tvm.relax.frontend.onnx import from_onnx

from dlas.errors import Unsupported
from dlas.lowering.graph.from_torch import translate
from dlas.networks.exporting import check_batch, quiet
from dlas.networks.layer_names import layer_of_node
from dlas.networks.onnx.counting import graph_input
from dlas.networks.onnx.files import LARGEST
from dlas.networks.onnx.folding import fold_shapes
from dlas.networks.onnx.halves import HALVES, in_single
from dlas.networks.onnx.network import OnnxNetwork, number_type
from dlas.networks.torch.network import TorchNetwork
from dlas.stack import Array, Network

UNREAD = {"ConvInteger", "MatMulInteger", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul"}
"""Operators of integers, as some files have them, that have no kernels."""


@dataclass(frozen=True)
class RelaxProgram:
    """A network as a Relax function."""

    function: relax.Function
    """``main``; its first parameter is the images [n, c, h, w], the rest are weights."""
    weights: dict[relax.Var, Array]
    """The values of those other parameters, by variable."""
    owners: dict[relax.Var, str]
    """The layer that owns a weight, by variable: ``layer1.0.conv1``."""
    convolutions: tuple[str, ...] = ()
    """Names of the 2-D convolutions in the order of the function, where the format names them by node and not
    by weight.
    """
    linear: tuple[str, ...] = ()
    """Names of the products with a stored matrix, likewise."""
    operators: dict[tvm.ir.GlobalVar, tirx.PrimFunc] = field(default_factory=dict)
    """PrimFuncs by global variable: operators that the importer lowered itself."""
    halves: str | None = None
    """Type of 16 bits that the network's numbers are stored in; the function has them in float32."""


def import_network(network: Network, batch: int) -> RelaxProgram:
    """Return ``network`` in Relax for inputs [batch, c, h, w].

    Raises
    ------
    Unsupported
        If TVM has no importer for the network, or for an operator in it.
    """
    shape = (batch, *network.facts.shape)
    try:
        if isinstance(network, TorchNetwork):
            return _import_torch(network.module, shape)
        if isinstance(network, OnnxNetwork):
            check_batch(network, batch)
            _check_numbers(network)
            kind = number_type(network.model)
            if kind in HALVES:
                return replace(_import_onnx(in_single(network.model), shape), halves=kind)
            return _import_onnx(network.model, shape)
    # TVM's importers raise different errors for different unsupported operators.
    except (NotImplementedError, AssertionError, tvm.error.OpNotImplemented) as error:
        raise Unsupported(f"TVM cannot import this network: {error}") from error
    raise Unsupported(f"TVM imports torch modules and ONNX graphs, not {type(network).__name__}")


def _check_numbers(network: OnnxNetwork) -> None:
    """Reject graphs whose numbers no algorithm has kernels for."""
    written = sorted({node.op_type for node in network.model.graph.node} & UNREAD)
    if written:
        raise Unsupported(
            f"integers in {', '.join(written)} are not read, only those between QuantizeLinear and "
            "DequantizeLinear; compiler 'onnxruntime' runs the network"
        )


def _import_torch(module: torch.nn.Module, shape: tuple[int, ...]) -> RelaxProgram:
    device = next((tensor.device for tensor in module.parameters()), torch.device("cpu"))
    with torch.no_grad(), quiet():
        program = torch.export.export(module.eval(), (torch.zeros(shape, device=device),))
        imported = translate(program)
    function = imported["main"]
    weights = {
        variable: value.numpy()  # a copy: the network's own memory may change
        for variable, value in zip(function.params[1:], function.attrs["params"], strict=True)
    }
    targets = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs if spec.target}
    owners = {
        variable: targets[variable.name].rpartition(".")[0]
        for variable in weights
        if variable.name in targets
    }
    return RelaxProgram(function, weights, owners)


def _import_onnx(model: onnx.ModelProto, shape: tuple[int, ...]) -> RelaxProgram:
    for_batch = fold_shapes(model, shape, LARGEST - model.ByteSize())
    with quiet():
        imported = from_onnx(for_batch, shape_dict={graph_input(model).name: list(shape)})
    ranks = stored_ranks(model.graph)
    named = [(node, layer_of_node(node, f"node{index}")) for index, node in enumerate(model.graph.node)]
    convolutions = tuple(
        name for node, name in named if node.op_type == "Conv" and ranks.get(node.input[1], 4) == 4
    )
    linear = tuple(
        name for node, name in named if node.op_type in ("Gemm", "MatMul") and node.input[1] in ranks
    )
    written = {v: f for v, f in imported.functions_items() if isinstance(f, tvm.tirx.PrimFunc)}
    return RelaxProgram(imported["main"], {}, {}, convolutions, linear, written)


def stored_ranks(graph: onnx.GraphProto) -> dict[str, int]:
    """Return the dimensions of all stored tensors, by name; those that are dequantised or cast first too."""
    ranks = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type in ("DequantizeLinear", "Cast") and node.input[0] in ranks:
            ranks[node.output[0]] = ranks[node.input[0]]
    return ranks
