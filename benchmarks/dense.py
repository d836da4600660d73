"""Dense convolution against other runtimes: ten layers and whole networks, interleaved in one run.

A study measures them, so that all compared programs take turns on the device.  Numbers
are speed-ups over the reference, the fastest of ONNX Runtime, OpenVINO, ncnn, MNN and Inductor
(``max-autotune``, frozen weights) that are installed, which each line names; for layers also the
share of the multiply-add peak, which is measured before and after.  A table of its own has the
time of each reference over ours with the spread over turns, and the error of outputs.

    python -m benchmarks.dense [--layers "NAME;..."] [--networks NAME,...] [--threads 1,2]
                               [--compilers untuned,hand,metaschedule] [--algorithm TOML] [--trials 32]
                               [--peers onnxruntime,openvino,ncnn,mnn,inductor,torch_eager,torch_compile]
                               [--seconds 5] [--out FOLDER]
"""

from __future__ import annotations

import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.layers import layer_folder, layer_options
from benchmarks.peak import measure_peak
from benchmarks.peers import PEERS, REFERENCES, TURNS, available, fastest, name_of, print_ratios, toml
from benchmarks.studies import median_s, run_study
from dlas.stack import Layer
from dlas.sweep.rows.layer_times import compared_sums, profile, timed_layers
from dlas.sweep.rows.results import Row

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
NETWORKS = (
    *("resnet18", "resnet50", "vgg16", "densenet161", "googlenet", "mobilenet_v2", "efficientnet_b0"),
    *("convnext_tiny", "vit_b_16", "swin_t"),
)
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
compiler  = [{compilers}]
hardware  = [{{ name = "local_cpu", threads = {count} }}]
[measure]
seconds = {seconds}
slices = {turns}
"""


def main(
    layers: str = ";".join(DENSE_LAYERS),
    networks: str = ",".join(NETWORKS),
    threads: str = "1,2",
    compilers: str = ",".join(OURS),
    algorithm: str = '"blocked"',
    trials: int = 32,
    peers: Annotated[str | None, typer.Option(help="By default all that are installed.")] = None,
    seconds: float = 5.0,
    out: Annotated[Path | None, typer.Option(help="Keep rows here, and resume from them.")] = None,
) -> None:
    """Print tables of layers, of networks, and of the kinds of layers in these."""
    beside = [PEERS[name] for name in available(peers)]
    ours = [OURS[name].format(trials=trials) for name in compilers.split(",")]
    listed = ", ".join([*ours, *map(toml, beside)])
    common = {"algorithm": algorithm, "compilers": listed, "seconds": seconds, "turns": TURNS}
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
                print_ratios(f"times of references over ours, {count} threads", speeds, [*OURS])
                _print_kinds(f"kinds of layers, {count} threads", speeds)


def _layer(folder: Path, name: str, common: dict[str, Any]) -> dict[str, Row]:
    return _run(folder / layer_folder(name), {**common, **layer_options(name)})


def _network(folder: Path, name: str, common: dict[str, Any]) -> dict[str, Row]:
    return _run(folder / name, {**common, "channels": 3, "size": 224, "model": f'"{name}"'})


def _run(folder: Path, options: dict[str, Any]) -> dict[str, Row]:
    """Return the row of every compiler for one model and number of threads."""
    rows = run_study(folder, STUDY.format(**options))
    return {name_of(row.compiler): row for row in rows}


def _print(title: str, results: dict[str, dict[str, Row]], peaks: tuple[float, float] | None) -> None:
    """Print speeds relative to the reference, and the share of the peak that our fastest reaches."""
    measured = {name for rows in results.values() for name in rows}
    columns = [name for name in (*OURS, *PEERS) if name in measured]
    table = Table("", *columns, "reference", "of the peak" if peaks else "", title=title, box=None)
    for name, rows in results.items():
        seconds = {compiler: median_s(row) for compiler, row in rows.items() if row.timed}
        reference = fastest([*REFERENCES], rows)
        cells = [_speed(rows[compiler], seconds, compiler, reference) for compiler in columns]
        best = fastest([*OURS], rows)
        share = ""
        if peaks and best:
            macs = sum(layer.get("macs") or 0 for layer in rows[best].layers)
            share = f"{2 * macs / seconds[best] / statistics.mean(peaks):.2f}"
        told = f"{reference}, {1e3 * seconds[reference]:.3g} ms" if reference else "none"
        table.add_row(name, *cells, told, share)
    Console().print(table)
    if peaks:
        Console().print(f"peak: {peaks[0] / 1e9:.0f} before, {peaks[1] / 1e9:.0f} GFLOP/s after")


def _print_kinds(title: str, results: dict[str, dict[str, Row]]) -> None:
    """Print what kinds of layers take of our fastest programs, and their speed against ONNX Runtime.

    The cost of both profilers is taken out, see :mod:`dlas.sweep.rows.layer_times`; the sums as
    profiled stand beside the networks' times below the table.
    """
    ours: dict[str, float] = defaultdict(float)
    theirs: dict[str, float] = defaultdict(float)
    macs: dict[str, int] = defaultdict(int)
    sums = []
    for network, rows in results.items():
        seconds = {compiler: median_s(row) for compiler, row in rows.items() if row.timed}
        best = fastest([*OURS], rows)
        if best is None or "onnxruntime" not in seconds:
            continue
        sums += [f"{network}, {name}: {_sums(rows[name])}" for name in (best, "onnxruntime")]
        beside = {layer["name"]: time_s for layer, time_s in timed_layers(rows["onnxruntime"])}
        for layer, own in timed_layers(rows[best]):
            kind, other = kind_of(layer), beside.get(layer["name"])
            if own and (other or "groups" not in layer):
                ours[kind] += own
                theirs[kind] += other or 0.0
                macs[kind] += layer.get("macs") or 0
    table = Table("", "share of the time", "GFLOP/s", "speed against onnxruntime", title=title, box=None)
    for kind in sorted(ours, key=ours.__getitem__, reverse=True):
        rate = (f"{2e-9 * macs[kind] / ours[kind]:.0f}", f"{theirs[kind] / ours[kind]:.2f}")
        table.add_row(kind, f"{ours[kind] / sum(ours.values()):.0%}", *(rate if macs[kind] else ("", "")))
    Console().print(table, *sums, sep="\n")


def _sums(row: Row) -> str:
    """Return the sum of a row's layers as profiled beside its latency."""
    timed = profile(row)
    return compared_sums(timed.profiled_s, timed.latency_s) if timed else "its layers were not timed"


def kind_of(layer: Layer) -> str:
    """Return a convolution's kernel size, stride and algorithm, or what another operator is."""
    if "groups" not in layer:
        return "linear" if layer.get("operator") in ("Gemm", "MatMul") else "other operators"
    depthwise = "depthwise " if layer["groups"] == layer["c"] > 1 else ""
    stride = f" / {layer['strides'][0]}" if layer["strides"][0] > 1 else ""
    return f"{depthwise}{layer['r']}x{layer['s']}{stride}, {layer['algorithm']}"


def _speed(row: Row, seconds: Mapping[str, float], compiler: str, reference: str | None) -> str:
    """Return a compiler's speed relative to the reference, or the status of a row without a time."""
    if compiler not in seconds:
        return row.status
    return f"{seconds[reference] / seconds[compiler]:.2f}" if reference else "-"


if __name__ == "__main__":
    typer.run(main)
