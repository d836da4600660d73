"""Measure how much memory a build takes, in a process that nothing has used before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dlas.bench.measuring import allocator
from dlas.bench.measuring.memory import AllocatedMemory
from dlas.bench.processes.interface import Channel
from dlas.bench.store.cache import Cache
from dlas.stack import TRAINING, Hardware
from dlas.sweep.engine.steps.programs import load_program
from dlas.sweep.engine.steps.samples import load_batch
from dlas.sweep.study.point import Point

INFERENCES = 2
"""ONNX Runtime's memory grows in its second inference too."""
TRAINING_STEPS = 2
"""The peak is in the backward pass, and the optimiser keeps momentum from the second step on."""
SHARED_PROCESS = "not measured: steps run in the sweep's own process, whose earlier work would count"
ELSEWHERE = "not measured: the device is not this machine"
APART = "not measured: the program runs in another process than the one that measures"
ON_GPU = "not measured: the program's memory is the GPU's"
NOT_TOLD = "not measured: this system does not tell a process's peak memory"

Run = Callable[[], Any]


def run(
    content: dict[str, Any], root: str, network_key: str, build_key: str, channel: Channel
) -> dict[str, Any]:
    """Return the peak of what loading the build and running it allocate, first in a process of its own.

    For inference that is weights, activations and scratch memory; for training parameters, gradients,
    momentum, saved activations and scratch memory.

    Returns
    -------
    dict
        ``peak_memory_bytes``: the peak of running the program, weights included;
        ``loading_memory_bytes``: that of loading it, which may copy weights; ``memory_note``: why they are
        None, or may differ between equal runs.
    """
    cache, point = Cache(Path(root)), Point.of(content)
    device: Hardware = point.hardware.make("hardware")
    if not channel.own_process:
        return _unknown(SHARED_PROCESS)
    if not device.in_process:
        return _unknown(APART if device.local else ELSEWHERE)
    if device.target().kind == "cuda":
        return _unknown(ON_GPU)
    training = point.task == TRAINING
    with allocator.repeatable() as note:
        images, labels = load_batch(cache, network_key, point)

        def load() -> Run:
            program = load_program(cache, network_key, build_key, point)
            own = images.copy()  # some programs copy the images themselves, others share them
            return program.training(own, labels).step if training else program.bind(own)

        found = measure(load, TRAINING_STEPS if training else INFERENCES)
    return {**found, "memory_note": note} if found else _unknown(NOT_TOLD)


def measure(load: Callable[[], Run], runs: int) -> dict[str, int | None] | None:
    """Return the peak memory of loading a program and running it ``runs`` times, above what was there before.

    Everything is done once before, so that modules are imported, code is mapped and compiled and threads have
    their stacks when counting starts.

    Parameters
    ----------
    load : callable
        Returns a function that runs the program once.

    Returns
    -------
    dict or None
        ``peak_memory_bytes`` and ``loading_memory_bytes``; None where the system does not tell.
    """
    load()()
    memory = AllocatedMemory.start()
    if memory is None:
        return None
    program = load()
    loading = memory.peak_bytes()
    for _ in range(runs):
        program()
    running = memory.peak_bytes()
    if loading is None or running is None:
        return None
    return {"peak_memory_bytes": running, "loading_memory_bytes": loading}


def _unknown(why: str) -> dict[str, Any]:
    return {"peak_memory_bytes": None, "loading_memory_bytes": None, "memory_note": why}
