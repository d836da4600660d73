"""TVM with the first point of every algorithm's own design space: optimised by hand, without a search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlas.compilers.programs.tvm import TvmCompiler, noted, write_program
from dlas.lowering.kernels import Kernel, schedule_kernel
from dlas.lowering.lower import lower, schedule
from dlas.stack import Algorithm, Build, Network, Target


@dataclass(frozen=True)
class Hand(TvmCompiler):
    """Compile with TVM; every convolution takes the best guess of its algorithm's design space.

    The minimal schedule stands in where an algorithm has no space of its own for
    the target.  Each layer of the row says what was decided.
    """

    def compile(
        self, network: Network, algorithm: Algorithm | None, target: Target, batch: int, folder: Path
    ) -> Build:
        """Write the library and its parameters for inputs [batch, c, h, w] into ``folder``."""
        assert algorithm is not None  # it has no kernels of its own
        lowered = lower(network, algorithm, batch)
        notes: dict[str, dict[str, Any]] = {}

        def scheduled(kernel: Kernel, target: Target) -> Any:
            points = kernel.algorithm.space(kernel.conv, target)
            decisions = points[0] if points else None
            notes[kernel.name] = {"decisions": dict(decisions) if decisions is not None else None}
            return schedule_kernel(kernel, target, decisions)

        build = write_program(lowered, schedule(lowered, target, scheduled), target, folder)
        build.layers = noted(lowered, notes)
        return build
