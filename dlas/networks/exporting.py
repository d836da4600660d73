"""Networks as ONNX graphs: torch modules exported, graphs fixed to a batch."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator

import onnx
import torch
from torch import nn
from torch.onnx import OnnxExporterError

from dlas.errors import Unsupported
from dlas.networks.counting import plain_attention
from dlas.networks.onnx.counting import graph_input
from dlas.networks.onnx.network import OnnxNetwork
from dlas.networks.torch.network import TorchNetwork
from dlas.stack import Network

OPSET = 17


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the output and the logs of importers and exporters; errors are still raised."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def as_onnx(network: Network, batch: int | None) -> onnx.ModelProto:
    """Return ``network`` as a new ONNX graph for inputs [batch, c, h, w].

    If ``batch`` is None the graph takes any batch, unless the network is fixed to one.

    Raises
    ------
    Unsupported
        If the network cannot be exported.
    """
    if isinstance(network, OnnxNetwork):
        return _with_batch(network, batch)
    if isinstance(network, TorchNetwork):
        return _export(network.module, network.facts.shape, batch)
    raise Unsupported(f"only torch modules and ONNX graphs can be exported, not {type(network).__name__}")


def _with_batch(network: OnnxNetwork, batch: int | None) -> onnx.ModelProto:
    """Return a copy of the network's graph, fixed to ``batch`` if that is not None."""
    model = onnx.ModelProto()
    model.CopyFrom(network.model)
    if batch is not None:
        check_batch(network, batch)
        graph_input(model).type.tensor_type.shape.dim[0].dim_value = batch
    return model


def check_batch(network: OnnxNetwork, batch: int) -> None:
    """Raise unless the graph takes this batch.

    Raises
    ------
    Unsupported
    """
    if network.batch not in (None, batch):
        raise Unsupported(f"the ONNX graph is fixed to batch {network.batch}, not {batch}")


def _export(module: nn.Module, shape: tuple[int, int, int], batch: int | None) -> onnx.ModelProto:
    """Export by TorchScript, which folds batch norm and names nodes after modules."""
    names = ("images", "outputs")
    device = next((tensor.device for tensor in module.parameters()), torch.device("cpu"))
    buffer = io.BytesIO()
    try:
        with quiet(), torch.no_grad(), plain_attention():
            torch.onnx.export(
                module.eval(),
                (torch.zeros(batch or 1, *shape, device=device),),
                buffer,  # type: ignore[arg-type]  # a file opened for writing will do
                dynamo=False,
                opset_version=OPSET,
                input_names=names[:1],
                output_names=names[1:],
                dynamic_axes={name: {0: "batch"} for name in names} if batch is None else None,
            )
    except OnnxExporterError as error:
        raise Unsupported(f"PyTorch cannot export this network to ONNX: {error}") from error
    return onnx.load_from_string(buffer.getvalue())
