"""The law of the simulated board: what a kernel takes, in seconds and watts, at three clocks.

It was written down before any predictor had seen it, and resembles none of them.  A kernel's time is a
roofline whose halves overlap in part, behind a launch by the processor.  The memory's clock counts only for
kernels that move much for what they compute.  Power is static and dynamic, c f V(f)^2, and a cap of it
throttles the GPU.

Its constants are plausible for a Jetson AGX Xavier, and measured on none.

References
----------
S. Williams, A. Waterman and D. Patterson, "Roofline: An Insightful Visual Performance Model", 2009.
MIRAGE, sections 2.1 and 3.1: the clocks, and by how much boards of one model differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dlas.axes.hardware.simulation.clocks import GPU_HZ, SimulatedClocks

MACS_A_CYCLE = 512
"""Of the GPU: one for each of its cores."""
DRAM_BYTES_A_CYCLE = 45.0
"""Of the memory's clock: 70 % of a bus of 256 bits at two transfers a cycle."""
OVERLAP = 0.7
"""Share of the shorter of computing and moving that hides behind the longer one."""
HIDDEN_SHARE = 0.2
"""Share of moving in computing and moving together up to which nothing of it is seen: it is fetched ahead."""
LAUNCH_CYCLES = 14_000
"""Of the processor's clock; a launch hides behind the kernel if that is longer."""
KERNEL_S = 3e-6
"""What a kernel takes on the GPU whatever it computes; in s."""
RUN_CYCLES = 60_000
"""Of the processor's clock, once a run of a network."""
FULL_OPERATIONS = 1e8
"""Operations that fill the GPU; fewer are less efficient."""
FILLING = 0.12
"""Exponent by which efficiency falls with fewer operations."""
OPERATIONS_A_BYTE = 0.5
"""Of operators without multiply-adds."""
EFFICIENCIES: Mapping[str, float] = {
    "conv": 0.62,
    "conv1x1": 0.5,
    "depthwise": 0.09,
    "grouped": 0.2,
    "linear": 0.4,
    "pool": 0.15,
}
"""Share of the GPU's peak that the largest kernels of a class reach."""
OTHER_EFFICIENCY = 0.25
ACTIVITIES: Mapping[str, float] = {
    "conv": 1.0,
    "conv1x1": 0.95,
    "linear": 0.85,
    "grouped": 0.7,
    "depthwise": 0.6,
}
"""Switching of the GPU while kernels of a class compute, relative to that of convolutions."""
OTHER_ACTIVITY = 0.5

CAP_W = 22.0
"""The GPU is throttled to the highest step at which a kernel's power is not above this."""
STATIC_W = 2.5
"""Of the board, whatever it does."""
LEAKAGE_W = 2.5
"""At the GPU's highest voltage."""
GPU_W = 16.0
"""Of a GPU that only computes convolutions, at its highest clock."""
IDLE_ACTIVITY = 0.12
"""Switching of a GPU that waits."""
CPU_W = 3.5
"""Of the core that launches kernels, at its highest clock."""
MEMORY_CLOCK_W = 1.5
"""At the memory's highest clock, without traffic."""
JOULES_A_BYTE = 35e-12
LOWEST_V, HIGHEST_V = 0.62, 1.1
FLAT_SHARE = 0.35
"""Share of its highest clock up to which a unit runs at its lowest voltage."""
BENT = 1.3
"""Exponent by which voltage rises from there."""

NOISE = 0.03
"""Standard deviation of the logarithm of a sample."""
BOARDS = 13
SEED = 2021
MOST_POWER, MOST_TIME = 0.3, 0.1
"""By how much a board may differ from the best one, as shares."""


@dataclass(frozen=True)
class Work:
    """What a kernel computes and moves."""

    kind: str
    """Its class, such as ``conv`` or ``pool``: one of :data:`dlas.sweep.rows.operators.CLASSES`."""
    macs: float
    moved_bytes: float
    """Read and written, weights included."""


@dataclass(frozen=True)
class BoardFactors:
    """By which factors one board differs from an ideal one; each at least 1."""

    time: float
    """Of what kernels take at equal clocks. A board that draws more power is throttled sooner, too."""
    dynamic: float
    """Of dynamic power."""
    static: float
    """Of static power."""


@dataclass(frozen=True)
class Cost:
    """What a kernel takes."""

    seconds: float
    watts: float
    """Mean power of the whole board while it runs."""
    gpu_hz: float
    """The clock that the GPU kept: below the one set where it was throttled."""

    @property
    def joules(self) -> float:
        """Energy of the whole board."""
        return self.seconds * self.watts


