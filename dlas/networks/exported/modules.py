"""Exported programs as modules with the layers that they were exported from.

An exported program calls operators with weights.  Pruning, counting and fine-tuning look for
layers, so that calls of convolutions, linear layers and batch norms become layers again, under
their old names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.graph import CodeGen

Arguments = dict[str, Any]
"""An operator's arguments by name, those left out with their defaults."""
NORMS = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}
"""Batch norms by the rank of their input."""


def module_of(program: ExportedProgram) -> nn.Module:
    """Return a program of one input and one output as a module, in evaluation mode."""
    root = program.module(check_guards=False)
    graph = root.graph
    graph.set_codegen(CodeGen())
    for node in list(graph.nodes):
        if node.op == "output" and isinstance(node.args[0], list | tuple):
            node.args = tuple(node.args[0])
        owner, layer = _layer(node, root)
        if layer is not None:
            root.set_submodule(owner, layer)
            with graph.inserting_before(node):
                call = graph.call_module(owner, (node.args[0],))
            call.meta = node.meta
            node.replace_all_uses_with(call)
            graph.erase_node(node)
    graph.eliminate_dead_code()
    return GraphModule(root, graph, "Exported").eval()


def image_shape(program: ExportedProgram) -> tuple[int, ...]:
    """Return the shape of an image that a program takes."""
    (name,) = program.graph_signature.user_inputs
    (value,) = (node.meta["val"] for node in program.graph.nodes if node.name == name)
    return tuple(map(int, value.shape[1:]))


def _layer(node: Node, root: GraphModule) -> tuple[str, nn.Module | None]:
    """Return the layer that a node calls, and its name; None where it calls no plain layer."""
    make = LAYERS.get(node.target)
    owners = {str(each.target).rpartition(".")[0] for each in _weights(node)}
    if make is None or len(owners) != 1 or "" in owners:
        return "", None
    (owner,) = owners
    layer, own = make(_arguments(node)), root.get_submodule(owner)
    held = {**dict(own.named_parameters()), **dict(own.named_buffers())}
    if layer is None or held.keys() != layer.state_dict().keys():
        return "", None
    if isinstance(own, nn.Conv2d | nn.Linear) and repr(own) != repr(layer):
        return "", None  # the same weight with another stride: the first call is the layer
    layer.load_state_dict(held, assign=True)
    return owner, layer


def _weights(node: Node) -> list[Node]:
    """Return the stored tensors that a node reads."""
    return [each for each in node.all_input_nodes if each.op == "get_attr"]


def _arguments(node: Node) -> Arguments:
    schema: Any = getattr(node.target, "_schema").arguments  # noqa: B009 - fx declares no type with it
    given = dict(zip((argument.name for argument in schema), node.args, strict=False))
    return {argument.name: argument.default_value for argument in schema} | given | node.kwargs


def _convolution(arguments: Arguments) -> nn.Module | None:
    filters, channels, *kernel = arguments["weight"].meta["val"].shape
    groups = arguments["groups"]
    return nn.Conv2d(
        channels * groups,
        filters,
        tuple(kernel),
        stride=_pair(arguments["stride"]),
        padding=_pair(arguments["padding"]),
        dilation=_pair(arguments["dilation"]),
        groups=groups,
        bias=arguments["bias"] is not None,
        device="meta",
    )


def _pair(value: Any) -> Any:
    """Return a size along height and width; a padding's name stays."""
    if isinstance(value, str):
        return value
    sizes = value if isinstance(value, list | tuple) else [value]
    return tuple(sizes) * (2 // len(sizes))


def _linear(arguments: Arguments) -> nn.Module | None:
    outputs, inputs = arguments["weight"].meta["val"].shape
    return nn.Linear(inputs, outputs, bias=arguments["bias"] is not None, device="meta")


def _batch_norm(arguments: Arguments) -> nn.Module | None:
    if arguments["training"] or arguments["running_mean"] is None:
        return None  # its statistics are those of each batch
    (channels,) = arguments["running_mean"].meta["val"].shape
    options = {"eps": arguments["eps"], "momentum": arguments["momentum"], "device": "meta"}
    kind = NORMS[arguments["input"].meta["val"].ndim]
    return kind(channels, affine=arguments["weight"] is not None, **options)


LAYERS: dict[Any, Callable[[Arguments], nn.Module | None]] = {
    torch.ops.aten.conv2d.default: _convolution,
    torch.ops.aten.conv2d.padding: _convolution,
    torch.ops.aten.linear.default: _linear,
    torch.ops.aten.batch_norm.default: _batch_norm,
}
"""By operator, what makes its layer."""
