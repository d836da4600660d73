"""Sparse convolution against dense libraries, layer by layer: 3x3 of ResNet-18, 1x1 of ResNet-50.

At each level, the pruned layer takes turns with ONNX Runtime on the same weights, which computes
zeros like any other number.  PyTorch and our dense code take turns with ONNX Runtime on the dense
layer.  A speed is the best dense library's time over the sparse kernel's.  The roof is the least time
that multiply-adds, loads of their inputs, or the bytes of weights or images take on this machine.

    python -m benchmarks.sparse [--layers "NAME;..."] [--levels 0.5,...] [--block-levels 0.8,...]
                                [--algorithms csr_direct,...] [--threads 1,2] [--trials 16]
                                [--seconds 0.5] [--out FOLDER] [--smoke]
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.layers import LAYERS, layer_folder, layer_options
from benchmarks.roofline import Roof, measure_roof
from benchmarks.roofs import bounds, slowest
from benchmarks.studies import disturbed, median_s, run_study
from dlas.analysis.break_even import crossing, worded
from dlas.sweep.rows.labels import label
from dlas.sweep.rows.results import Row

SPARSE_LAYERS = tuple(name for name in LAYERS if name.startswith(("3x3", "1x1")))
LIBRARIES = ("onnxruntime", "torch_eager", "torch_eager(channels_last=True)")
BLOCKS, HEIGHT = "bsr_direct", 4
STUDY = """
name = "sparse"
[axes]
dataset     = [{{ name = "random", channels = {channels}, size = {size}, classes = 1000, images = 2 }}]
model       = [{model}]
compression = ["none", {{ name = "weight_pruning", recipe = "none", level = {levels} }},
               {{ name = "block_pruning", recipe = "none", level = {block_levels}, size = {height} }}]
algorithm   = [{dense}, {{ name = "{blocks}", size = {height} }}, {csr}]
compiler    = ["hand", {searched}"onnxruntime", {{ name = "torch_eager", channels_last = [false, true] }}]
hardware    = [{{ name = "local_cpu", threads = {threads} }}]
[measure]
seconds = {seconds}
[[skip]]
compression = "none"
algorithm   = ["{blocks}", {csr}]
reason      = "nothing is zero"
[[skip]]
compression = "weight_pruning"
algorithm   = [{dense}, "{blocks}"]
reason      = "it runs on other weights"
[[skip]]
compression = "block_pruning"
algorithm   = [{dense}, {csr}]
reason      = "it runs on other weights"
[[skip]]
compression = "*_pruning"
compiler    = "torch_*"
reason      = "the time of a dense library does not depend on the weights"
"""


@dataclass(frozen=True)
class Result:
    """A sparse kernel at a level: its speed against the best library, its share of the roof, the roof."""

    speed: float
    share: float
    limit: str


@dataclass(frozen=True)
class LayerResults:
    """Speeds of one layer on a number of threads."""

    dense: dict[str, float]
    """Speeds against ONNX Runtime, by compiler."""
    sparse: dict[str, dict[float, Result]]
    """By algorithm and level."""
    peak: float
    """Our best dense code's share of the multiply-add peak."""


def main(
    layers: str = ";".join(SPARSE_LAYERS),
    levels: str = "0.5,0.7,0.8,0.9,0.95,0.98",
    block_levels: str = "0.8,0.9,0.95",
    algorithms: str = "csr_direct,csr_gemm,csr_spatial_pack",
    threads: str = "1,2",
    dense: str = '{ name = "spatial_pack", layout = "blocked" }',
    trials: Annotated[int, typer.Option(help="Of a search beside our best guesses; 0 for none.")] = 0,
    seconds: float = 0.5,
    out: Annotated[Path | None, typer.Option(help="Keep rows here, and resume from them.")] = None,
    smoke: Annotated[bool, typer.Option(help="One layer, briefly: whether it works.")] = False,
) -> None:
    """Print dense speeds, sparse speeds with their break-even, and shares of the roof."""
    if smoke:
        layers, levels, block_levels, threads, seconds = "3x3, 512 at 7", "0.8,0.95", "0.9", "1", 0.1
    csr = ", ".join(f'"{name}"' for name in algorithms.split(","))
    options = {
        "levels": _numbers(levels),
        "block_levels": _numbers(block_levels),
        "csr": csr,
        "dense": dense,
        "seconds": seconds,
        "blocks": BLOCKS,
        "height": HEIGHT,
        "searched": _search(trials),
    }
    with tempfile.TemporaryDirectory() as scratch:
        for count in map(int, threads.split(",")):
            roof = measure_roof(count)
            results, rows = {}, []
            for name in layers.split(";"):
                folder = (out or Path(scratch)) / layer_folder(name)
                own = run_study(folder, STUDY.format(**options, **layer_options(name), threads=count))
                results[name] = read(own, roof)
                rows += own
            _print(results, roof, sorted({*_numbers(levels), *_numbers(block_levels)}))
            Console().print(disturbed(rows))


