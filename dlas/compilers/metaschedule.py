"""TVM's auto-scheduler: every convolution's schedule is searched on the device itself.

MetaSchedule succeeds Ansor in TVM, and is the only one left.  Ansor's words and
MetaSchedule's: a task is a workload, sketches with their annotations are the
design space, a measurement trial is a trial, and the log of records is the
database, which here is the cache's folder of records.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dlas.compilers.programs.tvm import TvmCompiler, noted, write_program
from dlas.lowering.kernels import Kernel
from dlas.lowering.lower import lower, schedule
from dlas.lowering.simplify import OPAQUE
from dlas.stack import Algorithm, Bench, Build, Network, Target, TuningCompiler
from dlas.tuning.choosing import curve, first
from dlas.tuning.tuner import Settings, Tuned, tune
from dlas.tuning.workload import Workload

CHOSEN = "tuning.json"
"""What :meth:`MetaSchedule.tune` leaves for :meth:`MetaSchedule.compile`."""
PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"trials": 4},
    "quick": {"trials": 32},
    "paper": {"trials": 20_000, "shared": True, "early_stop": 1_000},
}
"""How long to search; ``paper`` is the whole network's search of DLAS, section 4.4."""


@dataclass(frozen=True)
class MetaSchedule(TvmCompiler, TuningCompiler):
    """Compile with TVM, each convolution with the fastest schedule that a search found.

    Every other operator has the schedule that it has in ``untuned``.

    Parameters
    ----------
    preset : {"quick", "smoke", "paper"}
        32 or 4 trials for each workload; or 20,000 for the whole network, shared by
        the weight in its time, ended for a workload after 1,000 without a better one.
    trials : int, optional
        For each workload, instead of the preset's.
    early_stop : int, optional
        Trials without a better one that end a workload's search, instead of the preset's; 0 for never.
    per_round : int
        Candidates that are proposed together; searches with different rounds share no records.
    space : {"algorithm", "rules"}
        The algorithm's own design space, TVM's default rules where it has none; or always the rules.
    seed : int
        Of the search.

    References
    ----------
    DLAS paper, sections 3.5 and 4.4.
    """

    preset: Literal["quick", "smoke", "paper"] = "quick"
    trials: Annotated[int, Field(ge=1)] | None = None
    early_stop: Annotated[int, Field(ge=0)] | None = None
    per_round: Annotated[int, Field(ge=1)] = 16
    space: Literal["algorithm", "rules"] = "algorithm"
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0

    def settings(self) -> Settings:
        """Return the preset with what was given instead of it."""
        given = {"trials": self.trials, "early_stop": self.early_stop}
        chosen = PRESETS[self.preset] | {name: value for name, value in given.items() if value is not None}
        if self.trials is not None:
            chosen["shared"] = False
        return Settings(self.space, per_round=self.per_round, seed=self.seed, **chosen)

    def tune(
        self, network: Network, algorithm: Algorithm | None, batch: int, bench: Bench, folder: Path
    ) -> dict[str, Any]:
        """Search for every convolution's schedule; write those chosen into ``folder``."""
        assert algorithm is not None  # it has no kernels of its own
        found = tune(lower(network, algorithm, batch).kernels.values(), self.settings(), bench)
        chosen = [
            {"kernel": kernel.name, "workload": each.task.workload.digest, "trace": each.trace,
             "told": each.summary()}
            for each in found for kernel in each.task.kernels
        ]  # fmt: skip
        (folder / CHOSEN).write_text(json.dumps(chosen))
        return {
            "trials": sum(each.count for each in found),
            "valid": sum(each.summary()["valid_trials"] for each in found),
            "seconds": sum(each.seconds for each in found),
            "curves": [_curve(each) for each in found],
        }

    def compile(
        self, network: Network, algorithm: Algorithm | None, target: Target, batch: int, folder: Path
    ) -> Build:
        """Write the library, with the schedules that lie in ``folder``, and its parameters."""
        assert algorithm is not None
        lowered = lower(network, algorithm, batch)
        chosen = {each["kernel"]: each for each in json.loads((folder / CHOSEN).read_text())}

        def scheduled(kernel: Kernel, target: Target) -> Any:
            return follow(kernel, target, chosen[kernel.name])

        build = write_program(lowered, schedule(lowered, target, scheduled), target, folder)
        build.layers = noted(lowered, {name: each["told"] for name, each in chosen.items()})
        return build


def follow(kernel: Kernel, target: Target, chosen: dict[str, Any]) -> Any:
    """Return a kernel's PrimFunc with the schedule that was chosen for it.

    Raises
    ------
    ValueError
        If it was chosen for another computation.
    """
    workload = Workload.of(kernel)
    if workload.digest != chosen["workload"]:
        raise ValueError(f"{kernel.name} is not the kernel that was tuned")
    function = workload.finish(workload.replay(chosen["trace"]), target)
    return function.with_attr("global_symbol", kernel.name).with_attr("op_pattern", OPAQUE)


def _curve(found: Tuned) -> dict[str, Any]:
    baseline = found.records.baseline
    return {
        "layers": found.task.layers,
        "space": found.task.space,
        "trials": found.count,
        "minimal_s": min(baseline.run_s) if baseline else None,
        "best": curve(first(found.records, found.count)),
    }
