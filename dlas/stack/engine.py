"""Engines of WebAssembly: what runs a module, and tells times by its own clock."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from dlas.stack.array import Array

ALIGNMENT = 64
"""Bytes that every array begins at a multiple of."""


def aligned(size: int) -> int:
    """Return ``size`` rounded up to a multiple of :data:`ALIGNMENT`."""
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class ModuleTensor:
    """An array in a module's memory, or in its file of parameters."""

    offset: int
    """Bytes from the start of the module's own part of the memory, or of the file."""
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def of(self, data: bytes) -> Array:
        """Return the array whose numbers are ``data``, a copy."""
        return np.frombuffer(data, self.dtype).reshape(self.shape).copy()


@dataclass(frozen=True)
class WasmModule:
    """What a host has to know of a WebAssembly module: where its arrays are, and which kernels it calls.

    The module imports nothing.  It exports its ``memory``, ``__heap_base``, ``run(parameters, memory, n)``
    for n inferences, and ``call(parameters, memory, i, n)`` for n times the i-th call of an inference alone.
    """

    parameters_bytes: int
    memory_bytes: int
    inputs: tuple[ModuleTensor, ...]
    output: ModuleTensor
    calls: tuple[str, ...]
    """Kernels in the order of an inference."""
    parameters: tuple[ModuleTensor, ...]
    """The arrays in the file of parameters, which a host copies in front of the memory."""

    def content(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return asdict(self)

    @classmethod
    def of(cls, content: dict[str, Any]) -> Self:
        """Return what :meth:`content` has told.

        Raises
        ------
        KeyError, TypeError
            If it is no such content.
        """

        def tensor(told: dict[str, Any]) -> ModuleTensor:
            return ModuleTensor(int(told["offset"]), tuple(map(int, told["shape"])), str(told["dtype"]))

        return cls(
            int(content["parameters_bytes"]),
            int(content["memory_bytes"]),
            tuple(map(tensor, content["inputs"])),
            tensor(content["output"]),
            tuple(map(str, content["calls"])),
            tuple(map(tensor, content["parameters"])),
        )


class Engine(ABC):
    """Runs one module at a time, on one thread.

    Methods that talk to the engine raise :class:`dlas.errors.Unsupported` where it cannot do
    what the module needs, and RuntimeError where it has failed or is gone.
    """

    @classmethod
    @abstractmethod
    def missing(cls) -> str | None:
        """Return why there is no such engine on this machine, or None."""

    @classmethod
    @abstractmethod
    def describe(cls) -> dict[str, Any]:
        """Return the engine's name and version as ``engine``, and what else belongs into a row.

        Raises
        ------
        OSError, subprocess.SubprocessError, ValueError
            If it does not tell them.
        """

    @abstractmethod
    def load(self, module: WasmModule, code: Path, parameters: Path) -> None:
        """Load a module instead of the one before.

        Parameters
        ----------
        code, parameters : Path
            Files of the module's code and of its parameters.
        """

    @abstractmethod
    def write(self, tensor: ModuleTensor, array: Array) -> None:
        """Copy an array into the module's memory."""

    @abstractmethod
    def read(self, tensor: ModuleTensor) -> Array:
        """Return a copy of an array in the module's memory."""

    @abstractmethod
    def run(self, runs: int) -> float:
        """Run so many inferences, and return their seconds together by the engine's clock."""

    @abstractmethod
    def call(self, which: int, runs: int) -> float:
        """Run one call of an inference so many times, and return their seconds together."""

    @abstractmethod
    def clock_step_s(self) -> float:
        """Return the smallest step of the engine's clock in seconds."""

    @abstractmethod
    def bytes_used(self) -> int:
        """Return the size of the module's memory."""

    @abstractmethod
    def close(self) -> None:
        """End the engine; it may be closed twice."""
