"""Operators of ONNX files that run graphs inside them."""

from __future__ import annotations

from pathlib import Path

import onnx


def nesting_operator(path: Path) -> str | None:
    """Return the first operator in a file that runs a graph inside it: ``If``, ``Loop``, ``Scan``.

    None where there is none, or the file cannot be read.
    """
    try:
        graph = onnx.load(path, load_external_data=False).graph
    except Exception:  # protobuf raises its own types; reading the network says what is wrong
        return None
    nesting = (node for node in graph.node if any(each.g.node or each.graphs for each in node.attribute))
    return next((node.op_type for node in nesting), None)
