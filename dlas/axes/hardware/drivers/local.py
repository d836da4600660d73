"""The processors of this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from dlas.axes.hardware.clock_options import ClocksHere
from dlas.axes.hardware.profile import Profile
from dlas.bench.measuring import sampling
from dlas.bench.measuring.machine import Machine, use_threads
from dlas.errors import InputError
from dlas.stack import Images, MeasureSettings, Program, Target, TrainingStep

HIDEABLE = re.compile(r"avx2?|avx512\w*|avxvnni\w*|fma|f16c")
"""Features that LLVM assumes of a processor by its name, and that a hypervisor may hide."""


@dataclass(frozen=True)
class Local(ClocksHere):
    """The processors of this machine, detected."""

    profile: Profile
    threads: Annotated[int, Field(ge=1)] | None = None
    """Worker threads, each on a physical core of its own. By default one for each core that this process may
    use, by its affinity and its control group.
    """
    machine: ClassVar[Machine] = Machine()

    def verify(self) -> None:
        """Refuse more threads than cores: they would share cores, and times would be meaningless.

        Raises
        ------
        InputError
            Quotes both numbers; or a clock is no step of the device.
        """
        most = self.machine.most_threads()
        if self.threads is not None and self.threads > most:
            raise InputError(
                f"threads = {self.threads}, but this process may use {most} physical "
                f"core{'s' if most > 1 else ''} here"
            )
        super().verify()

    @property
    def device(self) -> str:
        """One lock for all profiles of this machine: they share its processors."""
        return "local"

    def unsupported(self) -> str | None:
        """Return the profile's reason, that its target is not a processor, or that it lacks a clock."""
        kind = self.profile.target.get("kind", "llvm")
        if self.profile.unsupported or kind == "llvm":
            return self.profile.unsupported or self.clocks_unsupported()
        return f"its target is {kind}, and driver = 'local' runs programs on processors only"

    def target(self) -> Target:
        """Return LLVM's name for this processor, the extensions it lacks, and the threads."""
        threads = self.threads or self.machine.most_threads()
        description = self.profile.target or self._detected()
        return Target({**description, "num-cores": threads}, threads)

    def describe(self) -> dict[str, Any]:
        """Return the detected machine, the profile's facts and the number of threads."""
        threads = self.threads or self.machine.most_threads()
        return {
            "name": self.profile.name,
            "threads": threads,
            **self.machine.describe(),
            **self.profile.facts,
        }

    def prepare(self) -> None:
        """Bind this process to one logical processor of each core it uses, and fix every pool's threads.

        Raises
        ------
        OSError
            If the kernel refuses the affinity.
        """
        threads = self.threads or self.machine.most_threads()
        use_threads(threads)
        os.sched_setaffinity(0, self.processors())

    def processors(self) -> list[int]:
        """Return one logical processor of each core in use."""
        threads = self.threads or self.machine.most_threads()
        return [core[0] for core in self.machine.cores()[:threads]]

    def measure(
        self, program: Program, images: Images, settings: MeasureSettings, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Return what ``dlas.bench.measuring.sampling.sample`` returns for one inference on ``images``."""
        return sampling.sample(program.bind(images), settings, turn)

    def measure_training(
        self, step: TrainingStep, settings: MeasureSettings, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Return what :func:`dlas.bench.measuring.sampling.sample` returns for one training step."""
        return sampling.sample(step.step, settings, turn)

    def _detected(self) -> dict[str, Any]:
        """Return LLVM's name of this processor, without features that a hypervisor hides."""
        from tvm.target import Target as TvmTarget
        from tvm.target import codegen

        mcpu = codegen.llvm_get_system_cpu()
        present = {flag.replace("_", "") for flag in self.machine.flags()}
        description: dict[str, Any] = {"kind": "llvm", "mcpu": mcpu}
        if "avx" in present:
            expected = {str(name) for name in codegen.llvm_get_cpu_features(TvmTarget(description))}
            hidden = sorted(name for name in expected - present if HIDEABLE.fullmatch(name))
            if hidden:
                description["mattr"] = [f"-{name}" for name in hidden]
        return description
