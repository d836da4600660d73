"""A network from an ONNX file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_model, uses_external_data

from dlas.data import Data
from dlas.errors import InputError
from dlas.networks import ONNX_FILE, OnnxNetwork, graph_input, score
from dlas.stack import Facts, Model, Network, Workspace

LARGEST = 2**31 - 1
"""Bytes of file and weights together: what one protocol buffer holds."""


@dataclass(frozen=True)
class Onnx(Model):
    """A network that was trained elsewhere and exported.

    Parameters
    ----------
    path : str
        An ONNX file with one input [n, c, h, w] and one output [n, classes].
        Weights kept beside it must lie in its own folder.
    """

    path: str

    def verify(self) -> None:
        """Read and check the file."""
        read_model(Path(self.path).expanduser())

    def files(self) -> list[Path]:
        """Return the file and those beside it that hold its weights."""
        path = Path(self.path).expanduser()
        model = onnx.load(path, load_external_data=False)
        stored = [tensor for tensor in _tensors(model.graph) if uses_external_data(tensor)]
        return [path, *sorted({path.parent / ExternalDataInfo(tensor).location for tensor in stored})]

    def build(self, data: Data, workspace: Workspace) -> Network:
        """Read, check and evaluate the network.

        Raises
        ------
        InputError
            If the file is damaged, too large, leaves its folder, or is not for
            images and classes as ``data`` has them.
        """
        path = Path(self.path).expanduser()
        model = read_model(path)
        network = OnnxNetwork(model, Facts(data.shape, data.classes, trained=True, note="trained elsewhere"))
        try:
            _check_fit(network, data)
            network.count()
        except ValueError as error:
            raise InputError(f"ONNX file {str(path)!r}: {error}") from error
        if data.labelled:
            workspace.say("evaluating")
            score(network, data)
        return network

    def restore(self, folder: Path, facts: Facts) -> Network:
        """Return the network that was saved in ``folder``."""
        return OnnxNetwork(read_model(folder / ONNX_FILE), facts)


def read_model(path: Path) -> onnx.ModelProto:
    """Read and check an ONNX file with the weights kept beside it.

    Raises
    ------
    InputError
        If it cannot be used; the message quotes the path.
    """
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise ValueError(f"it has {size} bytes, more than {LARGEST}")
        model = onnx.load(path, load_external_data=False)
        _check_external(model, path.absolute().parent, LARGEST - size)
        load_external_data_for_model(model, str(path.absolute().parent))
        onnx.checker.check_model(model)
        graph_input(model)
    except Exception as error:  # protobuf and the checker raise kinds of their own
        raise InputError(f"ONNX file {str(path)!r} cannot be used: {error}") from error
    return model


def _check_external(model: onnx.ModelProto, folder: Path, allowed: int) -> None:
    """Refuse weights outside the file's own folder, absent, or too large to hold."""
    for tensor in _tensors(model.graph):
        if not uses_external_data(tensor):
            continue
        location = ExternalDataInfo(tensor).location
        file = (folder / location).resolve()
        if not file.is_relative_to(folder.resolve()):
            raise ValueError(f"the weights of {tensor.name!r} are in {location!r}, outside its folder")
        if not file.is_file():
            raise ValueError(f"the weights of {tensor.name!r} should be in {file}, which is not there")
        allowed -= ExternalDataInfo(tensor).length or file.stat().st_size
        if allowed < 0:
            raise ValueError(f"it holds more than {LARGEST} bytes with the weights kept beside it")


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Yield every stored tensor, those of nested graphs included."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from [attribute.t, *attribute.tensors]
            for nested in [attribute.g, *attribute.graphs]:
                yield from _tensors(nested)


def _check_fit(network: OnnxNetwork, data: Data) -> None:
    """Raise ValueError unless the graph takes the images and gives an output a class."""
    value = graph_input(network.model)
    sizes = [size.dim_value for size in value.type.tensor_type.shape.dim]
    if value.type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
        raise ValueError(f"its input {value.name!r} is not float32")
    # A size of 0 is symbolic and takes anything.
    if len(sizes) != 4 or any(own not in (0, size) for own, size in zip(sizes[1:], data.shape, strict=True)):
        shown = "x".join(str(size or "?") for size in sizes)
        raise ValueError(f"its input {value.name!r} is {shown}, not nx{'x'.join(map(str, data.shape))}")
    outputs = len(network.model.graph.output)
    if outputs != 1:
        raise ValueError(f"it has {outputs} outputs, not one")
    images, _ = data.test[[0]]
    shape = network.reference(images).shape
    if shape != (1, data.classes):
        raise ValueError(f"its output for one image has shape {shape}, not (1, {data.classes})")
