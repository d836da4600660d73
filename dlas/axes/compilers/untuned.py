"""TVM with every kernel's minimal schedule."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tvm import tirx

from dlas.axes.compilers.programs.tvm import KernelScheduler, TvmCompiler
from dlas.lowering.kernels.kernel import Kernel, schedule_kernel
from dlas.stack import ScheduleChoice, Target


@dataclass(frozen=True)
class MinimalSchedules(TvmCompiler):
    """Compile with TVM, without a search for better schedules.

    Convolutions have their algorithm's minimal schedule, threads alone.  Linear layers and all
    other operators have one common schedule: parallel outside and vectorised inside.

    References
    ----------
    DLAS paper, section 4.4.
    """

    def scheduler(self, folder: Path) -> KernelScheduler:
        """Return the minimal schedule of a kernel."""
        return _minimal


def _minimal(kernel: Kernel, target: Target) -> tuple[tirx.PrimFunc, ScheduleChoice]:
    return schedule_kernel(kernel, target), {}
