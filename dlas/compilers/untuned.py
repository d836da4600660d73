"""TVM with every algorithm's schedule as it is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dlas.compilers.programs.tvm import TvmCompiler, write_program
from dlas.lowering.lower import lower, schedule
from dlas.stack import Algorithm, Build, Network, Target


@dataclass(frozen=True)
class Untuned(TvmCompiler):
    """Compile with TVM, without a search for better schedules.

    References
    ----------
    DLAS paper, section 4.4.
    """

    def compile(
        self, network: Network, algorithm: Algorithm | None, target: Target, batch: int, folder: Path
    ) -> Build:
        """Write the library and its parameters for inputs [batch, c, h, w] into ``folder``."""
        assert algorithm is not None  # it has no kernels of its own
        lowered = lower(network, algorithm, batch)
        return write_program(lowered, schedule(lowered, target), target, folder)
