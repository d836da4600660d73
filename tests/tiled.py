"""A convolution with a small design space, some points of which get into trouble."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dlas.lowering.kernels import Kernel, make_kernel
from dlas.lowering.tail import Step
from dlas.networks.torch_network import TorchNetwork
from dlas.schedules.direct import Direct
from dlas.stack import (
    Algorithm,
    Bench,
    Build,
    Conv,
    Data,
    Decisions,
    Facts,
    Hardware,
    Model,
    Network,
    Target,
    TuningCompiler,
    Workspace,
)
from dlas.tuning.choosing import curve, first
from dlas.tuning.tuner import Settings, tune
from tests.stubs import StubCompiler

RELU = (Step("relax.nn.relu", (("value", 0),)),)
CONV = Conv("conv", 1, 4, 6, 6, 8, 3, 3, padding=(1, 1, 1, 1))


@dataclass(frozen=True)
class Tiled(Direct):
    """Direct convolution, split at one of its loops.

    ``trouble`` is what the point with ``part = 4`` does; ``trace`` names a file in
    which every point that is applied leaves a line.  After four lines ``wait`` waits for
    the file ``<trace>.go``.
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
            if self.trouble == "wait" and Path(self.trace).read_text().count("\n") > 4:
                while not Path(f"{self.trace}.go").exists():
                    time.sleep(0.01)
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


@dataclass(frozen=True)
class TiledCompiler(StubCompiler, TuningCompiler):
    """Tunes one tiny convolution, whatever the network, and builds nothing from it."""

    trials: int = 8
    trace: str = ""
    trouble_at: str = "none"
    broken: bool = False

    def tune(
        self, network: Network, algorithm: Algorithm | None, batch: int, bench: Bench, folder: Path
    ) -> dict[str, Any]:
        """Search, and write down what was chosen."""
        tiled = (Broken if self.broken else Tiled)(trouble=self.trouble_at, trace=self.trace)
        (found,) = tune([kernel(tiled)], Settings("algorithm", self.trials, per_round=4), bench)
        (folder / "chosen.json").write_text(json.dumps(found.summary()))
        best = curve(first(found.records, found.count))
        return {"trials": found.count, "valid": len(best), "seconds": found.seconds,
                "curves": [{"layers": found.task.layers, "best": best}]}  # fmt: skip

    def compile(
        self, network: Network, algorithm: Algorithm | None, target: Target, batch: int, folder: Path
    ) -> Build:
        """Write a file; the layer says what was chosen."""
        build = super().compile(network, algorithm, target, batch, folder)
        build.layers[0] |= json.loads((folder / "chosen.json").read_text())
        return build


@dataclass(frozen=True)
class OneConvolution(Model):
    """A network with a single convolution, of so many filters."""

    filters: int = 8

    def build(self, data: Data, workspace: Workspace) -> Network:
        """Return it as it was initialised."""
        _, h, w = data.shape
        return self.restore(workspace.folder, Facts(data.shape, self.filters * h * w))

    def restore(self, folder: Path, facts: Facts) -> Network:
        """Return the same network again: it follows from its options."""
        torch.manual_seed(0)
        convolution = torch.nn.Conv2d(facts.shape[0], self.filters, 3, padding=1)
        return TorchNetwork(torch.nn.Sequential(convolution, torch.nn.ReLU(), torch.nn.Flatten()), facts)
