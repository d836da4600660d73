"""ONNX Runtime with all its graph optimisations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import onnx

from dlas.compilers.programs.onnxruntime import MODEL, OnnxProgram
from dlas.errors import Unsupported
from dlas.networks.convolutions import library_layers
from dlas.networks.exporting import as_onnx
from dlas.stack import Build, Network, Program, Runtime, Target


@dataclass(frozen=True)
class OnnxRuntime(Runtime):
    """Run the network, exported to ONNX with its batch fixed, in ONNX Runtime on the CPU."""

    def prepare(self, network: Network, target: Target, batch: int, folder: Path) -> Build:
        """Write the ONNX graph for inputs [batch, c, h, w] into ``folder``."""
        if target.on_gpu:
            raise Unsupported(f"ONNX Runtime is used on CPUs only, not on {target.kind}")
        model = as_onnx(network, batch)
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(model, folder / MODEL)
        return Build(library_layers(network, batch))

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return a session on the graph in ``folder``."""
        return OnnxProgram(folder / MODEL, target.threads)
