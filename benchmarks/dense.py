"""Dense convolution against ONNX Runtime and PyTorch: ten layers and whole networks, interleaved in one run.

A study measures them, so that all compared programs take turns on the device.  Numbers
are speed-ups over ONNX Runtime, and for layers the share of the multiply-add peak, which is
measured before and after.

    python -m benchmarks.dense [--layers "NAME;..."] [--networks NAME,...] [--threads 1,2]
                               [--compilers untuned,hand,metaschedule] [--algorithm TOML] [--trials 32]
                               [--seconds 5] [--out FOLDER]
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.layers import layer_folder, layer_options
from benchmarks.peak import measure_peak
from benchmarks.studies import median_s, run_study
from dlas.rows.results import Row

DENSE_LAYERS = (
    "3x3, 64 at 56",
    "3x3, 128 at 28",
    "3x3, 256 at 14",
    "3x3, 512 at 7",
    "3x3 / 2, 64 to 128 at 56",
    "1x1, 64 to 256 at 56",
    "1x1, 256 to 64 at 56",
    "1x1, 1024 to 256 at 14",
    "depthwise 3x3, 144 at 56",
    "7x7 / 2, stem at 224",
)
"""Names in :data:`benchmarks.layers.LAYERS`; the sparse benchmark uses others."""
NETWORKS = "resnet18,mobilenet_v2,resnet50,vgg16,densenet161,efficientnet_b0"
PEERS = ("onnxruntime", "torch_eager", "torch_compile")
OURS = {
    "untuned": '"untuned"',
    "hand": '"hand"',
    "metaschedule": '{{ name = "metaschedule", space = "algorithm", trials = {trials} }}',
}
STUDY = """
name = "dense"
[axes]
dataset   = [{{ name = "random", channels = {channels}, size = {size}, classes = 1000, images = 8 }}]
model     = [{model}]
algorithm = [{algorithm}]
compiler  = [{ours}, "onnxruntime", "torch_eager", "torch_compile"]
hardware  = [{{ name = "local_cpu", threads = {count} }}]
[measure]
seconds = {seconds}
"""


def main(
    layers: str = ";".join(DENSE_LAYERS),
    networks: str = NETWORKS,
    threads: str = "1,2",
    compilers: str = ",".join(OURS),
    algorithm: str = '{ name = "spatial_pack", layout = "blocked" }',
    trials: int = 32,
    seconds: float = 5.0,
    out: Annotated[Path | None, typer.Option(help="Keep rows here, and resume from them.")] = None,
) -> None:
    """Print two tables: layers, then networks."""
    ours = ", ".join(OURS[name].format(trials=trials) for name in compilers.split(","))
    common = {"algorithm": algorithm, "ours": ours, "seconds": seconds}
    with tempfile.TemporaryDirectory() as scratch:
        folder = out or Path(scratch)
        named = [name for name in layers.split(";") if name]
        for count in map(int, threads.split(",")):
            options = {**common, "count": count}
            if named:
                peak = measure_peak(count)
                speeds = {name: _layer(folder / "layers", name, options) for name in named}
                _print(f"layers, {count} threads", speeds, (peak, measure_peak(count)))
            if networks:
                speeds = {name: _network(folder, name, options) for name in networks.split(",")}
                _print(f"networks, {count} threads", speeds, None)


def _layer(folder: Path, name: str, common: dict[str, Any]) -> dict[str, Row]:
    return _run(folder / layer_folder(name), {**common, **layer_options(name)})


def _network(folder: Path, name: str, common: dict[str, Any]) -> dict[str, Row]:
    return _run(folder / name, {**common, "channels": 3, "size": 224, "model": f'"{name}"'})


def _run(folder: Path, options: dict[str, Any]) -> dict[str, Row]:
    """Return the row of every compiler for one model and number of threads."""
    rows = run_study(folder, STUDY.format(**options))
    return {row.compiler["name"]: row for row in rows}


def _print(title: str, results: dict[str, dict[str, Row]], peaks: tuple[float, float] | None) -> None:
    """Print speeds relative to ONNX Runtime, and the share of the peak that our fastest reaches."""
    reference, *peers = PEERS
    columns = [*(name for name in OURS if any(name in rows for rows in results.values())), *peers]
    table = Table("", *columns, "of the peak" if peaks else "", title=title, box=None)
    for name, rows in results.items():
        seconds = {compiler: median_s(row) for compiler, row in rows.items() if row.status == "ok"}
        cells = [
            f"{seconds[reference] / seconds[compiler]:.2f}" if compiler in seconds else rows[compiler].status
            for compiler in columns
        ]
        own = [compiler for compiler in OURS if compiler in seconds]
        best = min(own, key=lambda compiler: seconds[compiler], default=None)
        share = ""
        if peaks and best:
            macs = sum(layer.get("macs") or 0 for layer in rows[best].layers)
            share = f"{2 * macs / seconds[best] / statistics.mean(peaks):.2f}"
        table.add_row(name, *cells, share)
    Console().print(table)
    if peaks:
        Console().print(f"peak: {peaks[0] / 1e9:.0f} before, {peaks[1] / 1e9:.0f} GFLOP/s after")


if __name__ == "__main__":
    typer.run(main)
