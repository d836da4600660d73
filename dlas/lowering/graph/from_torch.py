"""Translate programs that torch exported into Relax.

TVM's importer first decomposes every operator, which traces the network anew and
takes longer than the rest of the import.  The decomposition is skipped for networks
whose operators it is known to translate correctly without.
"""

from __future__ import annotations

from typing import Any

import torch
import tvm
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program
from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

FRESH = {
    *("adaptive_avg_pool2d.default", "add.Tensor", "avg_pool2d.default", "batch_norm.default", "cat.default"),
    *("conv2d.default", "div.Tensor", "elu.default", "gelu.default", "hardsigmoid.default"),
    *("hardswish.default", "hardtanh.default", "layer_norm.default", "leaky_relu.default", "linear.default"),
    *("max_pool2d.default", "mean.dim", "mul.Tensor", "relu.default", "relu6.default", "selu.default"),
    *("sigmoid.default", "silu.default", "softmax.int", "sub.Tensor", "tanh.default"),
}
"""Operators that TVM translates correctly undecomposed, and whose result is a new tensor."""
VIEWS = {
    *("chunk.default", "contiguous.default", "dropout.default", "flatten.using_ints", "getitem"),
    *("permute.default", "reshape.default", "select.int", "transpose.int", "unsqueeze.default"),
    "view.default",
}
"""The same, for operators whose result may be a view of their argument."""


def translate(program: torch.export.ExportedProgram) -> tvm.IRModule:
    """Return an exported program as a module with ``main(inputs, *weights)``."""
    options: dict[str, Any] = {"keep_params_as_input": True, "unwrap_unit_return_tuple": True}
    if all(map(_stays_whole, program.graph.nodes)):
        options["run_ep_decomposition"] = False
        options["custom_convert_map"] = {"batch_norm.default": _batch_norm}
    return from_exported_program(program, **options)


def operator(node: torch.fx.Node) -> str:
    """Return the name of the operator with its overload, ``relu.default`` for ``relu_.default`` too."""
    return _name(node).replace("_.", ".")


def _name(node: torch.fx.Node) -> str:
    target: Any = node.target
    return str(target.__name__)


def _stays_whole(node: torch.fx.Node) -> bool:
    """Whether TVM translates a node of the graph correctly undecomposed."""
    if node.op != "call_function":
        return True
    if operator(node) == "batch_norm.default" and node.args[5]:
        return False  # training mode: statistics of the batch
    if operator(node) == "dropout.default":
        return not node.args[2]  # and then it does nothing, in place or not
    if operator(node) == _name(node):
        return operator(node) in FRESH | VIEWS
    # An in-place operator changes what other readers of its argument see, which TVM ignores.
    changed = node.args[0]
    assert isinstance(changed, torch.fx.Node)
    owned = changed.op == "call_function" and operator(changed) in FRESH
    return operator(node) in FRESH and owned and len(changed.users) == 1


def _batch_norm(node: torch.fx.Node, importer: ExportedProgramImporter) -> relax.Var:
    """Translate batch norm at inference: TVM's own translation takes the momentum for epsilon."""
    x, gamma, beta, mean, variance, _, momentum, epsilon, _ = node.args
    scale, center = gamma is not None, beta is not None
    inputs = (x, gamma if scale else mean, beta if center else mean, mean, variance)
    tensors = [importer.env[tensor] for tensor in inputs]
    options = {"epsilon": epsilon, "momentum": momentum, "scale": scale, "center": center, "training": False}
    normalised = importer.block_builder.emit(relax.op.nn.batch_norm(*tensors, axis=1, **options))
    return importer.block_builder.emit(normalised[0])
