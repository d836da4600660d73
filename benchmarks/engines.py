"""The contract of algorithms in engines of WebAssembly: what is right, how far off, and how long it takes.

    python -m benchmarks.engines [--engines wasmtime,chromium] [--algorithms winograd]

Every algorithm, at its defaults and with each other choice of an option, computes the 35 convolutions that
tests compare with PyTorch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.studies import chosen
from dlas.stack import Algorithm, Array, Target
from dlas.stack.hardware import EngineHardware
from dlas.sweep.study import parts
from dlas.testing.algorithms import Run, check_case, every_choice
from dlas.testing.cases import CASES, Case, expected, tensors
from dlas.testing.engines import runs_in

ENGINES = ("wasmtime", "node", "chromium")


def main(
    engines: Annotated[str, typer.Option(help="Devices, with commas.")] = "wasmtime,chromium",
    algorithms: Annotated[str | None, typer.Option(help="Some of the algorithms, with commas.")] = None,
) -> None:
    """Print a table, a line for each algorithm."""
    devices = {name: parts.make("hardware", name, {}) for name in chosen(engines, ENGINES, "engine")}
    heads = [f"{name}: {what}" for name in devices for what in ("right", "declined", "error", "s")]
    table = Table("algorithm", *heads)
    every = every_choice()
    for name in chosen(algorithms, every, "algorithm") if algorithms else every:
        cells = [cell for device in devices.values() for cell in _checked(every[name], device)]
        table.add_row(name, *cells)
        Console().print(name, *cells)
    table.title = ", ".join(str(device.describe()["engine"]) for device in devices.values())
    table.caption = f"{len(CASES)} convolutions; errors are relative to the largest value"
    Console(width=160).print(table)


def _checked(algorithm: Algorithm, device: EngineHardware) -> tuple[str, ...]:
    """Return how many convolutions are right and declined, the largest error, and the seconds of it all."""
    engine, target, begun = device.started(), device.target(), time.perf_counter()
    errors, declined = [], 0
    try:
        for case in CASES:
            outputs: list[Array] = []
            try:
                reason = check_case(algorithm, case, target, _keeping(outputs, runs_in(engine)), points=0)
            except AssertionError as wrong:
                Console().print(str(wrong))
                continue
            declined += reason is not None
            errors += [_error(outputs, case)] if reason is None else []
    finally:
        engine.close()
    seconds = time.perf_counter() - begun
    return str(len(errors)), str(declined), f"{max(errors, default=0.0):.1e}", f"{seconds:.0f}"


def _keeping(outputs: list[Array], run: Run) -> Run:
    """Return ``run``, whose outputs are kept too."""

    def kept(module: Any, arguments: Sequence[Array], target: Target) -> Array:
        outputs.append(run(module, arguments, target))
        return outputs[-1]

    return kept


def _error(outputs: Sequence[Array], case: Case) -> float:
    """Return the largest difference from PyTorch, relative to the largest value."""
    right = expected(case, tensors(case, 0))
    return float(max(np.abs(output - right).max() for output in outputs) / np.abs(right).max())


if __name__ == "__main__":
    typer.run(main)
