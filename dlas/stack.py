"""The six interfaces of the stack, and the values that pass between them.

A *part* is one choice on one axis: a frozen dataclass whose fields are its
options and whose constructor only stores.  Each axis has one short abstract
class here with one required verb; everything else has a working default.
This module imports neither torch nor tvm, so that studies, rows and reports
can be handled where neither is installed.

The letters of a convolution are those of :mod:`dlas.convolution`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dlas.convolution import Conv, Tail
from dlas.data import Data, Images
from dlas.network import Facts as Facts
from dlas.network import Kept as Kept
from dlas.network import Network as Network

PART_AXES = ("dataset", "model", "compression", "algorithm", "compiler", "hardware")
"""The six layers, from the problem down to the machine (DLAS paper, section 2.2)."""


Decisions = Mapping[str, int | str]
"""One point of a design space: what was decided, by the decision's name."""


class Unsupported(Exception):
    """A combination that cannot be done; the message says why and becomes the row's reason."""


class MissingData(Unsupported):
    """Data that the user has to provide is not there; says where it was looked for and how to get it."""


class Part:
    """What parts of every axis have in common."""

    def verify(self) -> None:
        """Look at the outside files that the options name, cheaply, before anything starts.

        Raises
        ------
        MissingData, ValueError, OSError
            One clear message: what is wrong with which file.
        """
        for part in self.delegates():
            part.verify()

    def files(self) -> list[Path]:
        """Return the outside files whose content decides what the part makes: those its options name."""
        options = [os.path.expanduser(value) for value in vars(self).values() if isinstance(value, str)]
        return [Path(option) for option in options if os.path.isfile(option)]

    def imports(self) -> list[str]:
        """Return the modules that take long to import and that only the part's verb imports.

        A sweep imports them once for all its steps, as soon as one needs them.
        """
        return [name for part in self.delegates() for name in part.imports()]

    def delegates(self) -> Sequence[Part]:
        """Return the parts that this one leaves work to; their code and files count as its own."""
        return ()


# ---------------------------------------------------------------- dataset


class Dataset(Part, ABC):
    """The problem: images and labels in three disjoint splits."""

    labelled: ClassVar[bool] = True
    """False where labels mean nothing, so that nothing is trained on them."""

    @abstractmethod
    def load(self) -> Data:
        """Read the data.

        Raises
        ------
        MissingData
            If the files are not where the options say.
        """


# ---------------------------------------------------------------- model, compression


@dataclass(frozen=True)
class Workspace:
    """What a long step is given beside its inputs.

    Parameters
    ----------
    seed : int
        Everything random follows from it.
    folder : Path
        A private folder that outlives a killed process; what is found there is
        where the step had got to.
    say : callable
        Takes one line of progress ("epoch 3 of 20").
    """

    seed: int
    folder: Path
    say: Callable[[str], None] = print


class Model(Part, ABC):
    """An architecture and how it gets its weights."""

    @abstractmethod
    def build(self, data: Data, workspace: Workspace) -> Network:
        """Return the network for ``data``: constructed, and trained or loaded."""

    @abstractmethod
    def restore(self, folder: Path, facts: Facts) -> Network:
        """Return the network that :meth:`Network.save` wrote into ``folder``."""


class Compression(Part, ABC):
    """Makes a network smaller or cheaper."""

    def way(self, labelled: bool) -> Sequence[Mapping[str, Any]]:
        """Return the options that differ in the compressions passed on the way to this one, mildest first.

        Each of their networks is kept, and the next one starts from it: a study
        that asks for five levels of a pruning trains once.

        Parameters
        ----------
        labelled : bool
            Whether the data set has labels to train on.
        """
        return ()

    @abstractmethod
    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        """Return the compressed network; ``network``, the last one on the way, may be changed in place.

        Raises
        ------
        Unsupported
            If this network, or this data, is not one that the technique is for.
        """

    def choose(self, passed: Sequence[Kept]) -> Network | None:
        """Return one of the networks on the way, if this compression is a choice among them.

        Parameters
        ----------
        passed : sequence of Kept
            What the way started from, then its networks in order.
        """
        return None

    def restore(self, model: Model, folder: Path, facts: Facts) -> Network:
        """Return the saved compressed network; by default it has the model's own structure."""
        return model.restore(folder, facts)


# ---------------------------------------------------------------- algorithm


