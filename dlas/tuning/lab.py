"""What a worker does with candidates: build them, check their answers, time them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tvm

from dlas.lowering.kernels import schedule_kernel
from dlas.lowering.target import tvm_target
from dlas.processes.workers import Failed, Reply, Verbs, words
from dlas.stack import Array, Hardware
from dlas.tuning.workload import MAIN, Workload

REPEATS = 3
SAMPLE_S = 0.02
"""Samples of a candidate, and the shortest: more or longer ones did not order candidates better."""
HOPELESS = 3.0
"""A candidate this many times slower than the best so far is not timed any closer."""
CALL_S = 1e-3
"""A call from here that takes less says little about the kernel."""


class Lab:
    """Builds candidates for some workloads, and times them on a device of this machine.

    Parameters
    ----------
    workloads : sequence of Workload
    hardware : Hardware
    folder : Path
        Where the right answers are exchanged.
    """

    def __init__(self, workloads: Sequence[Workload], hardware: Hardware, folder: Path) -> None:
        self.workloads, self.hardware, self.folder = workloads, hardware, folder
        self.target = hardware.target()
        kind = self.target.kind
        self.on_processors = kind == "llvm"
        self.device = tvm.device("cpu" if self.on_processors else kind)
        self.processors = os.sched_getaffinity(0)
        self.built: dict[int, Any] = {}
        self.loaded = -1

    def verbs(self) -> Verbs:
        """Return what others may ask for."""
        return {
            "answer": self.answer,
            "build": self.build,
            "time": self.time,
            "sample": self.sample,
            "drop": self.drop,
        }

    def answer(self, workload: int) -> Reply:
        """Compute the right answer with the minimal schedule, for all workers, and time that."""
        each = self.workloads[workload]
        minimal = schedule_kernel(each.kernel, self.target).with_attr("global_symbol", MAIN)
        built = self._compiled(minimal)
        arguments = self._load(workload)
        self._take_the_device()
        run_s = [self._once(built, arguments)]
        if run_s[0] < SAMPLE_S:
            run_s = [self._once(built, arguments) for _ in range(REPEATS)]
        answer = self._answer_file(workload)
        aside = answer.with_suffix(f".{os.getpid()}")
        with aside.open("wb") as out:
            np.save(out, arguments[-1].numpy(), allow_pickle=False)
        aside.replace(answer)
        return {"run_s": run_s}

    def build(self, workload: int, candidate: dict[str, Any], number: int) -> Reply:
        """Build a candidate and keep it under its number; return its trace where it was none itself."""
        os.sched_setaffinity(0, self.processors)
        each = self.workloads[workload]
        try:
            if "trace" in candidate:
                schedule, trace = each.replay(candidate["trace"]), None
            else:
                schedule = each.apply(candidate["decisions"], self.target)
                trace = each.trace_of(schedule)
            self.built[number] = self._compiled(each.finish(schedule, self.target))
        except Exception as error:
            raise Failed("build", words(error)) from error
        return {"trace": trace}

    def time(self, workload: int, number: int, best_s: float | None) -> Reply:
        """Check a candidate's answer, and time it; one that is hopeless gets a single sample."""
        built, arguments = self.built[number], self._load(workload)
        _forget(arguments[-1])
        self._warm_up(built, arguments)
        if wrong := difference(arguments[-1].numpy(), self._expected(workload), self.tolerance):
            raise Failed("wrong", wrong)
        once = self._once(built, arguments)
        if best_s is not None and once > max(CALL_S, HOPELESS * best_s):
            return {"run_s": [once]}
        return {"run_s": self._samples(built, arguments, REPEATS)}

    def sample(self, workload: int, number: int) -> Reply:
        """Time a candidate that was found right once more."""
        built, arguments = self.built[number], self._load(workload)
        self._warm_up(built, arguments)
        return {"run_s": self._samples(built, arguments, 1)}

    def drop(self, numbers: list[int]) -> Reply:
        """Forget candidates that were built."""
        for number in numbers:
            self.built.pop(number, None)
        return {}

    def _compiled(self, function: Any) -> Any:
        """Return a built module down to its machine code, which would otherwise be left to the first call."""
        built = tvm.tirx.build(tvm.IRModule({MAIN: function}), target=tvm_target(self.target))
        self._entry(built)
        return built

    def _entry(self, built: Any) -> Any:
        return built[MAIN]

    def _load(self, workload: int) -> list[Any]:
        """Return a workload's arguments on the device; those of one workload are kept."""
        if self.loaded != workload:
            arrays = self.workloads[workload].arguments()
            self.arguments = [tvm.runtime.tensor(array, self.device) for array in arrays]
            self.tolerance = tolerance(self.workloads[workload])
            self.expected: Array | None = None
            self.loaded = workload
        return self.arguments

    def _expected(self, workload: int) -> Array:
        """Return the right answer of the workload that is loaded."""
        if self.expected is None:
            self.expected = np.load(self._answer_file(workload), allow_pickle=False)
        return self.expected

    def _answer_file(self, workload: int) -> Path:
        return self.folder / f"answer{workload}.npy"

    def _once(self, built: Any, arguments: list[Any]) -> float:
        """Return the seconds of one call."""
        start = time.perf_counter()
        self._entry(built)(*arguments)
        self.device.sync()
        return max(time.perf_counter() - start, 1e-9)

    def _samples(self, built: Any, arguments: list[Any], count: int) -> list[float]:
        evaluate = built.time_evaluator(
            MAIN, self.device, number=1, repeat=count, min_repeat_ms=int(1000 * SAMPLE_S)
        )
        return [float(seconds) for seconds in evaluate(*arguments).results]

    def _take_the_device(self) -> None:
        """Run as a program on this device would: threads of TVM's pool inherit it when they start."""
        os.sched_setaffinity(0, self.processors)  # what the device may use is read from what there is
        self.hardware.prepare()

    def _warm_up(self, built: Any, arguments: list[Any]) -> None:
        """Call a candidate once on the device, and keep its threads apart from then on.

        Two threads on one core, as happens, halve the speed and would hide a good candidate.
        """
        self._take_the_device()
        self._once(built, arguments)
        threads = sorted(int(name) for name in os.listdir("/proc/self/task"))
        processors = sorted(os.sched_getaffinity(0))
        if self.on_processors and 1 < len(threads) == len(processors):
            for thread, processor in zip(threads, processors, strict=True):
                os.sched_setaffinity(thread, {processor})


