"""TVM with the first point of every kernel's design space: tuned by hand, without a search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tvm import tirx

from dlas.axes.compilers.programs.tvm import KernelScheduler, TvmCompiler
from dlas.lowering.kernels.kernel import Kernel, schedule_kernel
from dlas.stack import ScheduleChoice, Target


@dataclass(frozen=True)
class Hand(TvmCompiler):
    """Compile with TVM; every convolution and linear layer uses the first point of its design space.

    Algorithms without a space of their own for the target use the minimal schedule.
    Each layer of the row lists the decisions.
    """

    def scheduler(self, folder: Path) -> KernelScheduler:
        """Return the best guess for a kernel."""
        return _best_guess


def _best_guess(kernel: Kernel, target: Target) -> tuple[tirx.PrimFunc, ScheduleChoice]:
    points = kernel.space(target)
    decisions = dict(points[0]) if points else None
    return schedule_kernel(kernel, target, decisions), {"decisions": decisions}
