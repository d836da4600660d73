"""A convolution with a small design space, some points of which get into trouble."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dlas.convolution import Conv
from dlas.lowering.kernels import Kernel, make_kernel
from dlas.lowering.tail import Step
from dlas.schedules.direct import Direct
from dlas.stack import Decisions, Hardware, Target, Workspace
from dlas.tuning.interface import Bench

RELU = (Step("relax.nn.relu", (("value", 0),)),)
CONV = Conv("conv", 1, 4, 6, 6, 8, 3, 3, padding=(1, 1, 1, 1))


@dataclass(frozen=True)
class Tiled(Direct):
    """Direct convolution, split at one of its loops.

    ``trouble`` is what the point with ``part = 4`` does; ``trace`` names a file in
    which every point that is applied leaves a line.
    """

    trouble: str = "none"
    trace: str = ""
    sizes: int = 4

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        return [{"part": part, "loop": loop} for part in (2, 1, 4, 8)[: self.sizes] for loop in ("k", "p")]

    def apply(self, schedule: Any, conv: Conv, target: Target, decisions: Decisions) -> None:
        if self.trace:
            with open(self.trace, "a") as out:
                out.write(f"{decisions['part']}{decisions['loop']}\n")
        block = schedule.get_sblock("conv")
        loops = schedule.get_loops(block)
        schedule.split(
            loops[1 if decisions["loop"] == "k" else 2], [None, decisions["part"]], preserve_unit_iters=True
        )
        if decisions["part"] == 4:
            self.get_into_trouble(schedule, block)

    def get_into_trouble(self, schedule: Any, block: Any) -> None:
        if self.trouble == "raise":
            raise ValueError("this point cannot be scheduled")
        if self.trouble == "crash":
            os.abort()
        if self.trouble == "hang":
            time.sleep(3600)
        if self.trouble == "wrong":
            schedule.unsafe_set_dtype(block, 0, "float16")


class Broken(Tiled):
    """All points raise."""

    def apply(self, schedule: Any, conv: Conv, target: Target, decisions: Decisions) -> None:
        raise ValueError("no point can be scheduled")


def kernel(algorithm: Tiled, name: str = "conv", conv: Conv = CONV) -> Kernel:
    """Return a tiny convolution's kernel."""
    weight = np.ones((conv.k, conv.c // conv.groups, conv.r, conv.s), np.float32)
    return make_kernel(algorithm, replace(conv, name=name), weight, name, RELU)


def bench(folder: Path, hardware: Hardware, said: list[str] | None = None) -> Bench:
    """Return a bench whose records are in ``folder``."""
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    say = said.append if said is not None else lambda text: None
    return Bench(hardware, folder / "records", Workspace(0, work, say))
