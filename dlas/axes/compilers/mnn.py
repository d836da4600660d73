"""MNN on the CPU, in single precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlas.axes.compilers.programs.converting import convert_graph
from dlas.axes.compilers.programs.mnn import CONVERTED, MnnProgram, converter, write_operators
from dlas.axes.compilers.programs.onnx_graph import refuse_gpus
from dlas.networks.convolutions import library_layers
from dlas.networks.exporting import as_onnx
from dlas.stack import Build, Network, Program, Runtime, Target

TOLERANCE = 0.01
"""Largest accepted relative deviation: three times what was seen, 3.1e-3 of the largest output (ResNet-50).

MNN's tiles for Winograd's algorithm are so large that transforms cancel digits. Without them, ResNet-50
errs by 2.7e-5.
"""


@dataclass(frozen=True)
class Mnn(Runtime):
    """Run the network, exported to ONNX and converted by MNN, in MNN on the CPU with precision ``high``.

    Numbers are float32, but Winograd's algorithm on large tiles makes outputs of networks with
    convolutions of 3x3 err by up to 3e-3 of the largest, a hundred times as much as in other compilers.
    So its rows may deviate by :data:`TOLERANCE`; their ``error`` tells by how much they do.
    """

    def packages(self) -> Sequence[str]:
        """Return MNN's."""
        return ["mnn"]

    def prepare(self, network: Network, target: Target, batch: int, folder: Path) -> Build:
        """Convert the ONNX graph for inputs [batch, c, h, w] into ``folder``."""
        self.verify()
        refuse_gpus("MNN", target)
        convert_graph("MNN", network, batch, converter(), (CONVERTED,), folder)
        write_operators(as_onnx(network, batch), batch, folder)
        return Build(library_layers(network, batch), tolerance=TOLERANCE)

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return the network of ``folder``."""
        return MnnProgram(folder, target.threads)
