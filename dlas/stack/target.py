"""Targets: the device that a compiler generates code for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Target:
    """The device that a compiler generates code for."""

    description: Mapping[str, Any]
    """A TVM target as a mapping, e.g. ``{"kind": "llvm", "mcpu": "znver4", "num-cores": 2}``."""
    threads: int
    """Worker threads at run time."""
    linker: str | None = None
    """The C compiler on this machine that links libraries for it; by default this machine's own."""

    @property
    def kind(self) -> str:
        """The kind of code: ``llvm``, ``cuda``, ``opencl``, ..."""
        return str(self.description["kind"])

    @property
    def on_processors(self) -> bool:
        """Whether loops run on the threads and vectors of processors."""
        return self.kind == "llvm"

    @property
    def on_webassembly(self) -> bool:
        """Whether code is a WebAssembly module, which an engine runs."""
        return str(self.description.get("mtriple", "")).startswith("wasm32")

    @property
    def on_gpu(self) -> bool:
        """Whether loops are bound to a GPU's threads."""
        return not self.on_processors


GENERIC = Target({"kind": "llvm", "num-cores": 1}, threads=1)
"""Any processor of this machine's architecture, for kernels whose speed does not matter."""
