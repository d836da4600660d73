"""Compilers: from a network to a program, and what a build says of its layers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

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
        """Return seconds a layer, median over ``repeats``, by name; None where it cannot be told."""
        return None


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


def describe_layer(
    conv: Conv,
    algorithm: str,
    nonzeros: int,
    tail: Sequence[str] = (),
    declined: str | None = None,
) -> dict[str, Any]:
    """Return one convolution as a mapping for a row.

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
    return {
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
