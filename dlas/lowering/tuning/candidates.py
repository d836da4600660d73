"""Candidates in a worker: schedule them, check their outputs, time them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import tirx

from dlas.bench.processes.workers import Handlers, Reply, RequestFailed
from dlas.bench.store.replacing import replacing
from dlas.lowering.kernels.kernel import schedule_kernel
from dlas.lowering.machine_code import build_functions
from dlas.lowering.tuning.workload import MAIN, Workload
from dlas.stack import Array, Target

REPEATS = 3
SAMPLE_S = 0.02
"""Shortest sample; more or longer samples did not rank candidates better."""
HOPELESS = 3.0
"""A candidate this many times slower than the best so far gets a single sample."""
CALL_S = 1e-3
"""Python's overhead dominates single calls shorter than this."""


def scheduled(
    workload: Workload, candidate: Mapping[str, Any], target: Target
) -> tuple[tirx.PrimFunc, list[Any] | None]:
    """Return a candidate's PrimFunc, and its trace if the candidate consists of decisions."""
    if "trace" in candidate:
        schedule, trace = workload.replay(candidate["trace"]), None
    else:
        schedule = workload.apply(candidate["decisions"], target)
        trace = workload.trace_of(schedule)
    return workload.finish(schedule, target), trace


def minimal(workload: Workload, target: Target) -> tirx.PrimFunc:
    """Return a workload's PrimFunc with the minimal schedule, whose output is the reference."""
    return schedule_kernel(workload.kernel, target).with_attr("global_symbol", MAIN)


def compiled(function: tirx.PrimFunc, target: Target) -> tvm.runtime.Executable:
    """Return a scheduled PrimFunc as a built module."""
    return build_functions(tvm.IRModule({MAIN: function}), target)


class CandidateRunner(ABC):
    """Checks and times the candidates of some workloads on a device.

    Parameters
    ----------
    workloads : sequence of Workload
    target : Target
        Of the device.
    folder : Path
        Where workers share the reference outputs.
    device : tvm.runtime.Device, optional
        Where arguments lie; may be set later.
    """

    def __init__(
        self,
        workloads: Sequence[Workload],
        target: Target,
        folder: Path,
        device: tvm.runtime.Device | None = None,
    ) -> None:
        self.workloads, self.target, self.folder, self.device = workloads, target, folder, device
        self.loaded = -1
        self.arguments: list[tvm.runtime.Tensor] = []
        self.blank: tvm.runtime.Tensor | None = None
        self.expected: Any = None
        """The reference output, an array or on the device, once it has been read."""

    @abstractmethod
    def handlers(self) -> Handlers:
        """Return the handlers of messages."""

    @abstractmethod
    def minimal(self, workload: int) -> Any:
        """Return the built module of a workload's minimal schedule."""

    @abstractmethod
    def module(self, number: int) -> Any:
        """Return the built module of a candidate."""

    @abstractmethod
    def prepare_device(self) -> None:
        """Choose the processors that a kernel is about to use."""

    @abstractmethod
    def warm_up(self, module: Any) -> None:
        """Call a built module once on the device, each of its threads on a processor of its own."""

    @abstractmethod
    def wrong(self, workload: int) -> str | None:
        """Return how the output deviates from the reference, None if it does not."""

    @abstractmethod
    def time_call(self, module: Any) -> float:
        """Return the seconds of one call."""

    def reference(self, workload: int) -> Reply:
        """Compute the reference output for all workers with the minimal schedule, and time it."""
        module = self.minimal(workload)
        self.load(workload)
        self.prepare_device()
        run_s = [self.time_call(module)]
        if run_s[0] < SAMPLE_S:
            run_s = [self.time_call(module) for _ in range(REPEATS)]
        with replacing(self.reference_file(workload)) as partial, partial.open("wb") as out:
            np.save(out, self.output(), allow_pickle=False)
        self.expected = None  # of an earlier search that was killed
        return {"run_s": run_s}

    def time(self, workload: int, number: int, best_s: float | None) -> Reply:
        """Check a candidate's output, and time it; a hopeless one gets a single sample."""
        module = self.module(number)
        self.load(workload)
        # A candidate that writes nothing must not pass with an earlier one's output.
        self.clear()
        self.warm_up(module)
        if wrong := self.wrong(workload):
            raise RequestFailed("wrong", wrong)
        once = self.time_call(module)
        if best_s is not None and once > max(CALL_S, HOPELESS * best_s):
            return {"run_s": [once]}
        return {"run_s": self.samples(module, REPEATS)}

    def sample(self, workload: int, number: int) -> Reply:
        """Time a checked candidate once more."""
        module = self.module(number)
        self.load(workload)
        self.warm_up(module)
        return {"run_s": self.samples(module, 1)}

    def samples(self, module: Any, count: int) -> list[float]:
        """Return the seconds a call of ``count`` samples, each of many calls."""
        evaluate = module.time_evaluator(
            MAIN, self.device, number=1, repeat=count, min_repeat_ms=int(1000 * SAMPLE_S)
        )
        return [float(seconds) for seconds in evaluate(*self.arguments).results]

    def output(self) -> Array:
        """Return a copy of the output."""
        array: Array = self.arguments[-1].numpy()
        return array

    def clear(self) -> None:
        """Overwrite the output with what no kernel computes."""
        assert self.blank is not None
        self.blank.copyto(self.arguments[-1])

    def load(self, workload: int) -> None:
        """Copy a workload's arguments to the device; the last workload's stay there."""
        if self.loaded == workload:
            return
        self.forget()
        arrays = self.workloads[workload].arguments()
        self.arguments = [tvm.runtime.tensor(array, self.device) for array in arrays]
        self.blank = tvm.runtime.tensor(blank(arrays[-1]), self.device)
        # Either of two correct outputs may deviate.
        self.tolerance = 2 * self.workloads[workload].kernel.tolerance
        self.loaded = workload

    def forget(self) -> None:
        """Free a workload's arguments and its reference."""
        self.loaded, self.arguments, self.blank, self.expected = -1, [], None, None

    def reference_file(self, workload: int) -> Path:
        """Return where a workload's reference output is."""
        return self.folder / f"reference{workload}.npy"

    def read_reference(self, workload: int) -> Array:
        """Return a workload's reference output."""
        array: Array = np.load(self.reference_file(workload), allow_pickle=False)
        return array


def blank(output: Array) -> Array:
    """Return an output that no kernel computes."""
    array = np.empty_like(output)
    array.fill(np.nan if np.issubdtype(array.dtype, np.floating) else np.iinfo(array.dtype).max)
    return array