def board_factors(board: int) -> BoardFactors:
    """Return the factors of one of :data:`BOARDS` boards, which are drawn once and for all."""
    drawn = np.random.default_rng(SEED).random((BOARDS, 3))[board]
    most = np.array([MOST_TIME, MOST_POWER, MOST_POWER])
    return BoardFactors(*map(float, 1 + most * drawn))


def cost(work: Work, clocks: SimulatedClocks, board: BoardFactors) -> Cost:
    """Return what a kernel takes at clocks, throttled to the highest step of the GPU that keeps the cap."""
    steps = sorted((step for step in GPU_HZ if step <= clocks.gpu_hz), reverse=True)
    for step in steps:
        found = _unthrottled(work, replace(clocks, gpu_hz=step), board)
        if found.watts <= CAP_W:
            break
    return found


def run_seconds(clocks: SimulatedClocks, board: BoardFactors) -> float:
    """Return what a run of a network takes beside its kernels."""
    return board.time * RUN_CYCLES / clocks.cpu_hz


def waiting_watts(clocks: SimulatedClocks, board: BoardFactors) -> float:
    """Return the power of a board whose processor works, and whose GPU and memory wait."""
    return _watts(clocks, board, activity=0.0, launching=1.0, bytes_a_second=0.0)


def operations(work: Work) -> float:
    """Return the operations of a kernel: its multiply-adds, or some for each byte where it has none."""
    return work.macs or OPERATIONS_A_BYTE * work.moved_bytes


def compute_seconds(work: Work, gpu_hz: float) -> float:
    """Return how long the GPU's cores compute; less work fills fewer of them."""
    amount = operations(work)
    filled = min(amount / FULL_OPERATIONS, 1.0) ** FILLING
    efficiency = EFFICIENCIES.get(work.kind, OTHER_EFFICIENCY) * filled
    return amount / (efficiency * MACS_A_CYCLE * gpu_hz) if amount else 0.0


def moving_seconds(work: Work, memory_hz: float) -> float:
    """Return how long the memory moves what a kernel reads and writes."""
    return work.moved_bytes / (DRAM_BYTES_A_CYCLE * memory_hz)


def body_seconds(computing: float, moving: float) -> float:
    """Return what computing and moving take together.

    Moving counts beyond what is fetched ahead, nothing of it where its share is at most
    :data:`HIDDEN_SHARE`; what counts overlaps with computing in part.
    """
    exposed = max(0.0, moving - HIDDEN_SHARE / (1 - HIDDEN_SHARE) * computing)
    return max(computing, exposed) + (1 - OVERLAP) * min(computing, exposed)


def voltage(share: float) -> float:
    """Return the voltage of a unit at a share of its highest clock; in V."""
    above = max(0.0, (share - FLAT_SHARE) / (1 - FLAT_SHARE))
    return float(LOWEST_V + (HIGHEST_V - LOWEST_V) * above**BENT)


def _unthrottled(work: Work, clocks: SimulatedClocks, board: BoardFactors) -> Cost:
    """Return what a kernel takes where nothing caps its power."""
    computing = compute_seconds(work, clocks.gpu_hz)
    body = body_seconds(computing, moving_seconds(work, clocks.memory_hz))
    launch = LAUNCH_CYCLES / clocks.cpu_hz
    seconds = board.time * (max(body, launch) + KERNEL_S)
    watts = _watts(
        clocks,
        board,
        activity=ACTIVITIES.get(work.kind, OTHER_ACTIVITY) * board.time * computing / seconds,
        launching=board.time * launch / seconds,
        bytes_a_second=work.moved_bytes / seconds,
    )
    return Cost(seconds, watts, clocks.gpu_hz)


def _watts(
    clocks: SimulatedClocks, board: BoardFactors, activity: float, launching: float, bytes_a_second: float
) -> float:
    """Return the power of a board, from the shares of the time for which its units work."""
    highest = SimulatedClocks.highest()
    gpu, cpu = clocks.gpu_hz / highest.gpu_hz, clocks.cpu_hz / highest.cpu_hz
    dynamic = GPU_W * (IDLE_ACTIVITY + (1 - IDLE_ACTIVITY) * activity) * _switching(gpu)
    dynamic += CPU_W * launching * _switching(cpu)
    dynamic += MEMORY_CLOCK_W * clocks.memory_hz / highest.memory_hz + JOULES_A_BYTE * bytes_a_second
    static = STATIC_W + LEAKAGE_W * voltage(gpu) / HIGHEST_V
    return board.dynamic * dynamic + board.static * static


def _switching(share: float) -> float:
    """Return f V(f)^2 at a share of the highest clock, relative to that at the highest."""
    return share * (voltage(share) / HIGHEST_V) ** 2
