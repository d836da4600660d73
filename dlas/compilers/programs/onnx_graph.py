"""The file that runtimes of ONNX graphs read."""

from __future__ import annotations

from pathlib import Path

import onnx

from dlas.errors import Unsupported
from dlas.networks.exporting import as_onnx
from dlas.stack import Network, Target

MODEL = "model.onnx"


def refuse_gpus(runtime: str, target: Target) -> None:
    """Raise an error that names the runtime if ``target`` is a GPU.

    Raises
    ------
    Unsupported
    """
    if target.on_gpu:
        raise Unsupported(f"{runtime} is used on CPUs only, not on {target.kind}")


def write_graph(network: Network, batch: int, folder: Path) -> None:
    """Write the network's ONNX graph for inputs [batch, c, h, w] into ``folder``, as ``MODEL``."""
    model = as_onnx(network, batch)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / MODEL)
