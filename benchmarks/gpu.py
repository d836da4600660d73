"""Convolutions and networks on a GPU of this machine, against cuDNN through PyTorch.

Dense layers and networks, and sparse layers against the dense one in cuDNN, whose time does not depend
on the weights.  A study measures them, so that all compared programs take turns on the GPU; events
on it tell their times.  It needs a GPU, and ends with 2 and the reason where there is none.

    python -m benchmarks.gpu [--layers "NAME;..."] [--networks NAME,...] [--levels 0.9,0.95]
                             [--algorithms direct,gemm,...] [--sparse csr_direct,...] [--trials 32]
                             [--seconds 2] [--out FOLDER]
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.dense import DENSE_LAYERS
from benchmarks.layers import layer_folder, layer_options
from benchmarks.studies import disturbed, median_s, run_study
from dlas.stack import Hardware
from dlas.sweep.rows.labels import label
from dlas.sweep.rows.results import Row
from dlas.sweep.study import parts

HARDWARE = "local_cuda"
LIBRARY = "torch_eager"
"""Calls cuDNN, which tries its kernels in the first run; the faster of both layouts is compared with."""
DENSE = ("direct", "gemm", "spatial_pack", "winograd")
SPARSE = ("csr_direct", "csr_gemm", "csr_spatial_pack", "bsr_direct")
NETWORKS = ("resnet18", "mobilenet_v2")
SPARSE_LAYERS = tuple(name for name in DENSE_LAYERS if name.startswith(("3x3", "1x1")))
STUDY = """
name = "gpu"
[axes]
dataset     = [{{ name = "random", channels = {channels}, size = {size}, classes = 1000, images = 8 }}]
model       = [{model}]
compression = [{compression}]
algorithm   = [{algorithms}]
compiler    = ["untuned", "hand", {searched}{{ name = "torch_eager", channels_last = [false, true] }}]
hardware    = ["local_cuda"]
[measure]
seconds = {seconds}
"""
SKIPS = """
[[skip]]
compression = "none"
algorithm   = [{algorithms}]
reason      = "nothing is zero"
[[skip]]
compression = "weight_pruning"
compiler    = "torch_*"
reason      = "the time of a dense library does not depend on the weights"
"""


def main(
    layers: str = ";".join(DENSE_LAYERS),
    networks: str = ",".join(NETWORKS),
    levels: str = "0.9,0.95",
    algorithms: str = ",".join(DENSE),
    sparse: str = ",".join(SPARSE),
    trials: Annotated[int, typer.Option(help="Of a search beside our best guesses; 0 for none.")] = 0,
    seconds: float = 2.0,
    out: Annotated[Path | None, typer.Option(help="Keep rows here, and resume from them.")] = None,
) -> None:
    """Print speeds against cuDNN, of dense layers and networks and of sparse layers."""
    device: Hardware = parts.make("hardware", HARDWARE, {})
    if reason := device.unsupported():
        typer.echo(f"this benchmark needs a GPU that runs CUDA: {reason}", err=True)
        raise typer.Exit(2)
    searched = f'{{ name = "metaschedule", trials = {trials} }}, ' if trials else ""
    common = {"searched": searched, "seconds": seconds}
    dense = {**common, "compression": '"none"', "algorithms": _listed(algorithms)}
    pruned = {
        **common,
        "compression": f'"none", {{ name = "weight_pruning", recipe = "none", level = [{levels}] }}',
        "algorithms": _listed(sparse),
    }
    with tempfile.TemporaryDirectory() as scratch:
        folder = out or Path(scratch)
        named = [name for name in layers.split(";") if name]
        found = {name: _run(folder / "dense", name, dense) for name in named}
        for name in filter(None, networks.split(",")):
            options = {**dense, "channels": 3, "size": 224, "model": f'"{name}"'}
            found[name] = run_study(folder / name, STUDY.format(**options))
        _print("dense", found)
        sparse_layers = [name for name in named if name in SPARSE_LAYERS]
        _print("sparse", {name: _run(folder / "sparse", name, pruned) for name in sparse_layers})


def _run(folder: Path, layer: str, options: dict[str, object]) -> list[Row]:
    """Return the rows of a layer; pruned weights run on our code, the dense ones on cuDNN."""
    text = STUDY.format(**options, **layer_options(layer))
    skips = SKIPS.format(**options) if "weight_pruning" in str(options["compression"]) else ""
    return run_study(folder / layer_folder(layer), text + skips)


def _listed(names: str) -> str:
    return ", ".join(f'"{name}"' for name in names.split(","))


def _print(title: str, results: dict[str, list[Row]]) -> None:
    """Print each algorithm's speed by its fastest compiler, relative to cuDNN's, and that compiler."""
    table = Table("", "algorithm", "speed", "compiler", "cuDNN", title=f"{title}: against cuDNN", box=None)
    for name, rows in results.items():
        libraries = [median_s(row) for row in rows if row.compiler["name"] == LIBRARY and row.timed]
        reference = min(libraries, default=float("nan"))
        kinds = dict.fromkeys(_kind(row) for row in rows if row.compiler["name"] != LIBRARY)
        for place, kind in enumerate(kinds):
            own = [row for row in rows if row.compiler["name"] != LIBRARY and _kind(row) == kind]
            told = f"{1e3 * reference:.3g} ms" if libraries else "none"
            table.add_row("" if place else name, kind, *_speed(own, reference), "" if place else told)
    console = Console()
    console.print(table, disturbed(row for rows in results.values() for row in rows), sep="\n")


def _kind(row: Row) -> str:
    """Return a row's algorithm, with the level of its pruning."""
    level = row.compression.get("level")
    return label(row.algorithm) + (f" at {100 * level:.0f} %" if level else "")


def _speed(rows: Sequence[Row], reference: float) -> tuple[str, str]:
    """Return the speed of the fastest row and its compiler; statuses where none has a time."""
    timed = [row for row in rows if row.timed]
    if not timed:
        return ", ".join(sorted({row.status for row in rows})), ""
    fastest = min(timed, key=median_s)
    return f"{reference / median_s(fastest):.2f}", label(fastest.compiler)


if __name__ == "__main__":
    typer.run(main)
