"""Hardware: devices, and how programs are timed on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

from pydantic import Field

from dlas.errors import Unsupported
from dlas.stack.compiler import Backend, Program
from dlas.stack.dataset import Images
from dlas.stack.engine import Engine
from dlas.stack.layer import Layer
from dlas.stack.network import Network
from dlas.stack.part import Part
from dlas.stack.target import Target
from dlas.stack.task import TrainingStep
from dlas.stack.types import Say


@dataclass(frozen=True)
class MeasureSettings:
    """How long and how often to measure."""

    repeats: Annotated[int, Field(ge=1)] = 150
    """Samples to take."""
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    """Longest running time of slices, repeated ones included; first run and warm-up come before."""
    minimum: Annotated[int, Field(ge=1)] = 5
    """Samples to take even where ``seconds`` has passed."""
    sample_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1e-3
    """Shortest sample: fast programs are called several times a sample."""
    slices: Annotated[int, Field(ge=1)] = 5
    """Number of turns to spread the samples over."""
    across_networks: bool = False
    """Whether points of all networks on a device take turns, as many as ``turns`` in ``[limits]``: slices of
    a point are then minutes apart, and tell more of what two runs differ by.
    """
    layer_repeats: Annotated[int, Field(ge=0)] = 20
    """Runs whose layers are timed; 0 for none: layers of rows then hold no times."""
    callgrind: bool = False
    """Whether valgrind's callgrind counts the instructions of TVM's programs for processors: a run takes tens
    of seconds and repeats to the instruction, however busy the machine is.
    """
    power: bool = False
    """Whether the program is also run alone in a loop, after an idle phase, until a sensor of power has been
    read sixty times: that takes twice 3 to 7 seconds, longer with a slow sensor.
    """


class ClockReading(TypedDict):
    """A clock that a point asked for: of several controllers the one farthest from that, in Hz."""

    requested_hz: float
    """What the point asked for."""
    applied_hz: float | None
    """What the system says is set. Null where it does not tell."""
    observed_hz: float | None
    """What ran. Null where nothing tells it."""


ReadClocks = Callable[[], Mapping[str, ClockReading]]
"""Tells the clocks that are held, by name: ``cpu``, ``gpu``, ``memory``."""


class Hardware(Part, ABC):
    """A device: its description, and how programs are timed on it."""

    @property
    @abstractmethod
    def device(self) -> str:
        """The name of the lock that gives tuning and measuring exclusive use."""

    @property
    def local(self) -> bool:
        """Whether measuring needs this machine's processors to be otherwise idle."""
        return True

    @property
    def in_process(self) -> bool:
        """Whether programs run in the process that measures, whose memory is theirs."""
        return self.local

    @property
    def most_programs(self) -> int | None:
        """How many programs the device may hold at a time, so that they take turns; None for any number."""
        return None

    def unsupported(self) -> str | None:
        """Return why this device cannot be used here, or None."""
        return None

    def check_usable(self) -> None:
        """Refuse to go on with a device that cannot be used here.

        Raises
        ------
        Unsupported
            With the reason of :meth:`unsupported`.
        """
        if reason := self.unsupported():
            raise Unsupported(reason)

    def refuses(self, compiler: type[Backend]) -> str | None:
        """Return why a compiler's programs cannot run on this device, or None."""
        return None

    def recorded_as(self) -> dict[str, Any]:
        """Return what records of searches know this device by, beside its target and its threads.

        Devices with equal values share records; ``machine`` is a name for people.  By default
        that is the GPU, or the processor and its number of cores.

        Raises
        ------
        Unreachable
            If that is not known before the device answers.
        """
        return {"machine": machine_name(self.describe())}

    @abstractmethod
    def target(self) -> Target:
        """Return the target that compilers generate code for."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the device in full, as it is written into a row."""

    def prepare(self) -> None:
        """Set threads and affinity in the process that is about to run a program."""

    def hold_clocks(self, program: Program | None, say: Say) -> AbstractContextManager[ReadClocks]:
        """Return what sets the clocks that the options ask for, and puts back what was found.

        By default there are none.

        Parameters
        ----------
        program : Program or None
            What runs meanwhile, which may be on a board; None for a training step.
        say : callable
            Told what was not put back, because somebody else had changed it meanwhile, or could not be.

        Raises
        ------
        Unsupported
            When it begins, if the device has no such clocks, or refuses.
        """
        return nullcontext(dict)

    def load(self, compiler: Backend, folder: Path, network: Callable[[], Network]) -> Program:
        """Return the program that a compiler built into ``folder``, ready to run on this device.

        Parameters
        ----------
        network : callable
            Restores the network, for compilers that run the module itself.

        Raises
        ------
        Unsupported
            If the compiler's programs cannot run on this device.
        Unreachable
            If the device does not answer.
        """
        return compiler.load(folder, network, self.target())

    @abstractmethod
    def measure(
        self, program: Program, images: Images, settings: MeasureSettings, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Return raw samples and counters.

        ``turn`` blocks until this program may use the device for its next slice
        of samples; between slices the other points of the comparison use it.
        """

    def measure_training(
        self, step: TrainingStep, settings: MeasureSettings, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Return what :meth:`measure` returns, for a training step.

        Raises
        ------
        Unsupported
            If the device does not train; by default always.
        """
        raise Unsupported("this device runs inference only")


class EngineHardware(Hardware):
    """An engine of WebAssembly."""

    @abstractmethod
    def started(self) -> Engine:
        """Return an engine of its own, with nothing loaded.

        Raises
        ------
        Unsupported
            If there is none here.
        PointError
            If it does not start.
        """


class SimulatedHardware(Hardware):
    """A device that does not exist: nothing is built or run for it, and a law tells what kernels take.

    Its description has ``simulated``, so that no row of it passes for one of a real device.
    """

    @property
    def local(self) -> bool:
        """False: this machine's processors may work on other things meanwhile."""
        return False

    @abstractmethod
    def simulate(self, kernels: Sequence[Layer], settings: MeasureSettings) -> dict[str, Any]:
        """Return the fields of a row that a measurement has, and ``timed_layers``.

        Parameters
        ----------
        kernels : sequence of Layer
            What a program would run, in order; without times.
        """

    def measure(
        self, program: Program, images: Images, settings: MeasureSettings, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Refuse to run a program.

        Raises
        ------
        Unsupported
            Always.
        """
        raise Unsupported("a simulated device runs nothing")


def machine_name(device: Mapping[str, Any]) -> str | None:
    """Return the name under which searches are recorded: the GPU, or the processor and its number of cores.

    The target, which is recorded beside it, tells processors of one name apart.  Rows hold
    more of a machine, see :mod:`dlas.sweep.rows.machines`.

    Parameters
    ----------
    device : mapping
        The result of :meth:`Hardware.describe`.
    """
    if gpu := device.get("gpu"):
        return str(gpu)
    name = next((value for key in ("cpu", "title", "name") if (value := device.get(key))), None)
    cores = device.get("physical_cores")
    return f"{name} ({cores} core{'s' if cores != 1 else ''})" if name and cores else name
