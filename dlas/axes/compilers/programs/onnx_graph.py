"""The file that runtimes of ONNX graphs read."""

from __future__ import annotations

from pathlib import Path

import onnx

from dlas.errors import Unsupported
from dlas.networks.exporting import as_onnx
from dlas.networks.onnx.halves import in_single
from dlas.networks.onnx.network import OnnxNetwork, number_type
from dlas.networks.pooling import WrittenPooling
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


def type_of(network: Network) -> str:
    """Return the number type of a network: that of its graph, or float32."""
    return number_type(network.model) if isinstance(network, OnnxNetwork) else "float32"


def write_graph(network: Network, batch: int, folder: Path, single: bool = False) -> None:
    """Write the network's ONNX graph for inputs [batch, c, h, w] into ``folder``, as ``MODEL``.

    With ``single``, numbers of 16 bits are stored in 32, and nothing is cast.
    """
    with WrittenPooling():
        model = as_onnx(network, batch)
    if single:
        model = in_single(model)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / MODEL)
