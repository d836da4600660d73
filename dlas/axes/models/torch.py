"""A network of one's own, written in torch and exported by ``dlas.models.from_torch``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch.export import ExportedProgram

from dlas.errors import InputError
from dlas.networks.exported.files import read_program
from dlas.networks.exported.modules import image_shape, module_of
from dlas.networks.scoring import score
from dlas.networks.torch.network import TorchNetwork
from dlas.networks.weights import WEIGHTS_FILE, load_weights, read_weights
from dlas.stack import Data, Facts, Model, Network, Workspace


@dataclass(frozen=True)
class Torch(Model):
    """A torch module with its weights; any module for images [n, c, h, w] with outputs [n, classes].

    Write the file in Python, where ``module`` is a ``torch.nn.Module``::

        part = dlas.models.from_torch(module, (3, 32, 32))
        dlas.run(dlas.Study(axes={"model": part, "dataset": "cifar10"}), out="results/own")
    """

    path: str
    """The file that ``dlas.models.from_torch`` wrote, or another program (*.pt2) that ``torch.export.save``
    wrote, exported for a batch of any size.
    """

    def verify(self) -> None:
        """Read and check the file."""
        read_program(self._file())

    def files(self) -> list[Path]:
        """Return the file."""
        return [self._file()]

    def build(self, data: Data, workspace: Workspace) -> Network:
        """Read, check and evaluate the network.

        Raises
        ------
        InputError
            If the file is damaged or too large, or does not match the images and classes of ``data``.
        """
        program = self._program()
        network = TorchNetwork(module_of(program), _facts(data))
        try:
            _check_fit(program, network, data)
        except ValueError as error:
            raise InputError(f"exported program {self.path!r}: {error}") from error
        if data.labelled:
            workspace.say("evaluating")
            score(network, data)
        network.count()
        return network

    def restore(self, folder: Path, facts: Facts) -> Network:
        """Return the network whose weights were saved in ``folder``."""
        network = TorchNetwork(module_of(self._program()), facts)
        path = folder / WEIGHTS_FILE
        load_weights(network.module, read_weights(path), str(path))
        return network

    def _file(self) -> Path:
        return Path(self.path).expanduser()

    def _program(self) -> ExportedProgram:
        return read_program(self._file())


def _facts(data: Data) -> Facts:
    return Facts(data.shape, data.classes, trained=True, note="weights from its file")


def _check_fit(program: ExportedProgram, network: TorchNetwork, data: Data) -> None:
    """Raise ValueError unless the program takes any number of the images and has an output for each class."""
    taken = image_shape(program)
    if taken != data.shape:
        shown = ["x".join(map(str, shape)) for shape in (taken, data.shape)]
        raise ValueError(f"it takes images {shown[0]}, not {shown[1]}")
    images, _ = data.test[[0, 0, 0]]
    try:
        shape = network.reference(images).shape
    except RuntimeError as error:
        raise ValueError(f"it does not take {len(images)} images: {error}") from error
    if shape != (len(images), data.classes):
        raise ValueError(
            f"its output for {len(images)} images has shape {shape}, not {(len(images), data.classes)}"
        )
