"""Times of the operators of a torch module, in a run of it or in a training step.

They are timed where torch dispatches them, in runs of their own.  What Python does between
them, above all the calls of modules, and operators that return views belong to no
layer: the layers add up to less than the network takes, in large networks by a few percent.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from dlas.networks.torch_operators import Operator
from dlas.networks.torch_recording import Recording, Time, record
from dlas.stack import Layer

PROBES = 300
"""Calls of a tiny operator that the clock's own cost is measured with."""
LARGEST_COST = 0.9
"""Largest part of an operator's time that may be the clock's: no operator takes no time."""


def time_layers(
    module: nn.Module, run: Callable[[], object], repeats: int, device: torch.device
) -> list[Layer] | None:
    """Return the operators of a module with their median times over ``repeats``, in order.

    In a training step each layer has the time of its backward pass as ``backward_s``: that of the
    operators that autograd runs for what the layer did.  The loss and what the optimizer does are
    layers of their own, ``loss`` and ``sgd``.  What dispatching in Python costs is measured and taken off.

    Parameters
    ----------
    module : nn.Module
    run : callable
        Calls the module: one inference, or one training step from ``zero_grad`` to the optimizer.
        It is called ``repeats + 2`` times.
    repeats : int
    device : torch.device

    Returns
    -------
    list of Layer or None
        None where runs differ in the operators that they dispatch, or where the backward pass is
        not dispatched in Python.
    """
    run()  # The first step of an optimizer with momentum differs from the others.
    recording = record(module, run)
    if recording is None:
        return None
    expected = [each.operator for each in recording.dispatched]
    wait = waiting(device)
    cost_s = clock_cost(device)
    runs = []
    for _ in range(repeats):
        clock = Clock(wait)
        with clock:
            run()
        if clock.operators != expected:
            return None
        runs.append(_totals(recording, clock.seconds, cost_s))
    return [_with_medians(layer, runs, index) for index, layer in enumerate(recording.layers)]


class Clock(TorchDispatchMode):
    """Times what torch dispatches.

    Parameters
    ----------
    wait : callable
        Waits until the device has done what it was given.
    """

    def __init__(self, wait: Callable[[], object]) -> None:
        super().__init__()
        self.operators: list[Operator] = []
        self.seconds: list[float] = []
        self._wait = wait

    def __torch_dispatch__(
        self, func: Operator, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operator and note its time."""
        self._wait()
        started = time.perf_counter()
        result = func(*args, **kwargs) if kwargs else func(*args)
        self._wait()
        self.seconds.append(time.perf_counter() - started)
        self.operators.append(func)
        return result


def waiting(device: torch.device) -> Callable[[], object]:
    """Return a function that waits for a device; the CPU has always done what it was given."""
    return (lambda: None) if device.type == "cpu" else (lambda: torch.cuda.synchronize(device))


def clock_cost(device: torch.device) -> float:
    """Return what an operator takes longer under the clock than without it, in seconds.

    It is what a tiny operator takes longer, which does next to nothing itself.
    """
    one, wait = torch.ones(1, device=device), waiting(device)
    clock, plain = Clock(wait), []
    with torch.inference_mode():
        for _ in range(PROBES):
            with clock:
                torch.add(one, one)
            wait()
            started = time.perf_counter()
            torch.add(one, one)
            wait()
            plain.append(time.perf_counter() - started)
    return max(0.0, statistics.median(clock.seconds) - statistics.median(plain))


def _totals(recording: Recording, seconds: Sequence[float], cost_s: float) -> dict[Time, list[float]]:
    """Return the times of each layer in one run, those of the backward pass only if there is one."""
    kinds = sorted({each.time for each in recording.dispatched})
    totals: dict[Time, list[float]] = {kind: [0.0] * len(recording.layers) for kind in kinds}
    for each, time_s in zip(recording.dispatched, seconds, strict=True):
        if each.layer is not None:
            totals[each.time][each.layer] += time_s - min(cost_s, LARGEST_COST * time_s)
    return totals


def _with_medians(layer: Layer, runs: Sequence[dict[Time, list[float]]], index: int) -> Layer:
    """Return a layer with the medians of its times."""
    medians = {kind: statistics.median(run[kind][index] for run in runs) for kind in runs[0]}
    return cast(Layer, {**layer, **medians})
