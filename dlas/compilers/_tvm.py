"""What every compiler that builds with TVM has in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dlas.lowering.lower import Lowered
from dlas.programs import TvmProgram
from dlas.stack import Compiler, Network, Program, Target


class TvmCompiler(Compiler):
    """A compiler that writes what :func:`dlas.programs.write_program` does."""

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return the program in ``folder``."""
        return TvmProgram(folder, target)


def noted(lowered: Lowered, notes: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the layers with what is to be told of their kernels, by the kernel's name."""
    return [{**layer, **notes.get(layer.get("kernel", ""), {})} for layer in lowered.layers]
