"""Number types: networks in float32, float16, bfloat16 and int8, every dense algorithm, against peers.

Studies measure them, so that all compared programs take turns on the device.  Times are processor
time on one thread, and elapsed time on several.  Speeds are relative to ONNX Runtime and to OpenVINO,
where they are installed, on the same network in the same type.  ONNX Runtime computes float16 and
bfloat16 in float32, OpenVINO float16 alone.  *Gain* is the speed-up over the same algorithm and
compiler in float32, beside the one expected from the bits of a number (DLAS, section 5.1.2).

On processors without VNNI, ONNX Runtime computes int8 twice: without saturation, and by its default
kernels, which add products of bytes in 16 bits: faster, but saturating.

    python -m benchmarks.precision [--networks resnet18] [--whole resnet50,mobilenet_v2]
                                   [--types float32,float16,bfloat16,int8] [--algorithms TOML] [--best TOML]
                                   [--compilers untuned,hand,metaschedule] [--trials 8]
                                   [--peers onnxruntime,openvino] [--threads 1,2] [--seconds 5]
                                   [--out FOLDER] [--figures FOLDER]
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.dense import OURS
from benchmarks.peers import installed
from benchmarks.studies import chosen, median_s, run_study
from dlas.face.reporting import context_of
from dlas.face.reporting.blocks import Figure, Section
from dlas.face.reporting.files import sheets, write_figure
from dlas.face.reporting.sections import promises
from dlas.networks.onnx.network import adds_bytes_in_32_bits
from dlas.sweep.rows.labels import factor, label, milliseconds
from dlas.sweep.rows.results import Row

NETWORKS, WHOLE = ("resnet18",), ("resnet50", "mobilenet_v2")
FLOAT32 = "float32"
REFERENCES = ("onnxruntime", "openvino")
"""Those that compute in smaller numbers."""
TYPES = {
    "float32": '"none"',
    "float16": '"float16"',
    "bfloat16": '"bfloat16"',
    "int8": '{ name = "int8", calibration = "none", images = 8 }',
}
ALGORITHMS = '"direct", "gemm", "spatial_pack", { name = "spatial_pack", layout = "blocked" }, "blocked"'
BEST = '"blocked"'
SATURATING = '{ name = "onnxruntime", saturating = true }'
STUDY = """
name = "precision"
[axes]
dataset     = [{{ name = "random", size = 224, classes = 1000, images = 8 }}]
model       = ["{network}"]
compression = [{types}]
algorithm   = [{algorithms}]
compiler    = [{compilers}]
hardware    = [{{ name = "local_cpu", threads = {count} }}]
[measure]
seconds = {seconds}
"""
IN_INT8_ALONE = """
[[skip]]
compiler    = {saturating}
compression = [{others}]
reason      = "nothing saturates in floating point"
"""


def main(
    networks: Annotated[str, typer.Option(help="By every algorithm.")] = ",".join(NETWORKS),
    whole: Annotated[str, typer.Option(help="By the best algorithm alone.")] = ",".join(WHOLE),
    types: str = ",".join(TYPES),
    algorithms: str = ALGORITHMS,
    best: str = BEST,
    compilers: str = ",".join(OURS),
    trials: int = 8,
    peers: Annotated[str | None, typer.Option(help="By default all that are installed.")] = None,
    threads: str = "1,2",
    seconds: float = 5.0,
    out: Annotated[Path | None, typer.Option(help="Keep rows here, and resume from them.")] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Draw expected and achieved speed-ups into this folder.")
    ] = None,
) -> None:
    """Print a table a network and number of threads."""
    kinds = chosen(types, TYPES, "type")
    ours = [OURS[name].format(trials=trials) for name in chosen(compilers, OURS, "compiler")]
    beside = [peer for peer in REFERENCES if installed(peer)] if peers is None else _names(peers)
    measured = dict.fromkeys(_names(networks), algorithms)
    measured |= {name: best for name in _names(whole) if name not in measured}
    with tempfile.TemporaryDirectory() as scratch:
        folder = out or Path(scratch)
        for count in map(int, threads.split(",")):
            for network, listed in measured.items():
                options = {"network": network, "algorithms": listed, "count": count, "seconds": seconds}
                study = written(kinds, ours, beside, options)
                print_table(f"{network}, {count} threads", run_study(folder / network, study), count)
        if figures:
            draw([folder / network for network in measured], figures)


def written(
    types: Sequence[str], ours: Sequence[str], peers: Sequence[str], options: Mapping[str, Any]
) -> str:
    """Return the study of a network and number of threads.

    Parameters
    ----------
    types, ours, peers : sequence of str
        Number types by name, our compilers in TOML, other runtimes by name.
    options : mapping
        What else ``STUDY`` has to be told.
    """
    compilers = [*ours, *(f'"{name}"' for name in peers)]
    skips = ""
    if "onnxruntime" in peers and "int8" in types and not adds_bytes_in_32_bits():
        compilers.append(SATURATING)
        others = ", ".join(TYPES[name] for name in types if name != "int8")
        skips = IN_INT8_ALONE.format(saturating=SATURATING, others=others) if others else ""
    listed = {"types": ", ".join(TYPES[name] for name in types), "compilers": ", ".join(compilers)}
    return STUDY.format(**listed, **options) + skips


def draw(folders: Sequence[Path], to: Path) -> None:
    """Write the figure of expected and achieved speed-ups, each type against float32, as SVG, PDF and PNG."""
    to.mkdir(parents=True, exist_ok=True)
    section = promises.section(context_of(folders))
    for block in section.blocks if isinstance(section, Section) else ():
        if isinstance(block, Figure):
            for name, spec in sheets(block):
                write_figure(spec, to / name)


def print_table(title: str, rows: Sequence[Row], threads: int) -> None:
    """Print a line for each type, algorithm and compiler, and one for each type and peer."""
    peers = list(dict.fromkeys(_compiler(row) for row in rows if row.compiler["name"] in REFERENCES))
    time = "CPU ms" if threads == 1 else "ms"
    against = [f"against {peer}" for peer in peers]
    table = Table("", "", "", time, *against, "gain", "expected", "of it", title=title, box=None)
    for row in sorted(rows, key=lambda row: ([*TYPES].index(_type(row)), row.compiler["name"] in REFERENCES)):
        if not row.timed:
            table.add_row(_type(row), _algorithm(row), _compiler(row), row.status)
            continue
        of_type = {_compiler(other): other for other in rows if _type(other) == _type(row)}
        speeds = [_speed(row, of_type.get(peer), threads) for peer in peers]
        single = next((other for other in rows if _type(other) == FLOAT32 and _same(row, other)), None)
        gain, expected = _speed(row, single, threads), row.expected_speedup or 1.0
        share = f"{float(gain) / expected:.0%}" if gain else ""
        told = milliseconds(_seconds(row, threads))
        names = _type(row), _algorithm(row), _compiler(row)
        table.add_row(*names, told, *speeds, gain, factor(expected), share)
    Console().print(table)


def _names(listed: str) -> list[str]:
    return [name for name in listed.split(",") if name]


def _type(row: Row) -> str:
    return FLOAT32 if row.compression["name"] == "none" else str(row.compression["name"])


def _algorithm(row: Row) -> str:
    return label(row.algorithm)


def _compiler(row: Row) -> str:
    """Return the name of our compiler, or the label of a peer."""
    return label(row.compiler) if row.compiler["name"] in REFERENCES else str(row.compiler["name"])


def _same(row: Row, other: Row) -> bool:
    """Whether two rows have the same algorithm and compiler."""
    return (row.algorithm, row.compiler) == (other.algorithm, other.compiler)


def _seconds(row: Row, threads: int) -> float:
    """Return the processor time on one thread, the median latency on several."""
    return row.cpu_s if threads == 1 and row.cpu_s is not None else median_s(row)


def _speed(row: Row, other: Row | None, threads: int) -> str:
    """Return how many times as fast as another program one is, nothing without a time of that."""
    if other is None or not other.timed:
        return ""
    return factor(_seconds(other, threads) / _seconds(row, threads))


if __name__ == "__main__":
    typer.run(main)