def difference(found: Array, expected: Array, most: float) -> str | None:
    """Return how an answer differs from the right one, or None where it does not.

    Parameters
    ----------
    found, expected : ndarray
    most : float
        Largest accepted ``max|found - expected| / max|expected|``; integers may be
        one apart, as where two roundings of a half differ.
    """
    if not np.issubdtype(expected.dtype, np.floating):
        apart = int(np.abs(found.astype(np.int64) - expected.astype(np.int64)).max())
        return f"off by {apart}" if apart > 1 else None
    there = ~np.isnan(expected)
    if (np.isnan(found) == there).any():
        return "numbers that are none, or elements that were never written"
    apart = np.abs(found - expected, where=there, out=np.zeros_like(expected)).max(initial=0)
    largest = np.abs(expected[there]).max(initial=0) or 1.0
    relative = float(apart) / float(largest)
    return None if relative <= most else f"off by {relative:.2g} of the largest output"


def tolerance(workload: Workload) -> float:
    """Return how far two right answers may be apart: each is off by the algorithm's own tolerance."""
    conv = workload.kernel.conv
    types = [np.dtype(name) for name in (conv.accumulator_type, conv.output_type)]
    floating = [np.finfo(each).eps for each in types if np.issubdtype(each, np.floating)]
    coarser = max(floating, default=0.0) / np.finfo(np.float32).eps
    return float(2 * workload.kernel.algorithm.tolerance * coarser)


def _forget(output: Any) -> None:
    """Overwrite an answer, so that a candidate that writes nothing is not taken for a right one."""
    array = output.numpy()
    array.fill(np.nan if np.issubdtype(array.dtype, np.floating) else np.iinfo(array.dtype).max)
    output.copyfrom(array)
