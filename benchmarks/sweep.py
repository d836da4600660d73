"""Overhead of the engine per point: everything but training, compiling and measuring.

The steps of stub points do almost no work, so that the time is the engine's:
expansion, forks, artifacts, turns on the device, rows.

    python -m benchmarks.sweep [POINTS ...]
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from dlas.sweep.study.study import Study
from tests.fixtures.engine import run, study_of

SIZES = (10, 100, 1_000, 10_000)


def main(sizes: tuple[int, ...]) -> None:
    """Print the overhead of a point in sweeps of several sizes."""
    table = Table("points", "ms a point", "resumed, ms a point", "peak resident MiB of the sweep", box=None)
    for points in sizes:
        study = study_of(
            f'algorithm = [{{name = "tests.fixtures.stubs:StubAlgorithm", number = {list(range(10))}}}]\n'
            'compiler = [{name = "tests.fixtures.stubs:StubCompiler", '
            f"number = {list(range(points // 10))}}}]"
        )
        with tempfile.TemporaryDirectory() as folder:
            first = seconds(study, Path(folder))
            again = seconds(study, Path(folder))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        table.add_row(
            f"{points:,}", f"{first / points * 1e3:.1f}", f"{again / points * 1e3:.2f}", f"{peak:.0f}"
        )
    Console().print(table)


def seconds(study: Study, folder: Path) -> float:
    """Return the seconds of a run of the study."""
    start = time.monotonic()
    run(study, folder)
    return time.monotonic() - start


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or SIZES)
