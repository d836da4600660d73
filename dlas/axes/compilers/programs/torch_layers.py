"""Times of the operators of a torch module, in a run of it or in a training step.

They are timed where torch dispatches them, in runs of their own.  On a CPU an operator's time
begins where that of the one before it ends: what Python does in between, above all the calls of modules,
and views count to the operator that follows, since eager execution waits for them.  Missing
is only what passes after the last operator.  What the clock itself costs an operator is measured by runs
without it in turn, and taken off.  A GPU computes while Python runs, and so an operator's time
begins with it there, and the cost of waiting for it stays in.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from dlas.networks.torch.operators import Overload
from dlas.networks.torch.recording import Recording, Time, record
from dlas.stack import Layer, Operator

LARGEST_COST = 0.9
"""Largest part of an operator's time that may be the clock's: no operator takes no time."""


def time_layers(
    module: nn.Module, run: Callable[[], object], repeats: int, device: torch.device
) -> list[Layer] | None:
    """Return the operators of a module with their median times over ``repeats``, in order.

    In a training step each layer has the time of its backward pass as ``backward_s``: that of the
    operators that autograd runs for what the layer did.  The loss and what the optimizer does are
    layers of their own, ``loss`` and ``sgd``.

    Parameters
    ----------
    run : callable
        Calls the module: one inference, or one training step from ``zero_grad`` to the optimizer.
        It is called ``2 * repeats + 2`` times.

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
    clocks: list[DispatchTimer] = []
    plain_s, clocked_s = [], []
    for _ in range(repeats):
        plain_s.append(_seconds(run))
        clocks.append(DispatchTimer(wait))
        with clocks[-1]:
            clocked_s.append(_seconds(run))
        if clocks[-1].operators != expected:
            return None
    excess_s = statistics.median(clocked_s) - statistics.median(plain_s)
    cost_s = 0.0 if wait else max(0.0, excess_s) / max(1, len(expected))
    runs = [_totals(recording, clock.seconds, cost_s) for clock in clocks]
    return [_with_medians(operator, runs, index) for index, operator in enumerate(recording.layers)]


class DispatchTimer(TorchDispatchMode):
    """Times what torch dispatches.

    Parameters
    ----------
    wait : callable, optional
        Waits until the device has done what it was given; none for a CPU, which always has.
    """

    def __init__(self, wait: Callable[[], object] | None = None) -> None:
        super().__init__()
        self.operators: list[Overload] = []
        self.seconds: list[float] = []
        self._wait = wait
        self._last = time.perf_counter()

    def __torch_dispatch__(
        self, func: Overload, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operator and note its time."""
        if self._wait:
            self._wait()
            self._last = time.perf_counter()
        result = func(*args, **kwargs) if kwargs else func(*args)
        if self._wait:
            self._wait()
        now = time.perf_counter()
        self.seconds.append(now - self._last)
        self.operators.append(func)
        self._last = now
        return result


def waiting(device: torch.device) -> Callable[[], object] | None:
    """Return a function that waits for a device, None for a CPU."""
    return None if device.type == "cpu" else lambda: torch.cuda.synchronize(device)


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def _totals(recording: Recording, seconds: Sequence[float], cost_s: float) -> dict[Time, list[float]]:
    """Return the times of each layer in one run, those of the backward pass only if there is one.

    What is no layer, such as a view, counts to the layer of the operator that follows.
    """
    kinds = sorted({each.time for each in recording.dispatched})
    totals: dict[Time, list[float]] = {kind: [0.0] * len(recording.layers) for kind in kinds}
    before_s = 0.0
    for each, time_s in zip(recording.dispatched, seconds, strict=True):
        before_s += time_s - min(cost_s, LARGEST_COST * time_s)
        if each.layer is not None:
            totals[each.time][each.layer] += before_s
            before_s = 0.0
    return totals


def _with_medians(operator: Operator, runs: Sequence[dict[Time, list[float]]], index: int) -> Layer:
    """Return an operator with the medians of its times."""
    medians = {kind: statistics.median(run[kind][index] for run in runs) for kind in runs[0]}
    return cast(Layer, {**operator, **medians})
