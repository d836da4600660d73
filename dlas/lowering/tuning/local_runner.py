"""Candidates on a device of this machine: the worker that builds one also runs it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tvm
from tvm import tirx

from dlas.bench.measuring.comparing import difference
from dlas.bench.measuring.machine import pin_threads
from dlas.bench.processes.workers import Handlers, Reply, RequestFailed, last_line
from dlas.lowering.tuning.candidates import CandidateRunner, compiled, minimal, scheduled
from dlas.lowering.tuning.workload import MAIN, Workload
from dlas.stack import Hardware


class LocalRunner(CandidateRunner):
    """Builds candidates for some workloads, and times them on a device of this machine.

    Parameters
    ----------
    workloads : sequence of Workload
    hardware : Hardware
    folder : Path
        Folder where workers share the reference outputs.
    """

    def __init__(self, workloads: Sequence[Workload], hardware: Hardware, folder: Path) -> None:
        target = hardware.target()
        device = tvm.device("cpu" if target.on_processors else target.kind)
        super().__init__(workloads, target, folder, device)
        self.hardware = hardware
        self.processors = os.sched_getaffinity(0)
        self.built: dict[int, Any] = {}

    def handlers(self) -> Handlers:
        """Return the handlers of messages."""
        return {
            "reference": self.reference,
            "build": self.build,
            "time": self.time,
            "sample": self.sample,
            "drop": self.drop,
        }

    def build(self, workload: int, candidate: dict[str, Any], number: int) -> Reply:
        """Build a candidate and keep it under its number; return its trace if it consists of decisions."""
        os.sched_setaffinity(0, self.processors)
        try:
            function, trace = scheduled(self.workloads[workload], candidate, self.target)
            self.built[number] = self.compiled(function)
        except Exception as error:
            raise RequestFailed("build", last_line(error)) from error
        return {"trace": trace}

    def drop(self, numbers: list[int]) -> Reply:
        """Drop candidates that were built."""
        for number in numbers:
            self.built.pop(number, None)
        return {}

    def minimal(self, workload: int) -> Any:
        """Return the built module of a workload's minimal schedule."""
        return self.compiled(minimal(self.workloads[workload], self.target))

    def module(self, number: int) -> Any:
        """Return the built module of a candidate."""
        return self.built[number]

    def compiled(self, function: tirx.PrimFunc) -> Any:
        """Return a built module with its machine code, which TVM otherwise generates at the first call."""
        built = compiled(function, self.target)
        self.entry(built)
        return built

    def entry(self, built: Any) -> Callable[..., None]:
        """Return the function of a built module."""
        run: Callable[..., None] = built[MAIN]
        return run

    def prepare_device(self) -> None:
        """Use the processors of programs on this device; threads of TVM's pool inherit the affinity."""
        os.sched_setaffinity(0, self.processors)  # ``prepare`` selects among these
        self.hardware.prepare()

    def warm_up(self, module: Any) -> None:
        """Call a candidate once on the device, and pin each of its threads to a processor."""
        self.prepare_device()
        self.time_call(module)
        if self.target.on_processors:
            pin_threads()

    def wrong(self, workload: int) -> str | None:
        """Return how the output deviates from the reference, None if it does not."""
        if self.expected is None:
            self.expected = self.read_reference(workload)
        return difference(self.arguments[-1].numpy(), self.expected, self.tolerance)

    def time_call(self, module: Any) -> float:
        """Return the seconds of one call from Python."""
        assert self.device is not None
        start = time.perf_counter()
        self.entry(module)(*self.arguments)
        self.device.sync()
        return max(time.perf_counter() - start, 1e-9)
