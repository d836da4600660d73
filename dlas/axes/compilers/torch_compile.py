"""PyTorch's own compiler, TorchInductor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import _inductor

from dlas.axes.compilers.programs.torch import TorchProgram, TorchRuntime, is_pruned, module_of, torch_device
from dlas.errors import Unsupported
from dlas.stack import Images, Labels, Network, Program, Target, TrainingStep


@dataclass(frozen=True)
class TorchCompile(TorchRuntime):
    """Compile with ``torch.compile``, which happens in the first run; that run is no sample."""

    mode: Literal["default", "max-autotune", "max-autotune-no-cudagraphs", "reduce-overhead"] = "default"
    """Of ``torch.compile``; with ``max-autotune`` it times kernels while it compiles, maybe for minutes."""
    freezing: bool = False
    """Take weights for constants: Inductor folds them into each other, and stores them as kernels read them.
    Such a program cannot be trained.
    """

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return the compiled module; it compiles in its first run."""
        loaded = network()
        module, device = module_of(loaded).eval(), torch_device(target)
        compiled = torch.compile(module, backend="inductor", dynamic=False, options=self.options())
        program = FrozenProgram if self.freezing else TorchProgram
        return program(module, compiled, device, self.channels_last, is_pruned(loaded))

    def options(self) -> dict[str, Any] | None:
        """Return Inductor's options; ``torch.compile`` takes either these or a mode."""
        options = dict(_inductor.list_mode_options(self.mode))
        if self.freezing:
            options["freezing"] = True
        return options or None


class FrozenProgram(TorchProgram):
    """A compiled module whose weights are constants."""

    def training(self, images: Images, labels: Labels) -> TrainingStep:
        """Raise an error: weights in the compiled code would stay what they are.

        Raises
        ------
        Unsupported
        """
        raise Unsupported("with freezing = true weights are constants, and training changes them")
