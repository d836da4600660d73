"""What measuring and tuning ask of a board: its cores, its observers, times and outputs of kernels.

The server of a board registers these functions in each session's process; the desk calls them
by name.  So times are taken by the board's own clock, and disturbances are those of the board.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable
from typing import Any

from dlas.bench.measuring import comparing
from dlas.bench.measuring.core_kinds import big_and_little
from dlas.bench.measuring.machine import Machine, pin_threads, use_threads
from dlas.bench.measuring.observers.watch import Watch
from dlas.bench.store.fingerprint import SourceTree

USE_CORES = "dlas.board.use_cores"
BEFORE = "dlas.board.before"
AFTER = "dlas.board.after"
TIME_KERNELS = "dlas.board.time_kernels"
PIN_THREADS = "dlas.board.pin_threads"
DIFFERENCE = "dlas.board.difference"


@functools.cache
def code() -> str:
    """Return a digest of the code that measures, which must be the same on the desk and on the board."""
    tree = SourceTree()
    return tree.digest(tree.closure([__name__], within=["dlas"]))


def register() -> None:
    """Register the functions in this process, for the session that it serves."""
    import tvm

    # Begun with the first slice, when the session's cores are chosen.
    watch = functools.cache(Watch.here)
    functions: dict[str, Callable[..., Any]] = {
        USE_CORES: use_cores,
        BEFORE: lambda on_gpu: watch(bool(on_gpu)).before(),
        AFTER: lambda on_gpu: json.dumps(watch(bool(on_gpu)).after()),
        TIME_KERNELS: time_kernels,
        PIN_THREADS: pin_threads,
        DIFFERENCE: difference,
    }
    for name, function in functions.items():
        tvm.register_global_func(name, function, override=True)


def use_cores(threads: int, which: str, machine: Machine | None = None) -> None:
    """Bind this process to ``threads`` cores of a kind, and fix every pool's threads.

    Call it before the first kernel: TVM reads the number of threads once.

    Parameters
    ----------
    which : str
        ``fastest`` or ``all`` for the fastest cores, ``big`` or ``little`` for cores of that kind alone,
        see :func:`~dlas.bench.measuring.core_kinds.big_and_little`.

    Raises
    ------
    ValueError
        If there are fewer such cores, or the kernel tells no difference between cores.
    """
    machine = machine or Machine()
    cores = machine.cores()
    if which in ("big", "little"):
        big, little = big_and_little(machine)
        if not little:
            same = f"the board's kernel tells no difference between its {len(cores)} cores"
            raise ValueError(f"cores = {which!r}, but {same}")
        cores = big if which == "big" else little
    if len(cores) < threads:
        kind = f"{which} cores" if which in ("big", "little") else "cores"
        raise ValueError(f"{threads} threads, but the server may use {len(cores)} {kind} of the board")
    use_threads(threads)
    os.sched_setaffinity(0, [core[0] for core in cores[:threads]])


def difference(output: Any, expected: Any, most: float) -> str:
    """Return how an output differs from the reference, nothing if it does not.

    Parameters
    ----------
    output, expected : tvm.runtime.Tensor
        Both on the board: outputs are large, and the way to the desk may be slow.
    most : float
        As for :func:`dlas.bench.measuring.comparing.difference`.
    """
    return comparing.difference(output.numpy(), expected.numpy(), most) or ""


def time_kernels(machine: Any, function: str, kind: str, repeats: int) -> str:
    """Return the kernels of a program and their seconds in each run, as JSON.

    Parameters
    ----------
    machine : tvm.runtime.Module
        A virtual machine of its own: an instrument slows every later run.
    function : str
        What it runs, without arguments.
    kind : str
        Of device, ``cpu`` or ``cuda``: a kernel's time ends when the device is done.

    Returns
    -------
    str
        In the order of a run, [name, [seconds of each run]].
    """
    import tvm

    device = tvm.device(kind)
    run = machine[function]
    run()
    calls: list[tuple[str, float]] = []
    started = 0.0

    def watch(_function: object, name: str, before: bool, _result: object, *_arguments: object) -> None:
        nonlocal started
        if before:
            started = time.perf_counter()
        elif not name.startswith("vm."):
            device.sync()
            calls.append((name, time.perf_counter() - started))

    machine["set_instrument"](watch)
    runs = []
    for _ in range(repeats):
        calls = []
        run()
        runs.append([seconds for _, seconds in calls])
    names = [name for name, _ in calls]
    return json.dumps([[name, list(seconds)] for name, *seconds in zip(names, *runs, strict=True)])
