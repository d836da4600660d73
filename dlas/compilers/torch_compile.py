"""PyTorch's own compiler, TorchInductor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

from dlas.stack import Algorithm, Build, Compiler, Network, Program, Target
from dlas.torch_programs import TorchProgram, module_of, prepare, torch_device


@dataclass(frozen=True)
class TorchCompile(Compiler):
    """Compile with ``torch.compile``; it does so at the first run, which counts as such."""

    own_kernels: ClassVar[bool] = True

    def compile(
        self, network: Network, algorithm: Algorithm | None, target: Target, batch: int, folder: Path
    ) -> Build:
        """Check that torch can run the network on the target; nothing is written."""
        return prepare(network, target, batch, folder)

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return the compiled module; the work is done at its first run."""
        module, device = module_of(network()).eval(), torch_device(target)
        return TorchProgram(module, torch.compile(module, backend="inductor", dynamic=False), device)
