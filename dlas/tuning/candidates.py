"""Candidates in a worker: build them, check their outputs, time them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import tirx

from dlas.lowering.kernels import schedule_kernel
from dlas.lowering.target import tvm_target
from dlas.processes.workers import Handlers, Reply, RequestFailed, last_line
from dlas.stack import Array, Hardware
from dlas.store.replacing import replacing
from dlas.tuning.workload import MAIN, Workload

REPEATS = 3
SAMPLE_S = 0.02
"""Shortest sample; more or longer samples did not rank candidates better."""
HOPELESS = 3.0
"""A candidate this many times slower than the best so far gets a single sample."""
CALL_S = 1e-3
"""Python's overhead dominates single calls shorter than this."""


class CandidateRunner:
    """Builds candidates for some workloads, and times them on a device of this machine.

    Parameters
    ----------
    workloads : sequence of Workload
    hardware : Hardware
    folder : Path
        Folder where workers share the reference outputs.
    """

    def __init__(self, workloads: Sequence[Workload], hardware: Hardware, folder: Path) -> None:
        self.workloads, self.hardware, self.folder = workloads, hardware, folder
        self.target = hardware.target()
        kind = self.target.kind
        self.on_processors = kind == "llvm"
        self.device = tvm.device("cpu" if self.on_processors else kind)
        self.processors = os.sched_getaffinity(0)
        self.built: dict[int, tvm.runtime.Executable] = {}
        self.loaded = -1

    def handlers(self) -> Handlers:
        """Return the handlers of messages."""
        return {
            "reference": self.reference,
            "build": self.build,
            "time": self.time,
            "sample": self.sample,
            "drop": self.drop,
        }

    def reference(self, workload: int) -> Reply:
        """Compute the reference output for all workers with the minimal schedule, and time it."""
        minimal = schedule_kernel(self.workloads[workload].kernel, self.target)
        built = self.compiled(minimal.with_attr("global_symbol", MAIN))
        arguments = self._load(workload)
        self._take_the_device()
        run_s = [self.time_call(built, arguments)]
        if run_s[0] < SAMPLE_S:
            run_s = [self.time_call(built, arguments) for _ in range(REPEATS)]
        with replacing(self._reference_file(workload)) as partial, partial.open("wb") as out:
            np.save(out, arguments[-1].numpy(), allow_pickle=False)
        return {"run_s": run_s}

    def build(self, workload: int, candidate: dict[str, Any], number: int) -> Reply:
        """Build a candidate and keep it under its number; return its trace if it consists of decisions."""
        os.sched_setaffinity(0, self.processors)
        computation = self.workloads[workload]
        try:
            if "trace" in candidate:
                schedule, trace = computation.replay(candidate["trace"]), None
            else:
                schedule = computation.apply(candidate["decisions"], self.target)
                trace = computation.trace_of(schedule)
            self.built[number] = self.compiled(computation.finish(schedule, self.target))
        except Exception as error:
            raise RequestFailed("build", last_line(error)) from error
        return {"trace": trace}

    def time(self, workload: int, number: int, best_s: float | None) -> Reply:
        """Check a candidate's output, and time it; a hopeless one gets a single sample."""
        built, arguments = self.built[number], self._load(workload)
        _overwrite(arguments[-1])
        self._warm_up(built, arguments)
        if wrong := difference(arguments[-1].numpy(), self._expected(workload), self.tolerance):
            raise RequestFailed("wrong", wrong)
        once = self.time_call(built, arguments)
        if best_s is not None and once > max(CALL_S, HOPELESS * best_s):
            return {"run_s": [once]}
        return {"run_s": self.samples(built, arguments, REPEATS)}

    def sample(self, workload: int, number: int) -> Reply:
        """Time a checked candidate once more."""
        built, arguments = self.built[number], self._load(workload)
        self._warm_up(built, arguments)
        return {"run_s": self.samples(built, arguments, 1)}

    def drop(self, numbers: list[int]) -> Reply:
        """Drop candidates that were built."""
        for number in numbers:
            self.built.pop(number, None)
        return {}

    def compiled(self, function: tirx.PrimFunc) -> tvm.runtime.Executable:
        """Return a built module with its machine code, which TVM otherwise generates at the first call."""
        built: tvm.runtime.Executable = tvm.tirx.build(
            tvm.IRModule({MAIN: function}), target=tvm_target(self.target)
        )
        self.entry(built)
        return built

    def entry(self, built: tvm.runtime.Executable) -> Callable[..., None]:
        """Return the function of a built module."""
        run: Callable[..., None] = built[MAIN]
        return run

    def time_call(self, built: tvm.runtime.Executable, arguments: Sequence[tvm.runtime.Tensor]) -> float:
        """Return the seconds of one call from Python."""
        start = time.perf_counter()
        self.entry(built)(*arguments)
        self.device.sync()
        return max(time.perf_counter() - start, 1e-9)

    def samples(
        self, built: tvm.runtime.Executable, arguments: Sequence[tvm.runtime.Tensor], count: int
    ) -> list[float]:
        """Return the seconds a call of ``count`` samples, each of many calls."""
        evaluate = built.time_evaluator(
            MAIN, self.device, number=1, repeat=count, min_repeat_ms=int(1000 * SAMPLE_S)
        )
        return [float(seconds) for seconds in evaluate(*arguments).results]

    def _load(self, workload: int) -> list[tvm.runtime.Tensor]:
        """Return a workload's arguments on the device; the last workload's stay loaded."""
        if self.loaded != workload:
            arrays = self.workloads[workload].arguments()
            self.arguments = [tvm.runtime.tensor(array, self.device) for array in arrays]
            # Either of two correct outputs may deviate.
            self.tolerance = 2 * self.workloads[workload].kernel.tolerance
            self.expected: Array | None = None
            self.loaded = workload
        return self.arguments

    def _expected(self, workload: int) -> Array:
        """Return the reference output of the loaded workload."""
        if self.expected is None:
            self.expected = np.load(self._reference_file(workload), allow_pickle=False)
        return self.expected

    def _reference_file(self, workload: int) -> Path:
        return self.folder / f"reference{workload}.npy"

    def _take_the_device(self) -> None:
        """Use the processors of programs on this device; threads of TVM's pool inherit the affinity."""
        os.sched_setaffinity(0, self.processors)  # ``prepare`` selects among these
        self.hardware.prepare()

    def _warm_up(self, built: tvm.runtime.Executable, arguments: Sequence[tvm.runtime.Tensor]) -> None:
        """Call a candidate once on the device, and pin each of its threads to a processor.

        Two threads that share a core would halve the speed and hide a good candidate.
        """
        self._take_the_device()
        self.time_call(built, arguments)
        threads = sorted(int(name) for name in os.listdir("/proc/self/task"))
        processors = sorted(os.sched_getaffinity(0))
        if self.on_processors and 1 < len(threads) == len(processors):
            for thread, processor in zip(threads, processors, strict=True):
                os.sched_setaffinity(thread, {processor})


def difference(output: Array, expected: Array, most: float) -> str | None:
    """Return how an output differs from the reference, None if it does not.

    Parameters
    ----------
    output, expected : ndarray
    most : float
        Largest accepted ``max|output - expected| / max|expected|``; integers may differ
        by one, since halves may be rounded either way.
    """
    if not np.issubdtype(expected.dtype, np.floating):
        gap = int(np.abs(output.astype(np.int64) - expected.astype(np.int64)).max())
        return f"off by {gap}" if gap > 1 else None
    defined = ~np.isnan(expected)
    if (np.isnan(output) == defined).any():
        return "numbers that are none, or elements that were never written"
    gap = np.abs(output - expected, where=defined, out=np.zeros_like(expected)).max(initial=0)
    largest = np.abs(expected[defined]).max(initial=0) or 1.0
    relative = float(gap) / float(largest)
    return None if relative <= most else f"off by {relative:.2g} of the largest output"


def _overwrite(output: tvm.runtime.Tensor) -> None:
    """Overwrite an earlier output, so that a candidate that writes nothing fails the check."""
    array = output.numpy()
    array.fill(np.nan if np.issubdtype(array.dtype, np.floating) else np.iinfo(array.dtype).max)
    output.copyfrom(array)
