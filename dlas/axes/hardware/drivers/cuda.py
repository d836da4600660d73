"""A GPU of this machine that runs CUDA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from dlas.axes.hardware.clock_options import ClocksHere
from dlas.axes.hardware.profile import Profile
from dlas.bench.measuring import cuda_toolkit, sampling
from dlas.bench.measuring.gpu import NoGpu, first_gpu
from dlas.bench.measuring.machine import Machine, use_threads
from dlas.bench.measuring.observers.watch import Watch
from dlas.bench.measuring.sampling import Instruments
from dlas.stack import Images, MeasureSettings, Program, Target, TrainingStep

HOST_THREADS = 1
"""Threads of the processors: one starts the kernels, and every kernel runs on the GPU."""
ANY = {"kind": "cuda", "arch": "sm_75"}
"""The target where there is no GPU to ask: nothing is built for it."""


@dataclass(frozen=True)
class Cuda(ClocksHere):
    """The first GPU that CUDA_VISIBLE_DEVICES shows, detected.

    Times are those between two events on the GPU.  Images are copied to it before, and
    outputs stay there, so copies count to no time.
    """

    profile: Profile
    machine: ClassVar[Machine] = Machine()
    on_gpu: ClassVar[bool] = True

    @property
    def device(self) -> str:
        """The lock of this machine's processors, which start the kernels."""
        return "local"

    def unsupported(self) -> str | None:
        """Return the profile's reason, why there is no GPU, or what it or its programs lack."""
        if self.profile.unsupported:
            return self.profile.unsupported
        gpu = first_gpu()
        if isinstance(gpu, NoGpu):
            return str(gpu)
        return cuda_toolkit.unusable(gpu) or self.clocks_unsupported()

    def processors(self) -> tuple[int, ...]:
        """Return those that this process may run on: one of them starts the kernels."""
        return self.machine.allowed()

    def target(self) -> Target:
        """Return the GPU's architecture and limits; what the profile's target says goes before."""
        gpu = first_gpu()
        detected = ANY if isinstance(gpu, NoGpu) else gpu.target()
        return Target({"host": {"kind": "llvm"}, **detected, **self.profile.target}, HOST_THREADS)

    def describe(self) -> dict[str, Any]:
        """Return the GPU, the machine around it, and the profile's facts."""
        gpu = first_gpu()
        return {
            "name": self.profile.name,
            "threads": HOST_THREADS,
            **self.machine.describe(),
            **({} if isinstance(gpu, NoGpu) else gpu.describe()),
            **self.profile.facts,
        }

    def prepare(self) -> None:
        """Fix the threads of the processors' libraries, and load TVM's runtime for CUDA.

        Raises
        ------
        Unsupported
            If it does not load.
        """
        use_threads(HOST_THREADS)
        cuda_toolkit.point_tvm_to_compiler()
        cuda_toolkit.load_runtime()

    def measure(
        self, program: Program, images: Images, settings: MeasureSettings, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Return what ``dlas.bench.measuring.sampling.sample`` returns, timed by events if the program can.

        Raises
        ------
        Unsupported
            If there is no GPU.
        """
        self.check_usable()
        run, timer = program.bind(images), program.timer(images)
        return sampling.sample(run, settings, turn, _instruments(), timer)

    def measure_training(
        self, step: TrainingStep, settings: MeasureSettings, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Return what ``sampling.sample`` returns for one step, which waits for the GPU.

        Raises
        ------
        Unsupported
            If there is no GPU.
        """
        self.check_usable()
        return sampling.sample(step.step, settings, turn, _instruments())


def _instruments() -> Instruments:
    """Return observers of this machine and not of what its processors use: the program runs on the GPU."""
    return Instruments(watch=Watch.here(on_gpu=True))
