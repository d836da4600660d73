"""PyTorch as it comes: every operator called on its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dlas.stack import Algorithm, Build, Compiler, Network, Program, Target
from dlas.torch_programs import TorchProgram, module_of, prepare, torch_device


@dataclass(frozen=True)
class TorchEager(Compiler):
    """Run the torch module itself.

    References
    ----------
    DLAS paper, section 4.2, where PyTorch trains the networks but does not time them.
    """

    own_kernels: ClassVar[bool] = True

    def compile(
        self, network: Network, algorithm: Algorithm | None, target: Target, batch: int, folder: Path
    ) -> Build:
        """Check that torch can run the network on the target; nothing is written."""
        return prepare(network, target, batch, folder)

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return the module on its device."""
        module = module_of(network())
        return TorchProgram(module, module, torch_device(target))
