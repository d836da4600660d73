"""The GPU of this machine, as NVIDIA's driver describes it."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

ASK_S = 60.0
"""Time limit of the driver's answer: the first one loads the driver."""


class NoGpu(Exception):
    """There is no GPU that can be used; the message says why."""


@dataclass(frozen=True)
class Gpu:
    """A GPU."""

    name: str
    cuda: tuple[int, int]
    """The version of CUDA that its driver runs."""
    major: int
    minor: int
    """Its compute capability."""
    processors: int
    """Streaming multiprocessors."""
    warp: int
    threads_a_block: int
    registers_a_block: int
    shared_bytes: int
    """Shared memory of a thread block."""
    memory_bytes: int
    l2_bytes: int
    clock_khz: int
    memory_clock_khz: int
    memory_bus_bits: int

    @property
    def arch(self) -> str:
        """The architecture's name, such as ``sm_90``."""
        return f"sm_{self.major}{self.minor}"

    def target(self) -> dict[str, Any]:
        """Return a TVM target in full: what it lacks, TVM would ask the GPU for."""
        return {
            "kind": "cuda",
            "arch": self.arch,
            "max_num_threads": self.threads_a_block,
            "max_threads_per_block": self.threads_a_block,
            "max_shared_memory_per_block": self.shared_bytes,
            "registers_per_block": self.registers_a_block,
            "thread_warp_size": self.warp,
        }

    def describe(self) -> dict[str, Any]:
        """Return the GPU as it is written into a row."""
        return {
            "gpu": self.name,
            "gpu_arch": self.arch,
            "gpu_processors": self.processors,
            "gpu_clock_hz": 1e3 * self.clock_khz,
            "gpu_l2_bytes": self.l2_bytes,
            "gpu_memory_bytes": self.memory_bytes,
            "gpu_memory_clock_hz": 1e3 * self.memory_clock_khz,
            "gpu_memory_bus_bits": self.memory_bus_bits,
            "gpu_cuda": "{}.{}".format(*self.cuda),
        }


@functools.cache
def first_gpu() -> Gpu | NoGpu:
    """Return the first GPU that CUDA_VISIBLE_DEVICES lets this process see, or why there is none."""
    try:
        return ask_driver()
    except NoGpu as reason:
        return reason


def ask_driver() -> Gpu:
    """Return the first GPU.

    Raises
    ------
    NoGpu
    """
    spec = find_spec(".cuda_driver", __package__)
    assert spec is not None and spec.origin is not None
    command = [sys.executable, "-I", spec.origin]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=ASK_S, check=False)
        facts = json.loads(asked.stdout)
    except subprocess.TimeoutExpired:
        raise NoGpu(f"the driver does not answer in {ASK_S:.0f} s") from None
    except ValueError:
        last = asked.stderr.strip().rpartition("\n")[2]
        raise NoGpu(f"asking the driver ended with code {asked.returncode}: {last}") from None
    if "reason" in facts:
        raise NoGpu(facts["reason"])
    return Gpu(**{**facts, "cuda": tuple(facts["cuda"])})
