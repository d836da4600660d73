"""Overhead of the engine per point: everything but training, compiling and measuring.

The steps of stub points do almost no work, so that the time is the engine's: expansion, forks, artifacts,
turns on the device, rows.  Beside it what their steps take, and what a fork of a process with TVM and torch
does before and after it joins its pages.

    python -m benchmarks.sweep [POINTS ...]
"""

from __future__ import annotations

import importlib
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from dlas.bench.processes.pages import join_pages
from dlas.sweep.rows.results import Row
from dlas.sweep.study.study import Study
from tests.fixtures.engine import rows, run, study_of

SIZES = (10, 100, 1_000, 10_000)
FORKS = 40


def main(sizes: tuple[int, ...]) -> None:
    """Print the overhead of a point in sweeps of several sizes, and what forks take."""
    table = Table("points", "ms a point", "of it steps", "resumed, ms a point", "peak resident MiB", box=None)
    for points in sizes:
        study = study_of(
            f'algorithm = [{{name = "tests.fixtures.stubs:StubAlgorithm", number = {list(range(10))}}}]\n'
            'compiler = [{name = "tests.fixtures.stubs:StubCompiler", '
            f"number = {list(range(points // 10))}}}]"
        )
        with tempfile.TemporaryDirectory() as folder:
            first = seconds(study, Path(folder))
            steps = statistics.median(_steps_s(row) for row in rows(Path(folder)))
            again = seconds(study, Path(folder))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        table.add_row(
            f"{points:,}",
            f"{first / points * 1e3:.1f}",
            f"{steps * 1e3:.1f}",
            f"{again / points * 1e3:.2f}",
            f"{peak:.0f}",
        )
    Console().print(table)
    for name in ("torch", "tvm"):  # what is forked is large
        importlib.import_module(name)
    before = forked()
    join_pages()
    print(
        f"fork and exit of a process with TVM and torch: {before:.1f} ms; its pages joined: {forked():.1f} ms"
    )


def _steps_s(row: Row) -> float:
    return sum(dict[str, float](**row.seconds).values())


def forked() -> float:
    """Return the milliseconds of a fork of this process and its exit, in the middle of several."""
    found = []
    for _ in range(FORKS):
        started = time.perf_counter()
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        found.append(1e3 * (time.perf_counter() - started))
    return statistics.median(found)


def seconds(study: Study, folder: Path) -> float:
    """Return the seconds of a run of the study."""
    start = time.monotonic()
    run(study, folder)
    return time.monotonic() - start


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or SIZES)
