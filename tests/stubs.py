"""Parts that cost nothing and misbehave on request, for testing the engine itself."""

from __future__ import annotations

import ctypes
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dlas.errors import Unsupported
from dlas.stack import (
    Algorithm,
    Arrays,
    Build,
    Compiler,
    Compression,
    Conv,
    Data,
    Dataset,
    Facts,
    Hardware,
    Images,
    Model,
    Network,
    Program,
    Tail,
    Target,
    Workspace,
)

Trouble = Literal[
    "none",
    "exception",
    "unsupported",
    "segfault",
    "abort",
    "hang",
    "memory",
    "exit",
    "wrong",
    "nan",
    "grandchild",
    "disk",
]


def get_into(trouble: str) -> None:
    """Do what ``trouble`` names."""
    if trouble == "exception":
        raise RuntimeError("this stub raises")
    if trouble == "unsupported":
        raise Unsupported("this stub supports nothing")
    if trouble == "segfault":
        ctypes.string_at(0)
    if trouble == "abort":
        os.abort()
    if trouble == "hang":
        time.sleep(3600)
    if trouble == "memory":
        kept = [np.ones(2**22) for _ in range(1000)]
        time.sleep(len(kept))
    if trouble == "exit":
        os._exit(3)
    if trouble == "grandchild":
        if os.fork() == 0:
            time.sleep(3600)
        time.sleep(3600)
    if trouble == "disk":
        raise OSError(28, os.strerror(28))


@dataclass(frozen=True)
class StubDataset(Dataset):
    """Eight tiny images."""

    size: int = 2
    trouble: Trouble = "none"

    def load(self) -> Data:
        """Return the same few images in each split."""
        get_into(self.trouble)
        images = np.linspace(0, 1, 8 * self.size**2, dtype=np.float32).reshape(8, 1, self.size, self.size)
        split = Arrays(images, np.arange(8, dtype=np.int64) % 2)
        return Data(split, split, split, (1, self.size, self.size), 2)


@dataclass
class StubNetwork(Network):
    """A linear map of the image's mean."""

    facts: Facts
    factor: float

    def reference(self, images: Images) -> npt.NDArray[np.float32]:
        """Return (-mean, mean) x factor."""
        mean = images.mean(axis=(1, 2, 3)) * np.float32(self.factor)
        return np.stack([-mean, mean], axis=1)

    def save(self, folder: Path) -> None:
        """Write the factor."""
        (folder / "network.json").write_text(json.dumps(self.factor))


@dataclass(frozen=True)
class StubModel(Model):
    """A network with one number."""

    factor: float = 1.0
    seconds: float = 0.0
    trouble: Trouble = "none"
    trace: str = ""

    def build(self, data: Data, workspace: Workspace) -> Network:
        """Return the network after ``seconds``; each call leaves a line in the file ``trace``."""
        get_into(self.trouble)
        time.sleep(self.seconds)
        if self.trace:
            with open(self.trace, "a") as out:
                out.write(f"{self.factor}\n")
        workspace.say("built a stub")
        facts = Facts(data.shape, data.classes, trained=True, accuracy=0.5, parameters=1, nonzeros=1, macs=4)
        return StubNetwork(facts, self.factor)

    def restore(self, folder: Path, facts: Facts) -> Network:
        """Read the factor."""
        return StubNetwork(facts, json.loads((folder / "network.json").read_text()))


@dataclass(frozen=True)
class StubCompression(Compression):
    """Halves the factor."""

    level: float = 0.5

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        """Return the network with a smaller factor."""
        assert isinstance(network, StubNetwork)
        facts = replace(network.facts, reached={"ratio": self.level})
        return StubNetwork(facts, network.factor * (1 - self.level))


@dataclass(frozen=True)
class StubAlgorithm(Algorithm):
    """Has a number, so that there can be many."""

    number: int = 0

    def compute(self, x: Any, packed: Any, conv: Conv, tail: Tail) -> Any:
        """Return the input."""
        return tail(x)


@dataclass(frozen=True)
class StubProgram(Program):
    """Runs the reference, or gets into trouble."""

    network: Network
    trouble: str
    slow: float

    def bind(self, images: Images) -> Callable[[], Any]:
        """Return a function of almost no work."""
        return lambda: time.sleep(self.slow)

    def run(self, images: Images) -> npt.NDArray[np.float32]:
        """Return the reference's outputs, unless they are to be wrong."""
        get_into(self.trouble)
        outputs = self.network.reference(images)
        if self.trouble == "nan":
            return outputs * np.float32("nan")
        return outputs + np.float32(self.trouble == "wrong")

    def layers(self, images: Images, repeats: int) -> dict[str, float]:
        """Return one layer."""
        return {"stub": 0.001}


@dataclass(frozen=True)
class StubCompiler(Compiler):
    """Compiles nothing; gets into trouble at the step named."""

    trouble: Trouble = "none"
    at: Literal["compile", "load", "run"] = "compile"
    number: int = 0
    padding_bytes: int = 0

    def compile(
        self, network: Network, algorithm: Algorithm | None, target: Target, batch: int, folder: Path
    ) -> Build:
        """Write a file."""
        if self.at == "compile":
            get_into(self.trouble)
        (folder / "build.bin").write_bytes(b"\0" * (16 + self.padding_bytes))
        return Build(layers=[{"name": "stub", "macs": 4}], library_bytes=16)

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return the program."""
        if self.at == "load":
            get_into(self.trouble)
        return StubProgram(network(), self.trouble if self.at == "run" else "none", 0.0)


@dataclass(frozen=True)
class StubLibrary(StubCompiler):
    """A runtime with kernels of its own."""

    own_kernels = True


@dataclass(frozen=True)
class StubHardware(Hardware):
    """A device of its own name that measures by counting: the same every time."""

    place: str = "stub"
    slices: int = 2
    trouble: Trouble = "none"
    missing: bool = False

    @property
    def device(self) -> str:
        """The name."""
        return f"stub-{self.place}"

    def unsupported(self) -> str | None:
        """Say so if the device is missing."""
        return "no such board here" if self.missing else None

    def target(self) -> Target:
        """Return a target that no compiler reads."""
        return Target({"kind": "stub"}, 1)

    def describe(self) -> dict[str, Any]:
        """Return its name."""
        return {"cpu": self.place}

    def measure(
        self, program: Program, images: Images, settings: Any, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Return made-up samples, one a slice."""
        get_into(self.trouble)
        run = program.bind(images)
        samples = []
        for number in range(self.slices):
            turn()
            run()
            samples.append(0.001 * (number + 1))
        return {"latency_s": samples, "first_run_s": 0.002, "bound": "repeats", "noisy": False}
