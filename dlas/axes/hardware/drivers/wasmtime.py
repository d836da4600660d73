"""WebAssembly in wasmtime, whose compiler Cranelift works before the first run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from dlas.axes.hardware.engines import WebAssemblyEngine
from dlas.bench.engines.wasmtime import Wasmtime
from dlas.bench.measuring.machine import use_threads
from dlas.stack.engine import Engine


@dataclass(frozen=True)
class WasmtimeEngine(WebAssemblyEngine):
    """WebAssembly in wasmtime, in the process that measures a point."""

    engine: ClassVar[type[Engine]] = Wasmtime
    apart: ClassVar[bool] = False

    def prepare(self) -> None:
        """Bind this process to one processor."""
        use_threads(1)
        os.sched_setaffinity(0, [self.machine.cores()[0][0]])

    def start(self) -> Engine:
        """Return wasmtime."""
        return Wasmtime()
