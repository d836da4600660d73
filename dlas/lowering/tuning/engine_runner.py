"""Candidates as modules of one kernel in an engine of WebAssembly: who builds one also runs it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tvm import tirx

from dlas.bench.measuring.comparing import difference
from dlas.bench.processes.workers import Handlers, Reply, RequestFailed, last_line
from dlas.lowering.tuning.candidates import SAMPLE_S, CandidateRunner, blank, minimal, scheduled
from dlas.lowering.tuning.workload import Workload
from dlas.lowering.webassembly.writing import CODE, PARAMETERS, write_kernel
from dlas.stack import Array, Hardware
from dlas.stack.engine import Engine, WasmModule
from dlas.stack.hardware import EngineHardware

WARM_S = 0.1
"""Runs before the samples: engines that compile twice do so meanwhile."""


class EngineRunner(CandidateRunner):
    """Builds candidates for some workloads, and times them in an engine.

    Parameters
    ----------
    workloads : sequence of Workload
    hardware : Hardware
        An engine of WebAssembly.
    folder : Path
        Folder where workers share the reference outputs.
    """

    def __init__(self, workloads: Sequence[Workload], hardware: Hardware, folder: Path) -> None:
        super().__init__(workloads, hardware.target(), folder)
        assert isinstance(hardware, EngineHardware)
        self.hardware = hardware
        self.processors = os.sched_getaffinity(0)
        self.engine: Engine | None = None
        self.modules: dict[int, tuple[Path, WasmModule]] = {}
        self.arrays: list[Array] = []
        self.running: tuple[Path, WasmModule] | None = None

    def handlers(self) -> Handlers:
        """Return the handlers of messages."""
        messages = (self.reference, self.build, self.time, self.sample, self.drop)
        return {function.__name__: function for function in messages}

    def build(self, workload: int, candidate: dict[str, object], number: int) -> Reply:
        """Build a candidate and keep it under its number; return its trace if it consists of decisions."""
        os.sched_setaffinity(0, self.processors)
        try:
            function, trace = scheduled(self.workloads[workload], candidate, self.target)
            self.modules[number] = self._written(function)
        except Exception as error:
            raise RequestFailed("build", last_line(error)) from error
        return {"trace": trace}

    def drop(self, numbers: list[int]) -> Reply:
        """Drop candidates that were built."""
        for number in numbers:
            if number in self.modules:
                shutil.rmtree(self.modules.pop(number)[0], ignore_errors=True)
        return {}

    def minimal(self, workload: int) -> tuple[Path, WasmModule]:
        """Return the module of a workload's minimal schedule."""
        return self._written(minimal(self.workloads[workload], self.target))

    def module(self, number: int) -> tuple[Path, WasmModule]:
        """Return the module of a candidate."""
        return self.modules[number]

    def prepare_device(self) -> None:
        """Choose the processors, and start the engine."""
        os.sched_setaffinity(0, self.processors)
        self.hardware.prepare()
        if self.engine is None:
            self.engine = self.hardware.started()

    def warm_up(self, module: tuple[Path, WasmModule]) -> None:
        """Load a module with a workload's arguments, and run it once."""
        self.prepare_device()
        self._load(module)
        self.time_call(module)

    def wrong(self, workload: int) -> str | None:
        """Return how the output deviates from the reference, None if it does not."""
        if self.expected is None:
            self.expected = self.read_reference(workload)
        return difference(self.output(), self.expected, self.tolerance)

    def time_call(self, module: tuple[Path, WasmModule]) -> float:
        """Return the seconds of one call by the engine's clock."""
        self._load(module)
        return max(self._started.run(1), 1e-9)

    def samples(self, module: tuple[Path, WasmModule], count: int) -> list[float]:
        """Return the seconds a call of ``count`` samples, each of many calls."""
        engine, spent, runs = self._started, 0.0, 1
        while spent < WARM_S:
            spent += (once := engine.run(runs))
            runs = max(runs, 2 * runs if once < SAMPLE_S / 2 else round(runs * SAMPLE_S / once))
        return [engine.run(runs) / runs for _ in range(count)]

    def load(self, workload: int) -> None:
        """Take a workload's arguments; a module has them when it is loaded."""
        if self.loaded == workload:
            return
        self.forget()
        self.arrays = list(self.workloads[workload].arguments())
        # Either of two correct outputs may deviate.
        self.tolerance = 2 * self.workloads[workload].kernel.tolerance
        self.loaded = workload

    def output(self) -> Array:
        """Return a copy of the output."""
        assert self.running is not None
        return self._started.read(self.running[1].output)

    def clear(self) -> None:
        """Have the next module loaded anew, with an output that no kernel computes."""
        self.running = None

    def forget(self) -> None:
        """Free a workload's arguments and its reference."""
        super().forget()
        self.arrays, self.running = [], None

    @property
    def _started(self) -> Engine:
        assert self.engine is not None
        return self.engine

    def _load(self, module: tuple[Path, WasmModule]) -> None:
        """Have a module loaded with the arguments."""
        if self.running is module:
            return
        (folder, contents), engine = module, self._started
        engine.load(contents, folder / CODE, folder / PARAMETERS)
        for tensor, array in zip(contents.inputs, self.arrays[:-1], strict=True):
            engine.write(tensor, array)
        engine.write(contents.output, blank(self.arrays[-1]))
        self.running = module

    def _written(self, kernel: tirx.PrimFunc) -> tuple[Path, WasmModule]:
        folder = Path(tempfile.mkdtemp(prefix="module-", dir=self.folder))
        return folder, write_kernel(kernel, self.target, folder)
