"""PyTorch's own compiler, TorchInductor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from dlas.axes.compilers.programs.torch import TorchProgram, TorchRuntime, is_pruned, module_of, torch_device
from dlas.stack import Network, Program, Target


@dataclass(frozen=True)
class TorchCompile(TorchRuntime):
    """Compile with ``torch.compile``, which happens in the first run; that run is no sample."""

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return the compiled module; it compiles in its first run."""
        loaded = network()
        module, device = module_of(loaded).eval(), torch_device(target)
        compiled = torch.compile(module, backend="inductor", dynamic=False)
        return TorchProgram(module, compiled, device, self.channels_last, is_pruned(loaded))
