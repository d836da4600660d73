"""A driver: this machine under a name and with facts that are the same everywhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dlas.measuring.machine import use_threads

from dlas.stack import Hardware, Images, MeasureSettings, Program, Target


@dataclass(frozen=True)
class Steady(Hardware):
    """Times programs in one slice, and takes no time for disturbed."""

    @property
    def device(self) -> str:
        """The name of its lock."""
        return "steady"

    def target(self) -> Target:
        """Return a processor with AVX2."""
        return Target({"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 1}, 1)

    def describe(self) -> dict[str, Any]:
        """Return made-up facts."""
        return {"name": "steady", "cpu": "Imaginary 9000", "physical_cores": 1, "threads": 1}

    def prepare(self) -> None:
        """Use one thread."""
        use_threads(1)

    def measure(
        self, program: Program, images: Images, settings: MeasureSettings, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Return the seconds of each run."""
        run = program.bind(images)
        turn()
        seconds = []
        for _ in range(settings.repeats + 1):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
        first, *samples = seconds
        return {"latency_s": samples, "first_run_s": first, "bound": "repeats", "noisy": False}