class Algorithm(Part, ABC):
    """How one convolution is computed: data format, mathematics and loops.

    ``pack`` is the data format, ``compute`` the mathematics, ``schedule`` the
    loops, so dense and sparse algorithms are the same kind of thing.
    """

    tolerance: ClassVar[float] = 1e-5
    """Largest ``max|y - reference| / max|reference|`` that rounding in one float32 convolution explains."""

    def check_layers(self, names: Collection[str]) -> None:
        """Look at the names of a network's convolutions before any of them is computed.

        Raises
        ------
        Unsupported
            If the options speak of layers that the network does not have.
        """

    def for_layer(self, conv: Conv) -> Algorithm:
        """Return the algorithm that computes this convolution; all that follows is asked of that one."""
        return self

    def supports(self, conv: Conv) -> str | None:
        """Return why this convolution is declined, or None where it is taken."""
        return None

    def for_weight(self, weight: npt.NDArray[Any], conv: Conv) -> Algorithm:
        """Return the algorithm for this weight [k, c / groups, r, s], if its zeros decide on the loops."""
        return self

    def layouts(self, conv: Conv) -> tuple[str, str]:
        """Return in which layouts this convolution is to be read and written, e.g. ``NCHW16c``.

        ``conv`` is in NCHW.  Lowering changes the layout where neighbours differ,
        and everything else is asked with ``conv.input_layout`` and
        ``conv.output_layout`` set.  Blocks need not divide channels: what the last one
        holds beyond them is undefined on both sides, and only ``conv.c`` are to be summed.
        """
        return "NCHW", "NCHW"

    def pack(self, weight: npt.NDArray[Any], conv: Conv) -> tuple[npt.NDArray[Any], ...]:
        """Return the weight [k, c / groups, r, s] as the arrays that ``compute`` reads."""
        return (weight,)

    def unpack(self, packed: Sequence[npt.NDArray[Any]], conv: Conv) -> npt.NDArray[Any]:
        """Return the weight [k, c / groups, r, s] that :meth:`pack` was given, up to rounding.

        No build needs it: it says what the format means, and checks hold ``pack`` to it.

        Raises
        ------
        NotImplementedError
            If the format is one's own and this does not say what it means.
        """
        if [array.shape for array in packed] != [(conv.k, conv.c // conv.groups, conv.r, conv.s)]:
            raise NotImplementedError(f"{type(self).__name__} packs the weight and has no unpack to undo it")
        return packed[0]

    @abstractmethod
    def compute(self, x: Any, packed: Sequence[Any], conv: Conv, tail: Tail) -> Any:
        """Return the finished output.

        Parameters
        ----------
        x : te.Tensor
            The input in ``conv.input_layout``.
        packed : sequence of te.Tensor
            One for each array that :meth:`pack` returned.
        conv : Conv
        tail : Tail

        Returns
        -------
        te.Tensor or tirx.PrimFunc
            The tensor in ``conv.output_layout``; or, where TE cannot express
            the kernel, a function of (x, *packed, *tail.operands, output).
        """

    def schedule(self, schedule: Any, conv: Conv, target: Target) -> None:
        """Make the kernel parallel, in place (a ``tvm.s_tir.Schedule``), and nothing else."""

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return the points of a design space of one's own, the best guess for ``target`` first.

        Empty where there is none: tuning then has TVM's default rules only.
        """
        return ()

    def apply(self, schedule: Any, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Transform the loops of the kernel in place, as one point of :meth:`space` says.

        Raises
        ------
        NotImplementedError
            If there is no space of one's own.
        """
        raise NotImplementedError(f"{type(self).__name__} has no design space of its own")

    def arguments(self, weight: npt.NDArray[Any], conv: Conv) -> tuple[npt.NDArray[Any], ...] | None:
        """Return real arrays for measuring candidates where random ones would not do."""
        return None

    def passes(self, conv: Conv, target: Target) -> Sequence[Any]:
        """Return TIR passes to run on the scheduled kernel."""
        return ()


# ---------------------------------------------------------------- compiler


class Program(ABC):
    """A loaded build, ready to run on its device."""

    @abstractmethod
    def bind(self, images: Images) -> Callable[[], Any]:
        """Return a function that runs one inference on ``images``, already on the device."""

    @abstractmethod
    def run(self, images: Images) -> npt.NDArray[np.float32]:
        """Return the outputs [n, classes] for ``images`` [n, c, h, w]."""

    def layers(self, images: Images, repeats: int) -> dict[str, float] | None:
        """Return seconds a layer, median over ``repeats``, by name; None where it cannot be told."""
        return None


@dataclass(frozen=True)
class Target:
    """What a compiler needs to know of a device.

    Parameters
    ----------
    description : mapping
        A TVM target as a mapping, e.g. ``{"kind": "llvm", "mcpu": "znver4", "num-cores": 2}``.
    threads : int
        Worker threads at run time.
    """

    description: Mapping[str, Any]
    threads: int


@dataclass
class Build:
    """What a compiler reports of a build: one mapping a convolution, one a read of what another one wrote."""

    layers: list[dict[str, Any]] = field(default_factory=list)
    coverage: dict[str, float] | None = None
    library_bytes: int | None = None
    edges: list[dict[str, Any]] = field(default_factory=list)


class Compiler(Part, ABC):
    """Turns a network into a program for a target."""

    own_kernels: ClassVar[bool] = False
    """True for a runtime with kernels of its own; the algorithm axis is then ``library``."""

    @abstractmethod
    def compile(
        self, network: Network, algorithm: Algorithm | None, target: Target, batch: int, folder: Path
    ) -> Build:
        """Write a build for inputs [batch, c, h, w] into ``folder``.

        ``algorithm`` is None where the runtime has kernels of its own.

        Raises
        ------
        Unsupported
            If this network, algorithm or target cannot be compiled.
        """

    @abstractmethod
    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return the program that :meth:`compile` wrote into ``folder``.

        ``network`` restores the network, for a runtime that runs the module
        itself; one that does not call it does not pay for it.
        """


# ---------------------------------------------------------------- hardware


class Hardware(Part, ABC):
    """A device: what it is, and how a program is timed on it."""

    @property
    @abstractmethod
    def device(self) -> str:
        """The name of the lock that makes tuning and measuring exclusive."""

    @property
    def local(self) -> bool:
        """Whether measuring needs this machine's processors to be otherwise idle."""
        return True

    def unsupported(self) -> str | None:
        """Return why this device cannot be used here, or None."""
        return None

    @abstractmethod
    def target(self) -> Target:
        """Return what compilers need to know."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the device in full, as it is written into a row."""

    def prepare(self) -> None:
        """Set threads and affinity in the process that is about to run a program."""

    @abstractmethod
    def measure(
        self, program: Program, images: Images, settings: Any, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Return raw samples and counters.

        ``turn`` blocks until this program may use the device for its next slice
        of samples; between slices other points of the comparison have theirs.
        """
