"""Torch modules as ONNX files, and the names that layers keep on the way."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from typing import Any

import onnx
import torch
from torch import nn

from dlas.networks import OnnxNetwork, TorchNetwork, graph_input
from dlas.stack import Network, Unsupported

OPSET = 17


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the chatter of importers and exporters off the terminal; errors still surface."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def as_onnx(network: Network, batch: int) -> onnx.ModelProto:
    """Return ``network`` as an ONNX graph for inputs [batch, c, h, w].

    Raises
    ------
    Unsupported
        If the network has no such form.
    """
    if isinstance(network, OnnxNetwork):
        return _with_batch(network, batch)
    if isinstance(network, TorchNetwork):
        return _export(network.module, (batch, *network.facts.shape))
    raise Unsupported(f"only torch modules and ONNX graphs can be exported, not {type(network).__name__}")


def _with_batch(network: OnnxNetwork, batch: int) -> onnx.ModelProto:
    """Return the network's own graph, its batch fixed where it takes any."""
    check_batch(network, batch)
    model = onnx.ModelProto()
    model.CopyFrom(network.model)
    graph_input(model).type.tensor_type.shape.dim[0].dim_value = batch
    return model


def check_batch(network: OnnxNetwork, batch: int) -> None:
    """Refuse a batch that the graph is not made for.

    Raises
    ------
    Unsupported
    """
    if network.batch not in (None, batch):
        raise Unsupported(f"the ONNX graph is fixed to batch {network.batch}, not {batch}")


def _export(module: nn.Module, shape: tuple[int, ...]) -> onnx.ModelProto:
    """Export by TorchScript, which folds batch norm and names nodes after modules."""
    device = next((tensor.device for tensor in module.parameters()), torch.device("cpu"))
    held = io.BytesIO()
    with quiet(), torch.no_grad():
        torch.onnx.export(
            module.eval(),
            (torch.zeros(shape, device=device),),
            held,  # type: ignore[arg-type]  # a file opened for writing will do
            dynamo=False,
            opset_version=OPSET,
            input_names=["images"],
            output_names=["outputs"],
        )
    return onnx.load_from_string(held.getvalue())


def layer_of_node(node: Any, otherwise: str) -> str:
    """Return the layer behind an ONNX node.

    The owner of its weight where the weight still tells it (``layer1.0.conv1.weight``),
    else the scope in the node's name (``/layer1/layer1.0/conv1/Conv``), else the
    name itself or ``otherwise``.
    """
    owner, _, kind = node.input[1].rpartition(".") if len(node.input) > 1 else ("", "", "")
    if owner and kind == "weight":
        return owner
    return layer_of_scope(node.name) or node.name or otherwise


def layer_of_scope(name: str) -> str:
    """Return the module path in a node's name, '' where it holds none.

    Containers repeat their own name in that of their items: ``/features/features.1/conv/conv.0/Conv``
    is the layer ``features.1.conv.0``.
    """
    if not name.startswith("/"):
        return ""
    path: list[str] = []
    for scope in name.split("/")[1:-1]:
        if path and scope.startswith(path[-1] + "."):
            path.pop()
        path.append(scope)
    return ".".join(path)