def _numbers(listed: str) -> list[float]:
    return sorted(map(float, listed.split(",")))


def _search(trials: int) -> str:
    return f'{{ name = "metaschedule", trials = {trials} }}, ' if trials else ""


def read(rows: Sequence[Row], roof: Roof) -> LayerResults:
    """Return the speeds and shares of one layer from its rows."""
    timed = [row for row in rows if row.timed]
    reference = {
        _pruned(row): median_s(row) for row in timed if row.compiler["name"] == LIBRARIES[0]
    }  # the same library, measured in turns with what it is compared with
    ok = [row for row in timed if _pruned(row) in reference]
    untouched = [row for row in ok if row.compression["name"] == "none"]
    dense = {label(row.compiler): reference[_pruned(row)] / median_s(row) for row in untouched}
    fastest = max(dense[name] for name in LIBRARIES if name in dense)
    sparse: dict[str, dict[float, Result]] = {}
    for row in sorted(ok, key=median_s, reverse=True):  # the fastest of several compilers stays
        if row.compression["name"] != "none" and row.algorithm["name"] != "library":
            speed = reference[_pruned(row)] / fastest / median_s(row)
            name, level = label(row.algorithm), row.compression["level"]
            sparse.setdefault(name, {})[level] = Result(speed, *_roof(row, roof))
    ours = min(
        (median_s(row) for row in untouched if row.algorithm["name"] != "library"), default=float("nan")
    )
    peak = 2 * untouched[0].layers[0]["macs"] / ours / roof.flops
    return LayerResults(dense, sparse, peak)


def _pruned(row: Row) -> tuple[str, float]:
    return row.compression["name"], row.compression.get("level", 0.0)


def _roof(row: Row, roof: Roof) -> tuple[float, str]:
    """Return the share of the lowest roof that a row reaches, and what limits it."""
    limits = bounds(row.layers[0], roof)
    limit = slowest(limits)
    return limits[limit] / median_s(row), limit


def _print(results: Mapping[str, LayerResults], roof: Roof, levels: Sequence[float]) -> None:
    console = Console(width=150)
    on = f"{roof.threads} thread" + ("s" if roof.threads > 1 else "")
    console.print(
        f"{on}: {roof.flops / 1e9:.0f} GFLOP/s in registers; loading an input each, "
        f"{2 * min(roof.aligned.values()) / 1e9:.0f} (memory) to {2 * max(roof.aligned.values()) / 1e9:.0f} "
        f"(nearest cache) where it is aligned, {2 * roof.shifted / 1e9:.0f} where it is not"
    )
    names = sorted({name for layer in results.values() for name in layer.dense}, key=_order)
    table = Table("", *names, "of the peak", title=f"dense, {on}: speed against ONNX Runtime", box=None)
    for name, layer in results.items():
        table.add_row(name, *(_number(layer.dense.get(compiler)) for compiler in names), f"{layer.peak:.2f}")
    console.print(table)
    columns = [f"{100 * level:.0f} %" for level in levels]
    title = f"sparse, {on}: speed against the best dense library"
    speeds = Table("", "", *columns, "break-even", title=title, box=None)
    roofs = Table("", "", *columns, title=f"sparse, {on}: share of the roof, and which bound it is", box=None)
    for name, layer in results.items():
        for place, (algorithm, by_level) in enumerate(sorted(layer.sparse.items())):
            measured = sorted(by_level)
            even = worded(crossing(measured, [by_level[level].speed for level in measured]), measured)
            cells = [by_level.get(level) for level in levels]
            first = "" if place else name
            speeds.add_row(first, algorithm, *(f"{cell.speed:.2f}" if cell else "" for cell in cells), even)
            shares = (f"{cell.share:.2f} {cell.limit}" if cell else "" for cell in cells)
            roofs.add_row(first, algorithm, *shares)
    console.print(speeds, roofs, sep="\n")


def _order(name: str) -> tuple[bool, str]:
    return name in LIBRARIES, name


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    typer.run(main)
