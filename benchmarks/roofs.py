"""What bounds the convolutions of measured networks: ``python -m benchmarks.roofs FOLDER...``.

For each row of the folders there is its latency, that of its convolutions, and the least time that these
could take on this machine: for each layer the slowest of multiply-adds in their type, loads of inputs where
weights are left out, and bytes of weights and of images (:mod:`benchmarks.roofline`).  The columns
of single bounds are sums over all layers.  The rows must have been measured on this machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.roofline import Roof, measure_roof
from benchmarks.studies import median_s
from dlas.sweep.rows.labels import label
from dlas.sweep.rows.layer_times import profile
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.rows.schema import Layer

BOUNDS = ("FMAs", "loads", "weights", "images")


def main() -> None:
    """Print a table for each number of threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    folders = parser.parse_args().folders
    rows = [row for folder in folders for row in read_rows(folder) if row.timed and _convolutions(row)]
    if not rows:
        parser.error(f"no timed row tells the convolutions of its build in {', '.join(map(str, folders))}")
    for threads in sorted({int(row.device.get("threads", 1)) for row in rows}):
        chosen = [row for row in rows if int(row.device.get("threads", 1)) == threads]
        Console(width=150).print(_table(chosen, measure_roof(threads)))


def _table(rows: Sequence[Row], roof: Roof) -> Table:
    rates = [f"{name} {rate / 1e9:.0f}" for name, rate in {"float32": roof.flops, **roof.dots}.items()]
    title = f"{roof.threads} threads, GFLOP/s in registers: {', '.join(rates)}; ms"
    names = ("network", "convolutions", "roof", "share", *BOUNDS, "most often")
    table = Table("compression", "algorithm", *names, title=title, box=None)
    for row in sorted(rows, key=median_s):
        table.add_row(label(row.compression), label(row.algorithm), *_cells(row, roof))
    return table


def _cells(row: Row, roof: Roof) -> Iterator[str]:
    """Yield a row's times and bounds in milliseconds, and which bound is the slowest of most of the time."""
    layers = list(_convolutions(row))
    limits = [bounds(layer, roof) for layer, _ in layers]
    measured, least = sum(seconds for _, seconds in layers), sum(max(found.values()) for found in limits)
    yield f"{1e3 * median_s(row):.2f}"
    yield f"{1e3 * measured:.2f}"
    yield f"{1e3 * least:.2f}"
    yield f"{least / measured:.2f}"
    for name in BOUNDS:
        yield f"{1e3 * sum(found[name] for found in limits):.2f}"
    mostly = {name: sum(found[name] for found in limits if slowest(found) == name) for name in BOUNDS}
    yield slowest(mostly)


def slowest(bounds: dict[str, float]) -> str:
    """Return which of a layer's bounds is the roof."""
    return max(bounds, key=lambda name: bounds[name])


def _convolutions(row: Row) -> list[tuple[Layer, float]]:
    """Return the convolutions that the row's build describes and timed, with their seconds."""
    timed = profile(row)
    if timed is None:
        return []
    pairs = zip(row.layers, timed.seconds, strict=True)
    return [(layer, seconds) for layer, seconds in pairs if seconds and "types" in layer and "k" in layer]


def bounds(layer: Layer, roof: Roof) -> dict[str, float]:
    """Return the least seconds that a layer takes with its algorithm, by what limits it."""
    algorithm = str(layer.get("algorithm"))
    blocks = int(layer.get("options", {}).get("size", 4)) if algorithm.startswith("bsr_") else 1
    height = blocks if algorithm.startswith(("bsr_", "csr_")) else 0
    shifted = algorithm.endswith("_direct") and layer["r"] * layer["s"] > 1
    return roof.limits(layer, height, shifted)


if __name__ == "__main__":
    main()
