"""Dense convolution against ONNX Runtime and PyTorch: ten layers and whole networks, interleaved in one run.

A study does the measuring, so that peers take turns on the device like any
points that are compared.  Numbers are speeds relative to ONNX Runtime (above 1 is
faster), and for layers the share of the multiply-add peak that was measured
before and after.

    python benchmarks/dense.py [--layers NAME,...] [--networks NAME,...] [--threads 1,2]
                               [--algorithm spatial_pack] [--layout blocked] [--trials 32] [--out FOLDER]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.peak import measure_peak
from benchmarks.studies import run_study
from dlas.results import Row

LAYERS = {
    "3x3, 64 at 56": (64, 56, "filters = 64"),
    "3x3, 128 at 28": (128, 28, "filters = 128"),
    "3x3, 256 at 14": (256, 14, "filters = 256"),
    "3x3, 512 at 7": (512, 7, "filters = 512"),
    "3x3 stride 2, 64 to 128": (64, 56, "filters = 128, stride = 2"),
    "1x1, 64 to 256 at 56": (64, 56, "filters = 256, kernel = 1"),
    "1x1, 256 to 64 at 56": (256, 56, "filters = 64, kernel = 1"),
    "1x1, 1024 to 256 at 14": (1024, 14, "filters = 256, kernel = 1"),
    "depthwise 3x3, 144 at 56": (144, 56, "filters = 144, groups = 144"),
    "7x7 stride 2, stem at 224": (3, 224, "filters = 64, kernel = 7, stride = 2"),
}
NETWORKS = (
    "resnet18", "mobilenet_v2", "resnet50", "vgg16", "densenet161", "efficientnet_b0",
)  # fmt: skip
PEERS = ("onnxruntime", "torch_eager", "torch_compile")
OURS = ("untuned", "hand", "metaschedule")
STUDY = """
name = "dense"
[axes]
dataset   = [{{ name = "random", channels = {channels}, size = {size}, classes = 1000, images = 8 }}]
model     = [{model}]
algorithm = [{algorithm}]
compiler  = ["untuned", "hand", {{ name = "metaschedule", space = "algorithm", trials = {trials} }},
             "onnxruntime", "torch_eager", "torch_compile"]
hardware  = [{{ name = "local_cpu", threads = {count} }}]
[measure]
seconds = {seconds}
"""


def main(
    layers: str = ";".join(LAYERS),
    networks: str = ",".join(NETWORKS),
    threads: str = "1,2",
    algorithm: str = '{ name = "spatial_pack", layout = "blocked" }',
    trials: int = 32,
    seconds: float = 5.0,
    out: Annotated[Path | None, typer.Option(help="Keep rows here, and resume from them.")] = None,
) -> None:
    """Print two tables: layers, then networks."""
    common = {"algorithm": algorithm, "trials": trials, "seconds": seconds}
    with tempfile.TemporaryDirectory() as scratch:
        folder = out or Path(scratch)
        named = [name for name in layers.split(";") if name]
        for count in [int(each) for each in threads.split(",")]:
            options = {**common, "count": count}
            if named:
                peak = measure_peak(count)
                speeds = {name: _layer(folder / "layers", name, options) for name in named}
                _print(f"layers, {count} threads", speeds, (peak, measure_peak(count)))
            if networks:
                speeds = {name: _network(folder, name, options) for name in networks.split(",")}
                _print(f"networks, {count} threads", speeds, None)


def _layer(folder: Path, name: str, common: dict[str, Any]) -> dict[str, Row]:
    channels, size, options = LAYERS[name]
    shape = {"channels": channels, "size": size}
    model = f'{{ name = "benchmarks.layers:Layer", {options} }}'
    return _run(folder / name.replace(" ", "_"), {**common, **shape, "model": model})


def _network(folder: Path, name: str, common: dict[str, Any]) -> dict[str, Row]:
    return _run(folder / name, {**common, "channels": 3, "size": 224, "model": f'"{name}"'})


def _run(folder: Path, options: dict[str, Any]) -> dict[str, Row]:
    """Return the row of every compiler for one model and number of threads."""
    rows = run_study(folder, STUDY.format(**options))
    return {row.compiler["name"]: row for row in rows}


def _print(title: str, found: dict[str, dict[str, Row]], peaks: tuple[float, float] | None) -> None:
    """Print speeds relative to ONNX Runtime, and the share of the peak that our best reaches."""
    table = Table("", *OURS, *PEERS[1:], "of the peak" if peaks else "", title=title, box=None)
    for name, rows in found.items():
        seconds = {who: statistics.median(row.latency_s) for who, row in rows.items() if row.status == "ok"}
        cells = [
            f"{seconds['onnxruntime'] / seconds[who]:.2f}" if who in seconds else rows[who].status
            for who in (*OURS, *PEERS[1:])
        ]
        share = ""
        if peaks:
            macs = sum(layer.get("macs") or 0 for layer in rows["hand"].layers)
            best = min(seconds[who] for who in OURS if who in seconds)
            share = f"{2 * macs / best / statistics.mean(peaks):.2f}"
        table.add_row(name, *cells, share)
    Console().print(table)
    if peaks:
        Console().print(f"peak: {peaks[0] / 1e9:.0f} before, {peaks[1] / 1e9:.0f} GFLOP/s after")


if __name__ == "__main__":
    typer.run(main)
