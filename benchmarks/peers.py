"""Other runtimes beside ours: which there are, and ratios of times from the same turns."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.studies import chosen, median_s
from dlas.errors import MissingPackage
from dlas.sweep.rows.results import Row
from dlas.sweep.study import parts

REFERENCES: dict[str, dict[str, Any]] = {
    **{name: {"name": name} for name in ("onnxruntime", "openvino", "ncnn", "mnn")},
    "inductor": {"name": "torch_compile", "mode": "max-autotune", "freezing": True},
}
"""What ours is compared with, as studies and rows name it."""
PEERS: dict[str, dict[str, Any]] = {
    **REFERENCES,
    **{name: {"name": name} for name in ("torch_eager", "torch_compile")},
}
TURNS = 10
"""Turns that samples are spread over."""


@dataclass(frozen=True)
class Ratio:
    """A peer's time over ours, from the samples of the same turns."""

    median: float
    spread: float
    """Half of the distance between the quartiles of the turns' ratios."""

    def __str__(self) -> str:
        return f"{self.median:.2f} ± {self.spread:.2f}"


def installed(compiler: str) -> bool:
    """Whether a compiler's package is installed."""
    try:
        parts.make("compiler", compiler, {}).verify()
    except MissingPackage:
        return False
    return True


def available(listed: str | None) -> list[str]:
    """Return the peers in a list with commas, by default all that are installed; print those that are not."""
    if listed is not None:
        return chosen(listed, PEERS, "peer")
    missing = [name for name, content in PEERS.items() if not installed(str(content["name"]))]
    if missing:
        Console().print(f"not compared, since not installed: {', '.join(missing)}")
    return [name for name in PEERS if name not in missing]


def toml(content: Mapping[str, Any]) -> str:
    """Return a compiler with its options as a study lists it."""
    return "{ " + ", ".join(f"{name} = {_value(value)}" for name, value in content.items()) + " }"


def name_of(content: Mapping[str, Any]) -> str:
    """Return what tables call a compiler of a row: the name of a peer, else its own."""
    return next((name for name, peer in PEERS.items() if peer == content), str(content["name"]))


def fastest(names: Sequence[str], rows: Mapping[str, Row]) -> str | None:
    """Return the fastest of the compilers that have a time."""
    timed = [name for name in names if name in rows and rows[name].timed]
    return min(timed, key=lambda name: median_s(rows[name]), default=None)


def ratio(own: Row, other: Row) -> Ratio:
    """Return the time of another program over ours, each turn by itself.

    Rows keep samples in their order, and turns have equal numbers of them, unless time ends some early.
    """
    turns = min(TURNS, len(own.latency_s), len(other.latency_s))
    times = (np.array_split(np.array(row.latency_s), turns) for row in (other, own))
    ratios = [float(np.median(theirs) / np.median(ours)) for theirs, ours in zip(*times, strict=True)]
    low, high = np.quantile(ratios, (0.25, 0.75))
    return Ratio(statistics.median(ratios), float(high - low) / 2)


def print_ratios(title: str, results: Mapping[str, Mapping[str, Row]], ours: Sequence[str]) -> None:
    """Print the time of each reference over that of our fastest, and the deviation of its outputs.

    Below stand the geometric means over the networks that have both.
    """
    names = [name for name in REFERENCES if any(name in rows for rows in results.values())]
    table = Table("", *names, "best", "against the best", title=title, box=None)
    of_all: dict[str, list[float]] = {name: [] for name in (*names, "best")}
    for network, rows in results.items():
        own, best = fastest(ours, rows), fastest(names, rows)
        if own is None or best is None:
            table.add_row(network, *(rows[name].status if name in rows else "-" for name in names))
            continue
        found = {name: ratio(rows[own], rows[name]) for name in names if name in rows and rows[name].timed}
        for name, each in (*found.items(), ("best", found[best])):
            of_all[name].append(each.median)
        cells = [_cell(rows.get(name), found.get(name)) for name in names]
        table.add_row(f"{network}, {own}{_error(rows[own])}", *cells, best, str(found[best]))
    means = {
        name: f"{statistics.geometric_mean(values):.2f}" if values else "" for name, values in of_all.items()
    }
    table.add_row("geometric mean", *(means[name] for name in names), "", means["best"])
    Console().print(table)


def _cell(row: Row | None, found: Ratio | None) -> str:
    """Return a reference's ratio with the error of its outputs, or the status of a row without a time."""
    if row is None:
        return "-"
    return f"{found}{_error(row)}" if found else row.status


def _error(row: Row) -> str:
    return "" if row.error is None else f" (error {row.error:.0e})"


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'
