"""Compilers and runtimes: from a network to a program, and what a build reports of its layers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypedDict, cast

import numpy as np
import numpy.typing as npt

from dlas.stack.algorithm import Algorithm
from dlas.stack.convolution import Conv
from dlas.stack.dataset import Images
from dlas.stack.network import Network
from dlas.stack.part import Part
from dlas.stack.target import Target


class Program(ABC):
    """A loaded build, ready to run on its device."""

    @abstractmethod
    def bind(self, images: Images) -> Callable[[], Any]:
        """Return a function that runs one inference on ``images``, already on the device."""

    @abstractmethod
    def run(self, images: Images) -> npt.NDArray[np.float32]:
        """Return the outputs [n, classes] for ``images`` [n, c, h, w]."""

    def layers(self, images: Images, repeats: int) -> dict[str, float] | None:
        """Return seconds a layer, median over ``repeats``, by name; None where layers cannot be timed."""
        return None


class Layer(TypedDict, total=False):
    """One convolution of a build, as it stands in a row.

    All have ``name``, ``algorithm``, ``declined`` and ``macs``; a convolution
    that TVM's own operator computes has nothing else.

    Parameters
    ----------
    name : str
        The convolution's name in the network.
    n, c, h, w, k, r, s, p, q : int
        Sizes by the letters of :mod:`dlas.stack.convolution`.
    strides, padding, dilation, groups, padding_value, input_layout, output_layout
        As in :class:`dlas.stack.convolution.Conv`.
    types : dict of str
        Of ``input``, ``weight``, ``accumulator`` and ``output``.
    algorithm : str
        The part that computes it, ``library`` for a runtime's own kernel, ``stock`` for TVM's.
    declined : str or None
        Why the algorithm asked for does not compute it.
    macs, nonzeros : int
        Multiply-adds of the dense convolution, and weights that are not zero.
    tail : list of str
        Operators computed in the same kernel.
    kernel : str
        Name of its kernel in the build.
    decisions : dict, str or None
        The point of the algorithm's design space that was built, or what was sampled
        from TVM's rules; None for the minimal schedule.
    space : {"algorithm", "rules"}
        What was searched.
    trials, valid_trials, trial : int
        Trials that count, the right ones among them, and the one that was built.
    tuned_s : float
        Seconds a call of that trial, when it was selected.
    latency_s : float
        Seconds a call in the measured program, where the program can time its layers.
    """

    name: str
    n: int
    c: int
    h: int
    w: int
    k: int
    r: int
    s: int
    strides: tuple[int, int]
    padding: tuple[int, int, int, int]
    dilation: tuple[int, int]
    groups: int
    padding_value: float
    input_layout: str
    output_layout: str
    p: int
    q: int
    types: dict[str, str]
    algorithm: str
    declined: str | None
    macs: int
    nonzeros: int
    tail: list[str]
    kernel: str
    decisions: dict[str, Any] | str | None
    space: Literal["algorithm", "rules"]
    trials: int
    valid_trials: int
    trial: int
    tuned_s: float
    latency_s: float


class Edge(TypedDict):
    """One read of a value of the network: where a layout would have to change if writer and reader differed.

    Parameters
    ----------
    writer : str or None
        The convolution that wrote it; None for the images, and for an operator that writes NCHW.
    value : int
        Number of the value; its layout changes once for all its readers.
    bytes : int
        That would change their layout.
    reader : str or None
        The convolution that reads it; None for an operator that reads NCHW.
    port : {"input", "output"}
        Whether it is read in the layout of the reader's input, or of its output, as by a tail.
    """

    writer: str | None
    value: int
    bytes: int
    reader: str | None
    port: Literal["input", "output"]


@dataclass
class Build:
    """What a compiler reports of a build.

    Parameters
    ----------
    layers : list of Layer
        One a convolution.
    coverage : dict or None
        Shares of the ``convolutions`` and of their ``macs`` that the algorithm asked for computes.
    library_bytes : int or None
        Size of the compiled code.
    edges : list of Edge
        What convolutions read.
    """

    layers: list[Layer] = field(default_factory=list)
    coverage: dict[str, float] | None = None
    library_bytes: int | None = None
    edges: list[Edge] = field(default_factory=list)


class Backend(Part, ABC):
    """A choice on the compiler axis, as a study uses it: a :class:`Compiler` or a :class:`Runtime`."""

    own_kernels: ClassVar[bool]
    """True for a runtime with kernels of its own; the algorithm axis is then ``library``."""

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

        ``network`` restores the network, for a runtime that runs the module
        itself; one that does not call it does not pay for it.
        """


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


def describe_layer(
    conv: Conv,
    algorithm: str,
    nonzeros: int,
    tail: Sequence[str] = (),
    declined: str | None = None,
) -> Layer:
    """Return one convolution as a row has it.

    Parameters
    ----------
    conv : Conv
    algorithm : str
        The part that computes it, or ``library`` for a runtime's own kernel.
    nonzeros : int
        Weights that are not zero.
    tail : sequence of str
        Operators computed in the same kernel.
    declined : str, optional
        Why the algorithm asked for does not compute it.
    """
    convolution = asdict(conv)
    types = {kind: convolution.pop(f"{kind}_type") for kind in ("input", "weight", "accumulator", "output")}
    layer = {
        **convolution,
        "p": conv.p,
        "q": conv.q,
        "types": types,
        "algorithm": algorithm,
        "declined": declined,
        "macs": conv.macs,
        "nonzeros": nonzeros,
        "tail": list(tail),
    }
    return cast(Layer, layer)
