"""Compilers and runtimes, the programs they build, and their reports on builds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from dlas.errors import Unsupported
from dlas.stack.algorithm import Algorithm
from dlas.stack.dataset import Images, Labels
from dlas.stack.engine import Engine
from dlas.stack.layer import Edge, Layer, Operator
from dlas.stack.network import Network
from dlas.stack.part import Part
from dlas.stack.target import Target
from dlas.stack.task import TrainingStep

if TYPE_CHECKING:
    from tvm.rpc import RPCSession

THIS_MACHINE_ONLY = "its programs run on this machine only; a board runs what TVM's compilers build"
NO_WEBASSEMBLY = "its programs are no WebAssembly; an engine runs what TVM's compilers build"


class Program(ABC):
    """A loaded build, ready to run on its device."""

    @abstractmethod
    def bind(self, images: Images) -> Callable[[], Any]:
        """Return a function that runs one inference on ``images``, already on the device."""

    @abstractmethod
    def run(self, images: Images) -> npt.NDArray[np.float32]:
        """Return the outputs [n, classes] for ``images`` [n, c, h, w]."""

    def timer(self, images: Images) -> Callable[[int], float] | None:
        """Return a function that runs ``n`` inferences on ``images`` and returns their seconds together.

        It asks the device's own clock; None, the default, where the clock of this process serves.
        """
        return None

    def layers(self, images: Images, repeats: int) -> list[Layer] | None:
        """Return the operators of a run in their order with what is known of them; None if none can be timed.

        Each has its ``name``, which no other has, and ``latency_s``, the median over ``repeats`` in
        seconds; a runtime that tells means alone may return those. A layer of the build has the
        build's name, and what is said here is added to what the build says.
        """
        return None

    def bytes_used(self) -> int | None:
        """Return the memory that it has where it runs; None, the default, if that is this process's."""
        return None

    def training(self, images: Images, labels: Labels) -> TrainingStep:
        """Return training steps on ``images`` with ``labels``; the program is theirs from then on.

        Raises
        ------
        Unsupported
            If this program, or its network, cannot be trained; by default always.
        """
        raise Unsupported("its compiler builds programs for inference only")


@dataclass
class Build:
    """A compiler's report on a build."""

    layers: list[Layer] = field(default_factory=list)
    """One for each convolution."""
    coverage: dict[str, float] | None = None
    """Shares of the ``convolutions`` and of their ``macs`` that the requested algorithm computes."""
    library_bytes: int | None = None
    """Size of the compiled code."""
    packed_bytes: int | None = None
    """Size of the weights as the build stores them; None for a runtime that packs them where it loads them.
    """
    edges: list[Edge] = field(default_factory=list)
    """The inputs of convolutions."""
    tolerance: float = 0.0
    """Largest accepted relative deviation from the network, where the program's own number types imply more
    than the network's does.
    """


class Backend(Part, ABC):
    """A choice on the compiler axis, as a study uses it: a :class:`Compiler` or a :class:`Runtime`."""

    own_kernels: ClassVar[bool]
    """True for a runtime with kernels of its own; the algorithm axis is then ``library``."""
    trains: ClassVar[bool] = False
    """Whether its programs have a training step."""
    over_rpc: ClassVar[bool] = False
    """Whether its programs run elsewhere than in this process: on a board, as :meth:`load_on_board` sends
    them, and in an engine of WebAssembly, as :meth:`load_in_engine` does.
    """
    lowers: ClassVar[bool] = False
    """Whether :meth:`kernels` takes seconds, because it compiles the network in part."""

    @abstractmethod
    def build(
        self, network: Network, algorithm: Callable[[], Algorithm], target: Target, batch: int, folder: Path
    ) -> Build:
        """Write a build for inputs [batch, c, h, w] into ``folder``.

        ``algorithm`` makes the algorithm; a runtime with kernels of its own does not call it.

        Raises
        ------
        Unsupported
            If this network, algorithm or target cannot be compiled.
        """

    @abstractmethod
    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return the program that :meth:`build` wrote into ``folder``.

        ``network`` restores the network; only a runtime that runs the module
        itself calls it, since restoring takes time.
        """

    def kernels(
        self,
        network: Callable[[], Network],
        operators: Sequence[Operator],
        algorithm: Callable[[], Algorithm],
        target: Target,
        batch: int,
    ) -> list[Layer]:
        """Return the kernels that its programs run in one inference, without times: nothing is built.

        Parameters
        ----------
        network : callable
            Restores the network; one that does not lower does not call it.
        operators : sequence of Operator
            Of the network at this batch: each a :class:`dlas.stack.NetworkOperator`.
        algorithm : callable
            Makes the algorithm; a runtime with kernels of its own does not call it.

        Raises
        ------
        Unsupported
            If they are known only once a program is built, or has run; by default always.
        """
        raise Unsupported("which kernels it runs is known only once they have run")

    def load_on_board(self, folder: Path, target: Target, session: RPCSession) -> Program:
        """Send what :meth:`build` wrote into ``folder`` to a board; return the program that runs there.

        Raises
        ------
        Unsupported
            If its programs run in this process only; by default always.
        """
        raise Unsupported(THIS_MACHINE_ONLY)

    def load_in_engine(self, folder: Path, engine: Engine) -> Program:
        """Load what :meth:`build` wrote into ``folder`` for a target of WebAssembly into an engine.

        Raises
        ------
        Unsupported
            If its programs are no WebAssembly; by default always.
        """
        raise Unsupported(NO_WEBASSEMBLY)


class Compiler(Backend):
    """Turns a network into a program for a target, its convolutions computed by an algorithm."""

    own_kernels = False

    def build(
        self, network: Network, algorithm: Callable[[], Algorithm], target: Target, batch: int, folder: Path
    ) -> Build:
        """Compile the network with the algorithm."""
        return self.compile(network, algorithm(), target, batch, folder)

    @abstractmethod
    def compile(
        self, network: Network, algorithm: Algorithm, target: Target, batch: int, folder: Path
    ) -> Build:
        """Write a build for inputs [batch, c, h, w] into ``folder``.

        Raises
        ------
        Unsupported
            If this network, algorithm or target cannot be compiled.
        """


class Runtime(Backend):
    """Runs a network with kernels of its own."""

    own_kernels = True

    def build(
        self, network: Network, algorithm: Callable[[], Algorithm], target: Target, batch: int, folder: Path
    ) -> Build:
        """Prepare the network; there is no algorithm to choose."""
        return self.prepare(network, target, batch, folder)

    @abstractmethod
    def prepare(self, network: Network, target: Target, batch: int, folder: Path) -> Build:
        """Write into ``folder`` what :meth:`load` needs for inputs [batch, c, h, w].

        Raises
        ------
        Unsupported
            If this network or target cannot be run.
        """
