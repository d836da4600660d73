"""ONNX Runtime with all its graph optimisations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dlas.compilers.programs.onnx_graph import MODEL, write_graph
from dlas.compilers.programs.onnxruntime import OnnxProgram
from dlas.networks.convolutions import library_layers
from dlas.stack import Build, Network, Program, Runtime, Target


@dataclass(frozen=True)
class OnnxRuntime(Runtime):
    """Run the network, exported to ONNX with its batch fixed, in ONNX Runtime on the CPU."""

    def prepare(self, network: Network, target: Target, batch: int, folder: Path) -> Build:
        """Write the ONNX graph for inputs [batch, c, h, w] into ``folder``."""
        write_graph("ONNX Runtime", network, target, batch, folder)
        return Build(library_layers(network, batch))

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return a session on the graph in ``folder``."""
        return OnnxProgram(folder / MODEL, target.threads)
