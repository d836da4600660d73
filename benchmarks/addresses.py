"""Does a kernel's time depend on where its process is?  ``python -m benchmarks.addresses``.

A depthwise 5x5 convolution, compiled by ``hand`` for one thread.  Processes are started with random and with
fixed addresses, and each forks children, which have its addresses.  Compared are the shortest times of the
children: what differs between processes and not between the children of one is their addresses.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from dlas.axes.compilers.programs.tvm import TvmProgram
from dlas.bench.measuring.addresses import fixed
from dlas.stack import Target
from dlas.sweep.rows.results import read_rows

STUDY = """
name = "addresses"
[axes]
dataset   = [{{ name = "random", size = 32, images = 2 }}]
model     = [{{ name = "random_layers", layers = "conv1x1-{filters},dw5x5" }}]
algorithm = ["blocked"]
compiler  = ["hand"]
hardware  = [{{ name = "local_cpu", threads = 1 }}]
"""
CHILDREN, SAMPLE, SECONDS = 3, 20, 0.4


def build(folder: Path, filters: int) -> Path:
    """Return the folder of a build."""
    (folder / "study.toml").write_text(STUDY.format(filters=filters))
    words = ["run", "study.toml", "--out", "rows", "--keep-builds", "--cache", "cache"]
    subprocess.run([sys.executable, "-m", "dlas", *words], cwd=folder, check=True, capture_output=True)
    (row,) = read_rows(folder / "rows")
    return folder / "cache" / "build" / str(row.artifacts["build"])


def shortest(folder: Path) -> float:
    """Return the shortest time of a build in microseconds."""
    program = TvmProgram(folder, Target({"kind": "llvm"}, threads=1))
    run = program.bind(np.zeros((1, 3, 32, 32), np.float32))
    found, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(SAMPLE):
            run()
        found.append((time.perf_counter() - start) / SAMPLE)
    return 1e6 * min(found)


def fork_all(folder: Path) -> None:
    """Print the times of children of this process."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        print(*(pool.apply(shortest, [folder]) for _ in range(CHILDREN)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--filters", type=int, default=96)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--build", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.build:
        fork_all(given.build)
        return
    print("| addresses | children of one differ by | processes differ by | at most |\n|---|---|---|---|")
    with TemporaryDirectory() as folder:
        made = build(Path(folder), given.filters)
        command = [sys.executable, "-m", "benchmarks.addresses", "--build", str(made)]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        for name, meanwhile in (("random", nullcontext), ("fixed", fixed)):
            times = []
            for _ in range(given.processes):
                with meanwhile():
                    said = subprocess.check_output(command, env=environment, text=True)
                times.append([float(each) for each in said.split()])
            within = median(max(own) / min(own) - 1 for own in times)
            middles = [median(own) for own in times]
            apart = median(abs(each / median(middles) - 1) for each in middles)
            print(f"| {name} | {within:.1%} | {apart:.1%} | {max(middles) / min(middles) - 1:.1%} |")


if __name__ == "__main__":
    main()
