"""TVM with the first point of every algorithm's own design space: optimised by hand, without a search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tvm import tirx

from dlas.compilers.programs.tvm import KernelScheduler, TvmCompiler
from dlas.lowering.kernels import Kernel, schedule_kernel
from dlas.stack import Layer, Target


@dataclass(frozen=True)
class Hand(TvmCompiler):
    """Compile with TVM; every convolution takes the best guess of its algorithm's design space.

    The minimal schedule stands in where an algorithm has no space of its own for
    the target.  Each layer of the row says what was decided.
    """

    def scheduler(self, folder: Path) -> KernelScheduler:
        """Return the best guess for a kernel."""
        return _best_guess


def _best_guess(kernel: Kernel, target: Target) -> tuple[tirx.PrimFunc, Layer]:
    points = kernel.algorithm.space(kernel.conv, target)
    decisions = dict(points[0]) if points else None
    return schedule_kernel(kernel, target, decisions), {"decisions": decisions}
