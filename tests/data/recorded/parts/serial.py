"""A compiler: TVM with every kernel as it stands, on one thread."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dlas.compilers.programs.tvm import KernelScheduler, TvmCompiler

from dlas.lowering.kernels import schedule_kernel


@dataclass(frozen=True)
class Serial(TvmCompiler):
    """Compile with TVM, with the minimal schedule of every kernel."""

    def scheduler(self, folder: Path) -> KernelScheduler:
        """Return what schedules a kernel."""
        return lambda kernel, target: (schedule_kernel(kernel, target), {})
