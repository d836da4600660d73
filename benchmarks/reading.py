"""Processor time and memory that commands need to read many rows.

    python -m benchmarks.reading FOLDER [--rows 60000] [--layers 0] [--commands table,compare,report,watch]

Makes the rows in ``FOLDER`` if there are none: 20 samples each, about 3 kB without layers, and 20 kB with 46
of them. A command's time is that of its processors, user and system, which other work on the machine changes
less than the time on the clock.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dlas.face.reporting.live import LOOK_S, LivePage
from dlas.sweep.rows.files import FILE, holds_rows
from dlas.sweep.rows.results import Row

SAMPLES = 20
COMPILERS = ("untuned", "hand", "metaschedule", "onnxruntime", "torch_eager")
RUNTIMES = ("onnxruntime", "torch_eager")
ALGORITHMS = ("direct", "gemm", "spatial_pack", "winograd")
LEVELS = (0.0, 0.3, 0.5, 0.7, 0.9)
BATCHES = (1, 4, 16)
NETWORKS = 40
DEVICE: dict[str, Any] = {
    "name": "local_cpu",
    "title": "this machine",
    "threads": 2,
    "cpu": "Imaginary(R) 9000 CPU @ 2.00GHz",
    "vendor": "GenuineImaginary",
    "family": "6",
    "model": "207",
    "stepping": "2",
    "architecture": "x86_64",
    "physical_cores": 8,
    "logical_cores": 16,
    "allowed_cores": 16,
    "l1d_bytes": 32768,
    "l1i_bytes": 32768,
    "l2_bytes": 2097152,
    "l3_bytes": 110100480,
    "extensions": [
        "avx",
        "avx2",
        "avx512bw",
        "avx512cd",
        "avx512dq",
        "avx512f",
        "avx512vl",
        "avx512_vnni",
        "fma",
        "sse4_1",
        "sse4_2",
    ],
    "memory_bytes": 67_000_000_000,
    "kernel": "6.1.0",
    "governor": None,
    "hypervisor": True,
}
VERSIONS = ("apache-tvm", "apache-tvm-ffi", "numpy", "onnx", "onnxruntime", "scipy", "torch", "torchvision")
ENVIRONMENT: dict[str, Any] = {
    "python": "3.12.1",
    "versions": {name: "2.11.0" for name in VERSIONS},
    "code": {"version": "0.2.0", "commit": "0" * 40, "dirty": False},
    "host": {"name": "somewhere", "system": "Linux", "architecture": "x86_64"},
}


WATCH = "watch"
OPTIONS = {"compare": "--axis algorithm", "report": "--out {}/report.html"}
"""Options of commands; the braces stand for a folder."""


def points(count: int) -> Iterator[dict[str, Any]]:
    """Yield the axes of points, of one network after the other."""
    runs = [(compiler, "library") for compiler in RUNTIMES]
    runs += [pair for pair in itertools.product(COMPILERS, ALGORITHMS) if pair[0] not in RUNTIMES]
    choices = (range(NETWORKS), LEVELS, BATCHES, runs)
    seeds = ((seed, *each) for seed in itertools.count() for each in itertools.product(*choices))
    for seed, network, level, batch, (compiler, algorithm) in itertools.islice(seeds, count):
        yield {
            "dataset": {"name": "cifar10"},
            "model": {"name": f"resnet_{network}", "recipe": "none", "width": 0.5},
            "compression": {"name": "weight_pruning", "level": level} if level else {"name": "none"},
            "algorithm": {"name": algorithm},
            "compiler": {"name": compiler},
            "hardware": {"name": "local_cpu", "threads": 2},
            "batch": batch,
            "seed": seed,
        }


def layer(number: int) -> Any:
    """Return a convolution of a row."""
    shape = {"n": 1, "c": 64, "h": 32, "w": 32, "k": 64, "r": 3, "s": 3, "groups": 1, "p": 32, "q": 32}
    return {
        "name": f"layer{number}.conv",
        "operator": "Conv",
        **shape,
        "strides": [1, 1],
        "padding": [1, 1, 1, 1],
        "dilation": [1, 1],
        "types": {"input": "float32", "weight": "float32", "accumulator": "float32", "output": "float32"},
        "algorithm": "direct",
        "declined": None,
        "macs": 37748736,
        "nonzeros": 36864,
        "fused": ["Relu"],
        "latency_s": 1.7e-4 * (1 + number % 5),
    }


def row(number: int, axes: dict[str, Any], rng: np.random.Generator, layers: int) -> Row:
    """Return the row of a point, whose times are drawn."""
    median_s = 1e-3 * axes["batch"] * rng.uniform(1, 20)
    return Row(
        id=f"{number:016x}",
        key=f"{number:032x}",
        study="many",
        **axes,
        status="ok",
        latency_s=(median_s * rng.lognormal(0, 0.01, SAMPLES)).tolist(),
        calls_per_sample=1,
        bound="repeats",
        first_run_s=1.1 * median_s,
        cpu_s=1.9 * median_s,
        sentinel_s=(7e-4 * rng.lognormal(0, 0.01, 10)).tolist(),
        load=0.1,
        steal=0.0,
        noisy=False,
        peak_memory_bytes=int(rng.integers(10**7, 10**8)),
        layers=[layer(each) for each in range(layers)],
        coverage={"convolutions": 1.0, "macs": 1.0},
        error=1e-6,
        accuracy=float(rng.uniform(0.7, 0.95)),
        validation_accuracy=0.9,
        test_images=10_000,
        compiled_accuracy={"accuracy": 0.9, "low": 0.87, "high": 0.93, "images": 256},
        reached={"level": axes["compression"]["level"], "ratio": axes["compression"]["level"]}
        if "level" in axes["compression"]
        else {},
        parameters=2_800_000,
        nonzeros=2_700_000,
        macs=140_000_000,
        effective_macs=139_000_000,
        model_bytes=11_000_000,
        packed_bytes=11_100_000,
        seconds={"network": 12.0, "build": 3.5, "memory": 1.0, "check": 0.5, "measure": 2.0},
        artifacts={"network": f"{number:064x}", "build": f"{number + 1:064x}"},
        measure={"repeats": SAMPLES, "seconds": 10.0, "slices": 5},
        device=DEVICE,  # type: ignore[arg-type]
        environment=ENVIRONMENT,  # type: ignore[arg-type]
        started="2026-01-02T03:04:05+00:00",
    )


def fill(folder: Path, count: int, layers: int) -> None:
    """Write rows into a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    with (folder / FILE).open("w", encoding="utf-8") as file:
        file.writelines(row(number, axes, rng, layers).line() for number, axes in enumerate(points(count)))


