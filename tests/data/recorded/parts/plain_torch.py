"""A runtime with kernels of its own: the torch module itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from dlas.networks.torch_network import TorchNetwork

from dlas.networks.convolutions import library_layers
from dlas.stack import Build, Images, Network, Program, Runtime, Target


@dataclass(frozen=True)
class ModuleProgram(Program):
    """Calls a module."""

    module: torch.nn.Module

    def bind(self, images: Images) -> Callable[[], Any]:
        """Return a function that runs one inference."""
        batch = torch.from_numpy(images.copy())

        def once() -> torch.Tensor:
            with torch.inference_mode():
                outputs: torch.Tensor = self.module(batch)
            return outputs

        return once

    def run(self, images: Images) -> Images:
        """Return the outputs [n, classes]."""
        outputs: Images = self.bind(images)().numpy()
        return outputs.astype(np.float32, copy=False)


@dataclass(frozen=True)
class PlainTorch(Runtime):
    """Run the module as it is."""

    def prepare(self, network: Network, target: Target, batch: int, folder: Path) -> Build:
        """Write nothing: the network is restored."""
        return Build(library_layers(network, batch))

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return the module in evaluation mode."""
        restored = network()
        assert isinstance(restored, TorchNetwork)
        return ModuleProgram(restored.module.eval())
