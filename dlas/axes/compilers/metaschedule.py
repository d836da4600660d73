"""TVM's auto-scheduler: schedules of convolutions and linear layers are searched on the device itself.

MetaSchedule succeeds Ansor, which TVM has removed.  Ansor's terms in MetaSchedule:
a task is a workload, sketches with annotations are the design space, a measurement
trial is a trial, and the log of records is the database, here the cache's folder
of records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from tvm import tirx

from dlas.axes.compilers.programs.tvm import KernelScheduler, TvmCompiler
from dlas.lowering.graph.graph import OPAQUE
from dlas.lowering.kernels.kernel import Kernel
from dlas.lowering.lower import lower
from dlas.lowering.tuning.selection import curve
from dlas.lowering.tuning.tuner import SearchSettings, TuningResult, tune
from dlas.lowering.tuning.workload import Workload
from dlas.stack import Algorithm, Bench, Network, ScheduleChoice, Target, TuningCompiler

SELECTED = "tuning.json"
"""The schedules that :meth:`MetaSchedule.tune` selected, for :meth:`MetaSchedule.scheduler`."""
PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"trials": 4},
    "quick": {"trials": 32},
    "paper": {"trials": 20_000, "shared": True, "early_stop": 1_000},
}
"""How long to search; ``paper`` is the whole network's search of DLAS, section 4.4."""


@dataclass(frozen=True)
class MetaSchedule(TvmCompiler, TuningCompiler):
    """Compile with TVM, convolutions and linear layers with the fastest schedules that a search found.

    All other operators have the schedules of ``untuned``.

    References
    ----------
    DLAS paper, sections 3.5 and 4.4.
    """

    preset: Literal["quick", "smoke", "paper"] = "quick"
    """32 or 4 trials for each workload; or 20,000 for the whole network, shared in proportion to time, with
    an early stop after 1,000 trials without improvement.
    """
    trials: Annotated[int, Field(ge=1)] | None = None
    """For each workload, instead of the preset's."""
    early_stop: Annotated[int, Field(ge=0)] | None = None
    """End a workload's search after this many trials without improvement, instead of the preset's; 0 for
    never.
    """
    per_round: Annotated[int, Field(ge=1)] = 16
    """Candidates that are proposed together; searches with different rounds share no records."""
    space: Literal["algorithm", "rules"] = "algorithm"
    """The kernel's own design space, TVM's default rules where it has none; or always the rules."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Of the search."""

    def settings(self) -> SearchSettings:
        """Return the preset's settings, replaced where an option is given."""
        settings = dict(PRESETS[self.preset])
        if self.trials is not None:
            settings |= {"trials": self.trials, "shared": False}
        if self.early_stop is not None:
            settings["early_stop"] = self.early_stop
        return SearchSettings(self.space, per_round=self.per_round, seed=self.seed, **settings)

    def tune(
        self, network: Network, algorithm: Algorithm, batch: int, bench: Bench, folder: Path
    ) -> dict[str, Any]:
        """Search for the schedule of every kernel; write those selected into ``folder``."""
        kernels = lower(network, algorithm, batch, bench.hardware.target()).kernels.values()
        tuned = tune(kernels, self.settings(), bench)
        selected = [_entry(kernel, result) for result in tuned for kernel in result.task.kernels]
        (folder / SELECTED).write_text(json.dumps(selected))
        return {
            "trials": sum(result.count for result in tuned),
            "valid": sum(result.summary()["valid_trials"] for result in tuned),
            "seconds": sum(result.seconds for result in tuned),
            "curves": [_curve(result) for result in tuned],
        }

    def scheduler(self, folder: Path) -> KernelScheduler:
        """Return the schedules that :meth:`tune` wrote into ``folder``."""
        selected = {entry["kernel"]: entry for entry in json.loads((folder / SELECTED).read_text())}

        def scheduled(kernel: Kernel, target: Target) -> tuple[tirx.PrimFunc, ScheduleChoice]:
            entry = selected[kernel.name]
            return apply_trace(kernel, target, entry), entry["summary"]

        return scheduled


def apply_trace(kernel: Kernel, target: Target, entry: Mapping[str, Any]) -> tirx.PrimFunc:
    """Return a kernel's PrimFunc with the schedule that was selected for it.

    Parameters
    ----------
    entry : mapping
        The ``trace`` of the schedule, and the digest of its ``workload``.

    Raises
    ------
    ValueError
        If it schedules another computation.
    """
    workload = Workload.of(kernel)
    if workload.digest != entry["workload"]:
        raise ValueError(f"{kernel.name} is not the kernel that was tuned")
    function = workload.finish(workload.replay(entry["trace"]), target)
    return function.with_attr("global_symbol", kernel.name).with_attr("op_pattern", OPAQUE)


def _entry(kernel: Kernel, tuned: TuningResult) -> dict[str, Any]:
    """Return a kernel's entry for :meth:`MetaSchedule.scheduler`."""
    return {
        "kernel": kernel.name,
        "workload": tuned.task.workload.digest,
        "trace": tuned.trace,
        "summary": tuned.summary(),
    }


def _curve(tuned: TuningResult) -> dict[str, Any]:
    baseline = tuned.records.baseline
    return {
        "layers": tuned.task.layers,
        "space": tuned.task.space,
        "trials": tuned.count,
        "minimal_s": min(baseline.run_s) if baseline else None,
        "best": curve(tuned.trials),
    }
