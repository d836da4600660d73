"""Whole networks, pruned, against ONNX Runtime and dense PyTorch; their slow layers; their compile times.

Weights are random, and pruned to the same level in every layer unless --criterion says otherwise:
times depend only on which weights are zero.  At each level, the pruned network takes turns with
ONNX Runtime on the same weights.

    python -m benchmarks.sparse_networks [--networks resnet18,...] [--levels 0.9,0.95] [--threads 1,2]
                                         [--algorithms csr_direct,...] [--trials 8] [--criterion l1]
                                         [--compiling resnet50] [--seconds 5] [--out FOLDER] [--smoke]
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.studies import disturbed, median_s, run_study
from dlas.sweep.rows.labels import label
from dlas.sweep.rows.layer_times import timed_layers
from dlas.sweep.rows.results import Row

NETWORKS = "resnet18,resnet50,vgg16"
GOALS = {0.9: 2.0, 0.95: 3.0}
"""Goals for the speed-up over ONNX Runtime, by level."""
MOST_LAYERS = 6
"""Most layers that are named where a goal is missed."""
STUDY = """
name = "sparse-networks"
[axes]
dataset     = [{{ name = "random", size = {size}, classes = 1000, images = 2 }}]
model       = ["{model}"]
compression = [{compressions}]
algorithm   = [{algorithms}]
compiler    = [{compilers}]
hardware    = [{{ name = "local_cpu", threads = {threads} }}]
[measure]
seconds = {seconds}
"""
RULES = """
[[skip]]
compression = "none"
algorithm   = [{sparse}]
reason      = "nothing is zero"
[[skip]]
compression = "weight_pruning"
algorithm   = [{dense}]
reason      = "a dense kernel takes as long, whatever the weights are"
[[skip]]
compression = "weight_pruning"
compiler    = "torch_*"
reason      = "a dense kernel takes as long, whatever the weights are"
"""


def main(
    networks: str = NETWORKS,
    levels: str = "0.9,0.95",
    algorithms: str = "csr_direct",
    threads: str = "1,2",
    size: int = 224,
    dense: str = '{ name = "spatial_pack", layout = "blocked" }',
    criterion: Annotated[str, typer.Option(help="random: alike in all layers; l1: the smallest of all.")] = (
        "random"
    ),
    trials: Annotated[int, typer.Option(help="Of a search beside our best guesses; 0 for none.")] = 0,
    compiling: Annotated[str, typer.Option(help="Networks whose compile times are compared.")] = "resnet50",
    seconds: float = 5.0,
    out: Annotated[Path | None, typer.Option(help="Keep rows here, and resume from them.")] = None,
    smoke: Annotated[bool, typer.Option(help="One small network, briefly: whether it works.")] = False,
) -> None:
    """Print speeds of networks, the layers that limit them, and ratios of compile times."""
    if smoke:
        networks, compiling, threads, size, seconds = "resnet18", "resnet18", "1", 64, 0.2
    shares = sorted(map(float, levels.split(",")))
    sparse = [f'"{name}"' for name in algorithms.split(",")]
    searched = [f'{{ name = "metaschedule", trials = {trials} }}'] if trials else []
    options = {
        "size": size,
        "seconds": seconds,
        "algorithms": ", ".join([dense, *sparse]),
        "compressions": ", ".join(['"none"', *(_pruned(level, criterion) for level in shares)]),
        "compilers": ", ".join(
            ['"hand"', *searched, '"onnxruntime"', '{ name = "torch_eager", channels_last = [false, true] }']
        ),
    }
    rules = RULES.format(sparse=", ".join(sparse), dense=dense)
    with tempfile.TemporaryDirectory() as scratch:
        folder = out or Path(scratch)
        for count in map(int, threads.split(",")):
            results = {}
            for model in networks.split(","):
                study = STUDY.format(**options, model=model, threads=count) + rules
                results[model] = run_study(folder / model, study)
            _print(results, shares, count)
        _print_compiling(folder, compiling.split(",") if compiling else [], sparse, dense, criterion, size)


def _pruned(level: float, criterion: str) -> str:
    return f'{{ name = "weight_pruning", recipe = "none", criterion = "{criterion}", level = {level} }}'


def _print(results: dict[str, list[Row]], levels: Sequence[float], threads: int) -> None:
    console = Console(width=150)
    on = f"{threads} thread" + ("s" if threads > 1 else "")
    table = Table("", "", "algorithm", "compiler", "ms", "against ONNX Runtime", "goal", box=None, title=on)
    behind = []
    for rows in results.values():
        for level in (0.0, *levels):
            here = [row for row in rows if row.compression.get("level", 0.0) == level]
            library = _library(here)
            others = [row for row in here if row.compiler["name"] != "onnxruntime"]
            ours = sorted(others, key=lambda row: (not row.timed, median_s(row)))
            for row in ours:
                table.add_row(*_line(row, library, level))
            if library and ours and level and ours[0].timed:
                behind += _furthest_behind(ours[0], library, level)
    console.print(table)
    console.print(disturbed(row for rows in results.values() for row in rows))
    if behind:
        columns = ("network", "level", "layer", "share of the time", "nonzeros", "against ONNX Runtime")
        title = f"{on}: slowest layers of the networks that miss their goal"
        layers = Table(*columns, box=None, title=title)
        for cells in behind:
            layers.add_row(*cells)
        console.print(layers)


def _library(rows: Sequence[Row]) -> Row | None:
    """Return ONNX Runtime's row."""
    return next((row for row in rows if row.compiler["name"] == "onnxruntime" and row.timed), None)


