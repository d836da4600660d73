"""What drivers of engines of WebAssembly have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dlas.axes.hardware.profile import Profile
from dlas.bench.engines.process import EngineFailed
from dlas.bench.measuring import sampling
from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.observers.watch import Watch
from dlas.bench.measuring.sampling import Instruments
from dlas.errors import PointError
from dlas.lowering.webassembly.linking import MISSING as NO_LINKER
from dlas.lowering.webassembly.linking import linker
from dlas.stack import Backend, Images, MeasureSettings, Network, Program, Target
from dlas.stack.compiler import NO_WEBASSEMBLY
from dlas.stack.engine import Engine
from dlas.stack.hardware import EngineHardware, machine_name

FEATURES = ("+simd128", "+bulk-memory", "+nontrapping-fptoint", "+sign-ext")
"""What every engine has that has vectors at all."""
RELAXED = "+relaxed-simd"
"""Multiply-adds that round once or twice, as the processor does it fastest."""
TARGET = {
    "kind": "llvm",
    "mtriple": "wasm32-unknown-unknown",
    "mcpu": "generic",
    "vector-width": 128,
    # Else LLVM makes multiply-adds of vectors of 128 bits alone, and not of longer ones that it divides.
    "fast-math-contract": True,
    "num-cores": 1,
}


@dataclass(frozen=True)
class WebAssemblyEngine(EngineHardware):
    """An engine of WebAssembly on this machine, one thread of it."""

    profile: Profile
    relaxed_simd: bool = True
    """Whether multiply-adds round once where the processor does that fastest (relaxed SIMD). Without it,
    products are rounded before they are added, and modules run in older engines too.
    """
    machine: ClassVar[Machine] = Machine()
    engine: ClassVar[type[Engine]]
    apart: ClassVar[bool] = True
    """Whether the engine is a process of its own."""

    @abstractmethod
    def start(self) -> Engine:
        """Return an engine with nothing loaded.

        Raises
        ------
        EngineFailed, OSError
            If it does not start.
        """

    @property
    def device(self) -> str:
        """The lock of this machine's processors."""
        return "local"

    @property
    def in_process(self) -> bool:
        """False for an engine that is a process of its own."""
        return not self.apart

    def unsupported(self) -> str | None:
        """Return the profile's reason, why there is no engine, or that nothing links modules for it."""
        return self.profile.unsupported or self.engine.missing() or (None if linker() else NO_LINKER)

    def describe(self) -> dict[str, Any]:
        """Return the engine, the machine that it runs on, and the profile's facts."""
        return {
            "name": self.profile.name,
            "threads": 1,
            **self.machine.describe(),
            **({} if self.engine.missing() else self.engine.describe()),
            **self.profile.facts,
        }

    def refuses(self, compiler: type[Backend]) -> str | None:
        """Refuse runtimes, which are no WebAssembly."""
        return None if compiler.over_rpc else NO_WEBASSEMBLY

    def target(self) -> Target:
        """Return a target of 32-bit WebAssembly with vectors."""
        features = [*FEATURES, RELAXED] if self.relaxed_simd else list(FEATURES)
        return Target({**TARGET, "mattr": features}, 1)

    def recorded_as(self) -> dict[str, Any]:
        """Return the processor and the engine with its version: another one compiles otherwise."""
        told = self.describe()
        return {"machine": machine_name(told), "engine": told.get("engine")}

    def load(self, compiler: Backend, folder: Path, network: Callable[[], Network]) -> Program:
        """Load a build into an engine of its own, which ends with this process.

        Raises
        ------
        Unsupported
            If the compiler's programs are no WebAssembly, or the engine refuses them.
        """
        return compiler.load_in_engine(folder, self.started())

    def started(self) -> Engine:
        """Return an engine, or say why there is none or why it does not start."""
        self.check_usable()
        try:
            return self.start()
        except (EngineFailed, OSError) as error:
            raise PointError(f"{self.profile.name} does not start: {error}") from None

    def measure(
        self, program: Program, images: Images, settings: MeasureSettings, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Return what ``dlas.bench.measuring.sampling.sample`` returns, timed by the engine's clock.

        Raises
        ------
        Unsupported
            If there is no engine, or its clock is too coarse.
        """
        self.check_usable()
        watch = Watch.here(machine=self.machine, in_children=self.apart)
        run, timer = program.bind(images), program.timer(images)
        return sampling.sample(run, settings, turn, Instruments(watch=watch), timer)
