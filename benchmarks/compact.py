"""Networks with channels removed against dense ones: measured and expected speed-ups.

A study measures them, so that dense and compact networks take turns on the device.
Channels are removed from random weights without fine-tuning: times do not depend
on the weights.  Two speed-ups are expected: the ratio of multiply-adds, and 1 / (1 - ratio)
of the weights, which papers on compression quote.

    python -m benchmarks.compact [--networks NAME,...] [--levels 0.3,0.5] [--multiple 16] [--threads 2]
                                 [--size 224] [--algorithm spatial_pack] [--seconds 5] [--out FOLDER]
                                 [--smoke]
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.studies import run_study
from dlas.sweep.rows.results import Row

NETWORKS = "resnet18,resnet50,mobilenet_v2,efficientnet_b0,densenet161,googlenet,vgg16"
COMPILERS = ("torch_eager", "onnxruntime", "hand")
DENSE = 0.0
STUDY = """
name = "compact"
[axes]
dataset     = [{{ name = "random", size = {size}, classes = 1000, images = 8 }}]
model       = ["{model}"]
compression = ["none", {{ name = "compact_channel_pruning", level = [{levels}], multiple = {multiple} }}]
algorithm   = [{algorithm}]
compiler    = {compilers}
hardware    = [{{ name = "local_cpu", threads = {threads} }}]
[measure]
seconds = {seconds}
"""

RowsByLevel = dict[tuple[str, float], Row]
"""Rows by compiler and level."""


def main(
    networks: str = NETWORKS,
    levels: str = "0.3,0.5",
    multiple: Annotated[int, typer.Option(help="Channels are left in multiples of so many.")] = 16,
    threads: int = 2,
    size: int = 224,
    algorithm: str = '{ name = "spatial_pack", layout = "blocked" }',
    seconds: float = 5.0,
    out: Annotated[Path | None, typer.Option(help="Keep rows here, and resume from them.")] = None,
    smoke: Annotated[bool, typer.Option(help="One small network, briefly: whether it works.")] = False,
) -> None:
    """Print a table: a line for every network and level."""
    if smoke:
        networks, levels, size, seconds = "resnet18", "0.5", 64, 0.5
    options = {
        "levels": levels,
        "multiple": multiple,
        "threads": threads,
        "size": size,
        "algorithm": algorithm,
        "seconds": seconds,
    }
    with tempfile.TemporaryDirectory() as scratch:
        folder = out or Path(scratch)
        results = {name: _run(folder / name, name, options) for name in networks.split(",")}
    multiples = f", channels in multiples of {multiple}" if multiple > 1 else ""
    title = f"speed-up over the dense network at {size}x{size}, {threads} threads{multiples}"
    table = Table("", "level", *COMPILERS, "by MACs", "by weights", title=title, box=None)
    for name, rows in results.items():
        for level in map(float, levels.split(",")):
            table.add_row(*_line(name, rows, level))
    Console().print(table)


def _run(folder: Path, model: str, options: dict[str, Any]) -> RowsByLevel:
    """Return the row of every compiler and level for one network."""
    text = STUDY.format(model=model, compilers=list(COMPILERS), **options)
    rows = run_study(folder, text)
    return {(row.compiler["name"], row.compression.get("level", DENSE)): row for row in rows}


def _line(name: str, rows: RowsByLevel, level: float) -> list[str]:
    """Return the cells of one network at one level."""
    compact = next(row for (_, other), row in rows.items() if other == level)
    dense = next(row for (_, other), row in rows.items() if other == DENSE)
    speedups = [_measured(rows, compiler, level) for compiler in COMPILERS]
    by_macs = f"{dense.macs / compact.macs:.2f}" if dense.macs and compact.macs else ""
    by_weights = f"{compact.expected_speedup:.2f}" if compact.expected_speedup else ""
    return [name, f"{level:.0%}", *speedups, by_macs, by_weights]


def _measured(rows: RowsByLevel, compiler: str, level: float) -> str:
    """Return the ratio of median latencies, or the status of a row without one."""
    pair = [rows[compiler, DENSE], rows[compiler, level]]
    failed = [row.status for row in pair if not row.timed]
    if failed:
        return failed[0]
    dense, compact = (statistics.median(row.latency_s) for row in pair)
    return f"{dense / compact:.2f}"


if __name__ == "__main__":
    typer.run(main)