def _line(row: Row, library: Row | None, level: float) -> list[str]:
    name = [row.model["name"], f"{100 * level:.0f} %", label(row.algorithm), label(row.compiler)]
    if not row.timed:
        return [*name, row.status, "", ""]
    speed = f"{median_s(library) / median_s(row):.2f}" if library else ""
    return [*name, f"{median_s(row) * 1e3:.2f}", speed, f"{GOALS[level]:.1f}" if level in GOALS else ""]


def _furthest_behind(row: Row, library: Row, level: float) -> list[list[str]]:
    """Return the layers furthest behind the goal; none where it is reached."""
    goal = GOALS.get(level)
    if goal is None or median_s(library) / median_s(row) >= goal:
        return []
    dense_s = {layer["name"]: time_s for layer, time_s in timed_layers(library)}
    timed = [(layer, time_s) for layer, time_s in timed_layers(row) if time_s]
    total = sum(time_s for _, time_s in timed)
    timed.sort(key=lambda pair: dense_s.get(pair[0]["name"], 0.0) / goal - pair[1])
    return [
        [
            row.model["name"],
            f"{100 * level:.0f} %",
            layer["name"],
            f"{time_s / total:.1%}",
            f"{layer['nonzeros']:,}" if "nonzeros" in layer else "",
            f"{dense_s[layer['name']] / time_s:.2f}" if dense_s.get(layer["name"]) else "",
        ]
        for layer, time_s in timed[:MOST_LAYERS]
    ]


def _print_compiling(
    folder: Path, networks: Sequence[str], sparse: Sequence[str], dense: str, criterion: str, size: int
) -> None:
    """Print build times relative to the dense network's; a study for each, so that none waits for turns."""
    if not networks:
        return
    level = max(GOALS)
    table = Table(
        "", "algorithm", "s", "dense, s", "ratio", box=None, title=f"building, pruned by {100 * level:.0f} %"
    )
    for model in networks:
        options = {"model": model, "compilers": '"hand"', "threads": 1, "size": size, "seconds": 0.1}
        (whole,) = run_study(
            folder / f"build_{model}_dense",
            STUDY.format(**options, algorithms=dense, compressions='"none"'),
        )
        for name in sparse:
            text = STUDY.format(**options, algorithms=name, compressions=_pruned(level, criterion))
            (row,) = run_study(folder / f"build_{model}_{name.strip(chr(34))}", text)
            seconds, reference = (_build_s(built) for built in (row, whole))
            table.add_row(
                model,
                label(row.algorithm),
                f"{seconds:.1f}",
                f"{reference:.1f}",
                f"{seconds / reference:.2f}",
            )
    Console().print(table)


def _build_s(row: Row) -> float:
    """Return the seconds that a row's build took, also where it was in the cache."""
    return row.seconds.get("build", row.cached.get("build", float("nan")))


if __name__ == "__main__":
    typer.run(main)
