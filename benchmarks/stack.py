"""Does a program take longer where the stack begins elsewhere in a page?  ``python -m benchmarks.stack``.

Each process has a longer variable in its environment than the one before, behind which the first thread's
stack begins, and nothing else that differs.  Programs run in that thread, and in a thread of their own, whose
stack begins with a page, as sweeps measure them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from dlas.bench.measuring.addresses import fixed, on_own_stack
from dlas.bench.measuring.machine import use_threads
from dlas.bench.store.cache import Cache
from dlas.sweep.engine.session import Session
from dlas.sweep.engine.steps.programs import load_program
from dlas.sweep.engine.steps.samples import load_batch
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study

LAYERS = ["conv1x1-48,dw5x5", "conv1x1-64,dw5x5", "conv1x1-16,conv3x3-16", "conv1x1-64,conv1x1-64"]
LENGTHS = (1, 129, 385, 769, 1_025, 1_537, 2_049, 2_561, 3_073, 3_585)
"""Lengths of the variable, bytes."""
RUNS = 600
"""Of each program; the shortest counts."""
MICROSECONDS = 1e6


def main() -> None:
    """Print how far the times of each program are apart, in the first thread and on a stack of its own."""
    study = Study(
        {
            "dataset": [{"name": "random", "size": 32, "images": 2}],
            "model": [{"name": "random_layers", "layers": LAYERS}],
            "algorithm": ["blocked"],
            "compiler": ["hand"],
            "hardware": [{"name": "local_cpu", "threads": 1}],
        },
        name="stack",
    )
    with tempfile.TemporaryDirectory() as folder:
        with Session.open(cache=folder, keep_builds=True) as session:
            session.check(study)
            rows = session.make(study, until="build", workspace="stack").rows
        programs = [(point.content(), row.artifacts) for point, row in zip(study.points(), rows, strict=True)]
        (Path(folder) / "programs.json").write_text(json.dumps(programs))
        found = [_apart(folder, length) for length in LENGTHS]
    table = Table("layers", "first thread, us", "its own stack, us", box=None)
    for number, layers in enumerate(LAYERS):
        cells = [[each[where][number] * MICROSECONDS for each in found] for where in (0, 1)]
        table.add_row(layers, *(f"{min(times):.1f} to {max(times):.1f}" for times in cells))
    Console().print(table)


def _apart(folder: str, length: int) -> list[list[float]]:
    """Return the shortest times in a process with a variable of some length."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "LONG": length * "x"}
    command = [sys.executable, "-m", "benchmarks.stack", folder]
    with fixed():
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    times: list[list[float]] = json.loads(ran.stdout)
    return times


def _measure(folder: Path) -> list[float]:
    """Return the shortest time of each program, seconds."""
    programs = json.loads((folder / "programs.json").read_text())
    return [_shortest(content, artifacts, folder) for content, artifacts in programs]


def _shortest(content: dict[str, Any], artifacts: dict[str, str], folder: Path) -> float:
    point, cache = Point.of(content), Cache(folder)
    images, _ = load_batch(cache, artifacts["network"], point)
    run = load_program(cache, artifacts["network"], artifacts["build"], point).bind(images)
    return min(_seconds(run) for _ in range(RUNS))


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        use_threads(1)
        given = Path(sys.argv[1])
        print(json.dumps([_measure(given), on_own_stack(_measure)(given)]))
