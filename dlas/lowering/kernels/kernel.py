"""Kernels whose schedules compilers choose and searches find: what all kinds have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import s_tir, tirx
from tvm.ir.transform import Pass

from dlas.stack import Array, Decisions, Layer, Target


@dataclass(frozen=True)
class KernelOrigin:
    """What wrote a kernel, as tuning records are identified by it."""

    identity: dict[str, Any]
    """Its ``name``, ``class`` and ``options``."""
    code: type
    """The class whose module decides on the space and its schedules."""
    special: bool = False
    """Whether that code also changes how other schedules are measured."""


class Kernel(ABC):
    """A kernel before scheduling.

    A kernel answers for its own design space, so that compilers and searches treat all kinds alike.
    """

    name: str
    """Of the PrimFunc."""
    function: tirx.PrimFunc

    @property
    @abstractmethod
    def layer(self) -> str:
        """What the kernel computes, for people: the layer's name where it is one layer's own."""

    @property
    @abstractmethod
    def tolerance(self) -> float:
        """Largest ``max|y - reference| / max|reference|`` to accept as rounding."""

    @property
    @abstractmethod
    def origin(self) -> KernelOrigin:
        """What wrote the kernel."""

    @abstractmethod
    def describe(self) -> Layer:
        """Return the kernel as a layer of a row."""

    @abstractmethod
    def space(self, target: Target) -> Sequence[Decisions]:
        """Return the points of the kernel's own design space, the best guess first; empty if it has none."""

    @abstractmethod
    def apply(self, schedule: s_tir.Schedule, target: Target, decisions: Decisions) -> None:
        """Schedule the kernel in place according to one point of :meth:`space`."""

    @abstractmethod
    def minimal(self, target: Target) -> tirx.PrimFunc:
        """Return the PrimFunc with the kernel's minimal schedule."""

    def passes(self, target: Target) -> Sequence[Pass]:
        """Return TIR passes to run on the scheduled kernel."""
        return ()

    def arguments(self) -> tuple[Array, ...] | None:
        """Return packed arrays to measure candidates with, if random ones would be invalid."""
        return None


def schedule_kernel(kernel: Kernel, target: Target, decisions: Decisions | None = None) -> tirx.PrimFunc:
    """Return the kernel's PrimFunc with its own schedule and passes applied.

    Parameters
    ----------
    decisions : mapping, optional
        A point of the kernel's design space; by default the minimal schedule is used.
    """
    if decisions is None:
        module = tvm.IRModule({kernel.name: kernel.minimal(target)})
    else:
        schedule = s_tir.Schedule(tvm.IRModule({kernel.name: kernel.function}))
        schedule.work_on(kernel.name)
        kernel.apply(schedule, target, decisions)
        module = schedule.mod
    return run_passes(kernel, module, target)[kernel.name].with_attr("tirx.is_scheduled", True)


def run_passes(kernel: Kernel, module: tvm.IRModule, target: Target) -> tvm.IRModule:
    """Return ``module``, which holds the scheduled kernel, after the kernel's own passes."""
    passes = list(kernel.passes(target))
    return tvm.transform.Sequential(passes)(module) if passes else module
