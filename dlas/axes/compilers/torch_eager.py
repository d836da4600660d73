"""PyTorch in eager mode: every operator is called separately."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dlas.axes.compilers.programs.torch import TorchProgram, TorchRuntime, is_pruned, module_of, torch_device
from dlas.bench.measuring.allocator import keep_freed
from dlas.networks.operators import without_reads
from dlas.stack import Algorithm, Layer, Network, Operator, Program, Target


@dataclass(frozen=True)
class TorchEager(TorchRuntime):
    """Run the torch module itself.

    References
    ----------
    DLAS paper, section 4.2, where PyTorch trains the networks but does not time them.
    """

    allocator: Literal["default", "pinned"] = "default"
    """Whether freed blocks go back to the system as glibc decides, so that large outputs cost page faults in
    each inference, or stay with the process (``pinned``), as with jemalloc or tcmalloc. What a process has
    once set stays set: compare the two in steps of their own, not with ``--in-process``.
    """

    def kernels(
        self,
        network: Callable[[], Network],
        operators: Sequence[Operator],
        algorithm: Callable[[], Algorithm],
        target: Target,
        batch: int,
    ) -> list[Layer]:
        """Return the operators themselves: none is computed together with another."""
        return [{**without_reads(operator), "fused": []} for operator in operators]

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return the module on its device."""
        if self.allocator == "pinned":
            keep_freed()
        loaded = network()
        module = module_of(loaded)
        return TorchProgram(module, module, torch_device(target), self.channels_last, is_pruned(loaded))
