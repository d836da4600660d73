"""ncnn on the CPU, in single precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlas.axes.compilers.programs.converting import convert_graph
from dlas.axes.compilers.programs.ncnn import (
    PARAMETERS,
    WEIGHTS,
    NcnnProgram,
    converter,
    refuse_unknown_layers,
)
from dlas.axes.compilers.programs.onnx_graph import refuse_gpus
from dlas.networks.convolutions import library_layers
from dlas.stack import Build, Network, Program, Runtime, Target


@dataclass(frozen=True)
class Ncnn(Runtime):
    """Run the network, exported to ONNX and converted by pnnx, in ncnn on the CPU.

    ncnn's numbers of 16 bits are off. It has no batches: images are computed one after the other.
    It does not tell the times of layers.
    """

    def packages(self) -> Sequence[str]:
        """Return ncnn's, and its converter's."""
        return ["ncnn", "pnnx"]

    def prepare(self, network: Network, target: Target, batch: int, folder: Path) -> Build:
        """Convert the ONNX graph for one image into ``folder``, and check that ncnn has its layers."""
        self.verify()
        refuse_gpus("ncnn", target)
        convert_graph("ncnn", network, 1, converter(), (PARAMETERS, WEIGHTS), folder)
        refuse_unknown_layers(folder / PARAMETERS)
        return Build(library_layers(network, batch))

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return the network of ``folder``."""
        return NcnnProgram(folder, target.threads)