def cost(arguments: list[str]) -> tuple[float, float, int]:
    """Run a command, and return its processor time in s, its peak memory in bytes, and its exit code."""
    done = subprocess.Popen([sys.executable, "-m", "dlas", *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(done.pid, 0)
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024.0, os.waitstatus_to_exitcode(status)


def renewed(folder: Path) -> float:
    """Add a row, and return the processor time in s that `dlas watch` needs to show it."""
    page = LivePage([folder])
    page.renew()
    lines = sum(1 for _ in (folder / FILE).open("rb"))
    *_, axes = points(lines + 1)
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(row(lines, axes, np.random.default_rng(lines), layers=0).line())
    begun = time.process_time()
    while not page.renew():
        time.sleep(LOOK_S)
    return time.process_time() - begun


def main(
    folder: Path,
    rows: Annotated[int, typer.Option(help="Rows to make.")] = 60_000,
    layers: Annotated[int, typer.Option(help="Layers of each row: 46 make it 20 kB.")] = 0,
    commands: str = "table,compare,report",
    where: Annotated[list[str] | None, typer.Option(help="Filters of each command.")] = None,
) -> None:
    """Make rows, where they are missing, and print what reading them takes."""
    if not holds_rows(folder):
        fill(folder, rows, layers)
    size = (folder / FILE).stat().st_size
    print(f"{folder}: {size / 1e6:,.0f} MB")
    filters = [each for pattern in where or () for each in ("--where", pattern)]
    with tempfile.TemporaryDirectory() as scratch:
        for command in commands.split(","):
            if command == WATCH:
                print(f"{command}: {renewed(folder):.1f} s of processor time to make the page again")
                continue
            own = OPTIONS.get(command, "").format(scratch).split()
            begun = time.monotonic()
            seconds, peak_bytes, code = cost([command, str(folder), *own, *filters])
            print(
                f"{command}: {seconds:.1f} s of processor time, {time.monotonic() - begun:.1f} s, "
                f"{peak_bytes / 2**30:.2f} GiB, exit code {code}",
                flush=True,
            )


if __name__ == "__main__":
    typer.run(main)
