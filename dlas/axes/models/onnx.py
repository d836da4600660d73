"""A network from an ONNX file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnx

from dlas.errors import InputError, one_line
from dlas.networks.onnx.counting import graph_input
from dlas.networks.onnx.files import read_model, weight_files
from dlas.networks.onnx.network import ONNX_FILE, OnnxNetwork
from dlas.networks.scoring import score
from dlas.stack import Data, Facts, Model, Network, Workspace


@dataclass(frozen=True)
class Onnx(Model):
    """A network of one's own as an ONNX file, which other tools trained and exported.

    What the graph computes from constants alone is computed when the file is read.
    """

    path: str
    """An ONNX file with one input [n, c, h, w] and one output [n, classes]. External weights must be in its
    own folder.
    """

    def verify(self) -> None:
        """Read and check the file."""
        read_model(Path(self.path).expanduser(), fold=True)

    def files(self) -> list[Path]:
        """Return the file and the external files with its weights."""
        path = Path(self.path).expanduser()
        return [path, *weight_files(path)]

    def build(self, data: Data, workspace: Workspace) -> Network:
        """Read, check and evaluate the network.

        Raises
        ------
        InputError
            If the file is damaged or too large, refers to files outside its folder,
            or does not match the images and classes of ``data``.
        """
        path = Path(self.path).expanduser()
        model = read_model(path, fold=True)
        network = OnnxNetwork(
            model, Facts(data.shape, data.classes, trained=True, note="weights from its file")
        )
        try:
            _check_fit(network, data)
            network.count()
        except Exception as error:  # ONNX Runtime raises its own types
            raise InputError(f"ONNX file {str(path)!r}: {one_line(str(error))}") from error
        if data.labelled:
            workspace.say("evaluating")
            score(network, data)
        return network

    def restore(self, folder: Path, facts: Facts) -> Network:
        """Return the network that was saved in ``folder``."""
        return OnnxNetwork(read_model(folder / ONNX_FILE), facts)


def _check_fit(network: OnnxNetwork, data: Data) -> None:
    """Raise ValueError unless the graph takes the images and has an output for each class."""
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
