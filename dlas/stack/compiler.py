"""Compilers and runtimes, the programs they build, and the layers that a build reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
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
        """Return seconds a layer, median over ``repeats``, by name; None where layers cannot be timed.

        A runtime that tells means alone may return those.
        """
        return None


class Types(TypedDict, total=False):
    """Types of a convolution's values, such as ``float32``.

    Attributes
    ----------
    input : str
        Of the input.
    weight : str
        Of the weight.
    accumulator : str
        Of the sums.
    output : str
        Of the output.
    """

    input: str
    weight: str
    accumulator: str
    output: str


class Layer(TypedDict, total=False):
    """A convolution of the build, or another operator, which has ``name`` and ``latency_s`` alone.

    Attributes
    ----------
    name : str
        The layer's name in the network; of other operators the kernel's.
    latency_s : float, s
        Median of 20 profiled runs, seconds (``openvino``: mean); the profiler's cost is in it, and
        :mod:`dlas.rows.layer_times` takes it out. Null where the runtime cannot time its layers.
    algorithm : str
        The algorithm that computes it; ``library`` for a runtime's own kernel.
    options : mapping
        That algorithm's options where they differ from their defaults.
    declined : str
        Why the requested algorithm does not compute it. Null where it does.
    n : int
        Batch.
    c : int
        Input channels.
    h : int
        Input height.
    w : int
        Input width.
    k : int
        Filters.
    r : int
        Kernel height.
    s : int
        Kernel width.
    p : int
        Output height.
    q : int
        Output width.
    strides : list of int
        Along height and width.
    padding : list of int
        Top, left, bottom, right.
    dilation : list of int
        Along height and width.
    groups : int
        Groups of channels.
    padding_value : float
        Value of the padding: zero, or the zero point of a quantised input.
    input_layout : str
        ``NCHW``, or in blocks of channels, ``NCHW16c``.
    output_layout : str
        ``NCHW``, or in blocks of channels, ``NCHW16c``.
    types : Types
        Types of its values.
    macs : int
        Multiply-adds of the dense convolution, the whole batch.
    nonzeros : int
        Weights that are not zero.
    tail : list of str
        Operators computed in the same kernel.
    kernel : str
        Name of the kernel in the build.
    decisions : mapping or str
        Decisions of the schedule: a point of the algorithm's own space, or a shortened trace. Null where the
        algorithm follows fixed rules.
    space : str
        Space that was searched.
    trials : int
        Programs tried for this kernel.
    valid_trials : int
        Trials that compiled and computed the right result.
    trial : int
        Number of the trial that was chosen.
    tuned_s : float, s
        Time of a call of the chosen program, measured on its own during tuning.
    """

    name: str
    latency_s: float | None
    algorithm: str
    options: Mapping[str, Any]
    declined: str | None
    n: int
    c: int
    h: int
    w: int
    k: int
    r: int
    s: int
    p: int
    q: int
    strides: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]
    groups: int
    padding_value: float
    input_layout: str
    output_layout: str
    types: Types
    macs: int
    nonzeros: int
    tail: list[str]
    kernel: str
    decisions: dict[str, Any] | str | None
    space: str
    trials: int
    valid_trials: int
    trial: int
    tuned_s: float


class Edge(TypedDict):
    """A convolution's output that another convolution reads: where a layout may have to change.

    Attributes
    ----------
    writer : str
        Layer that wrote it. Null for the network's input and for other operators.
    value : int
        Number of the value; readers of the same value have the same.
    bytes : int, B
        Size of what the writer wrote.
    reader : str
        Layer that reads it. Null for other operators.
    port : str
        ``input`` where it is convolved, ``output`` where it is added to the result.
    """

    writer: str | None
    value: int
    bytes: int
    reader: str | None
    port: Literal["input", "output"]


@dataclass
class Build:
    """A compiler's report on a build.

    Parameters
    ----------
    layers : list of Layer
        One for each convolution.
    coverage : dict or None
        Shares of the ``convolutions`` and of their ``macs`` that the requested algorithm computes.
    library_bytes : int or None
        Size of the compiled code.
    packed_bytes : int or None
        Size of the weights as the build stores them; None for a runtime that packs them where it loads them.
    edges : list of Edge
        The inputs of convolutions.
    """

    layers: list[Layer] = field(default_factory=list)
    coverage: dict[str, float] | None = None
    library_bytes: int | None = None
    packed_bytes: int | None = None
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

        ``network`` restores the network; only a runtime that runs the module
        itself calls it, since restoring takes time.
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
    """Return one convolution as rows describe it.

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
        Why the requested algorithm does not compute it.
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
