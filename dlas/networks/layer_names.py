"""The names of layers, the same for torch modules, ONNX graphs and compiled programs."""

from __future__ import annotations

import onnx


class CallNames:
    """Names the calls of layers within one run: ``conv``, ``conv#2`` for a layer's second call, and so on."""

    def __init__(self) -> None:
        self._calls: dict[str, int] = {}

    def next(self, layer: str) -> str:
        """Return the name of the next call of a layer."""
        self._calls[layer] = self._calls.get(layer, 0) + 1
        return layer if self._calls[layer] == 1 else f"{layer}#{self._calls[layer]}"


def layer_of_node(node: onnx.NodeProto, default: str) -> str:
    """Return the layer that an ONNX node computes.

    The owner of its weight if the weight's name contains it (``layer1.0.conv1.weight``),
    else the scope in the node's name (``/layer1/layer1.0/conv1/Conv``), else the
    name itself or ``default``.
    """
    owner, _, kind = node.input[1].rpartition(".") if len(node.input) > 1 else ("", "", "")
    if owner and kind == "weight":
        return owner
    return layer_of_scope(node.name) or node.name or default


def layer_of_scope(name: str) -> str:
    """Return the module path in a node's name, '' if it has none.

    Containers repeat their own name in the names of their items: ``/features/features.1/conv/conv.0/Conv``
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
