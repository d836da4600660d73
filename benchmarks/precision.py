"""Number types: networks in float32, float16 and int8, every dense algorithm, against other runtimes.

A study measures them, so that all compared programs take turns on the device.  A speed is that
against the faster of ONNX Runtime and OpenVINO, where both are installed, on the same network in
the same type; *gain* is the speed-up of a program's fastest algorithm over the same in float32,
beside what the bits of a number let expect (DLAS, section 5.1.2).

    python -m benchmarks.precision [--networks resnet18,resnet50,mobilenet_v2] [--types float32,float16,int8]
                                   [--algorithms TOML] [--compilers untuned,hand,metaschedule] [--trials 8]
                                   [--peers onnxruntime,openvino] [--threads 1,2] [--seconds 5] [--out FOLDER]
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.dense import OURS, REFERENCES, installed
from benchmarks.studies import median_s, outcome, run_study
from dlas.rows.results import Row

NETWORKS = ("resnet18", "resnet50", "mobilenet_v2")
TYPES = {
    "float32": '"none"',
    "float16": '"float16"',
    "bfloat16": '"bfloat16"',
    "int8": '{ name = "int8", calibration = "none", images = 8 }',
}
ALGORITHMS = '"direct", "gemm", "spatial_pack", { name = "spatial_pack", layout = "blocked" }'
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


def main(
    networks: str = ",".join(NETWORKS),
    types: str = ",".join(TYPES),
    algorithms: str = ALGORITHMS,
    compilers: str = "untuned,hand",
    trials: int = 8,
    peers: Annotated[str | None, typer.Option(help="By default all that are installed.")] = None,
    threads: str = "1,2",
    seconds: float = 5.0,
    out: Annotated[Path | None, typer.Option(help="Keep rows here, and resume from them.")] = None,
) -> None:
    """Print a table a network and number of threads."""
    beside = [peer for peer in REFERENCES if installed(peer)] if peers is None else peers.split(",")
    ours = [OURS[name].format(trials=trials) for name in compilers.split(",")]
    given: dict[str, Any] = {
        "types": ", ".join(TYPES[name] for name in types.split(",")),
        "algorithms": algorithms,
        "compilers": ", ".join([*ours, *(f'"{name}"' for name in beside if name)]),
        "seconds": seconds,
    }
    with tempfile.TemporaryDirectory() as scratch:
        for count in map(int, threads.split(",")):
            for network in networks.split(","):
                study = STUDY.format(**given, network=network, count=count)
                rows = list(run_study((out or Path(scratch)) / network, study))
                _print(f"{network}, {count} threads", rows)


def _print(title: str, rows: list[Row]) -> None:
    """Print the speed of every algorithm under every compiler, type by type, and the gains over float32."""
    ours = [name for name in OURS if any(row.compiler["name"] == name for row in rows)]
    table = Table("", "", *ours, "reference", "gain", "expected", title=title, box=None)
    for kind in dict.fromkeys(_type(row) for row in rows):
        of_type = [row for row in rows if _type(row) == kind]
        reference = _fastest(row for row in of_type if row.compiler["name"] in REFERENCES)
        for algorithm in dict.fromkeys(_algorithm(row) for row in of_type if row.compiler["name"] in OURS):
            own = {row.compiler["name"]: row for row in of_type if _algorithm(row) == algorithm}
            cells = [_speed(own.get(name), reference) for name in ours]
            gain = _gain(own.values(), [row for row in rows if _algorithm(row) == algorithm])
            expected = f"{own[ours[0]].expected_speedup or 1:.1f}" if ours[0] in own else ""
            table.add_row(kind, algorithm, *cells, _told(reference), gain, expected)
    Console().print(table)


def _type(row: Row) -> str:
    return "float32" if row.compression["name"] == "none" else str(row.compression["name"])


def _algorithm(row: Row) -> str:
    return ", ".join(str(value) for value in row.algorithm.values())


def _fastest(rows: Iterable[Row]) -> Row | None:
    return min((row for row in rows if row.timed), key=median_s, default=None)


def _speed(row: Row | None, reference: Row | None) -> str:
    if row is None or not row.timed:
        return "" if row is None else outcome(row)
    return f"{median_s(reference) / median_s(row):.2f}" if reference else f"{1e3 * median_s(row):.3g} ms"


def _gain(own: Iterable[Row], others: Iterable[Row]) -> str:
    """Return the speed-up of the fastest program over the fastest in float32."""
    fastest, single = _fastest(own), _fastest(row for row in others if _type(row) == "float32")
    return f"{median_s(single) / median_s(fastest):.2f}" if fastest and single else ""


def _told(reference: Row | None) -> str:
    if reference is None:
        return "none"
    return f"{reference.compiler['name']}, {1e3 * median_s(reference):.3g} ms"


if __name__ == "__main__":
    typer.run(main)
