"""The data of the page's script: points, figures and layers as columns, a third of the size of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Block, Chooser, Figure, Section
from dlas.face.reporting.context import NAMED, Context, significant
from dlas.face.reporting.sections import layers

LONGEST_REASON = 4000
"""Most characters of a reason."""
REASON_BYTES = 4_000_000
"""Most bytes of all reasons together."""
NUMBERS = {
    "ms": ("latency_s", 1e3),
    "low": ("latency_low_s", 1e3),
    "high": ("latency_high_s", 1e3),
    "first_run": ("first_run_s", 1e3),
    "samples": ("samples", 1),
    "runs": ("runs", 1),
    "accuracy": ("accuracy", 1),
    "error": ("error", 1),
    "parameters": ("parameters", 1),
    "macs": ("macs", 1),
    "size": ("model_bytes", 1),
    "nonzeros": ("nonzeros", 1),
    "effective": ("effective_macs", 1),
    "packed": ("packed_bytes", 1),
    "csr": ("csr_bytes", 1),
    "ratio": ("ratio", 1),
    "memory": ("peak_memory_bytes", 1),
    "coverage": ("coverage", 1),
    "trials": ("trials", 1),
    "load": ("load", 1),
}
"""Columns of numbers on the page: the frame's column, and the factor to the page's unit."""


def figures(sections: Sequence[Section]) -> list[Figure]:
    """Return all figures of a report."""
    return [figure for section in sections for block in section.blocks if (figure := _figure(block))]


def _figure(block: Block) -> Figure | None:
    return block if isinstance(block, Figure) else block.figure if isinstance(block, Chooser) else None


def data_of(context: Context, sections: Sequence[Section]) -> dict[str, Any]:
    """Return the script's data: axes, points, figures, and the layers that a reader may choose."""
    data = {
        "axes": context.varying,
        "named": [*NAMED],
        "worded": ["batch", "seed"],
        "full": context.abbreviations.full,
        "points": _columns(context),
        "figures": {figure.name: _drawing(figure) for figure in figures(sections)},
        "theme": charts.theme(),
        "gap": charts.GAP,
        "text": charts.TEXT,
        "long": charts.LONG,
    }
    chooser = next((b for s in sections for b in s.blocks if isinstance(b, Chooser)), None)
    if chooser is None:
        return data
    texts: dict[str, int] = {}
    timed = [
        {
            "p": line,
            "names": [texts.setdefault(layer.name, len(texts)) for layer in of],
            "algorithms": [texts.setdefault(layer.algorithm, len(texts)) for layer in of],
            "us": [significant(layer.latency_s * 1e6, 4) for layer in of],
            "sums": layers.sums(context, line),
        }
        for line in layers.shown(context)
        for of in [context.details.layers[line]]
    ]
    names = layers.names(context, chooser.first, chooser.second)
    chosen = {"first": chooser.first, "second": chooser.second, "labels": names}
    return data | {"layers": timed, "texts": list(texts), "chosen": chosen, "most_bars": layers.MOST_BARS}


def _drawing(figure: Figure) -> dict[str, Any]:
    """Return a figure for the script, with rows as columns."""
    panels = [{"variant": panel.variant, "rows": _packed(panel.rows)} for panel in figure.panels]
    return {"specs": dict(figure.specs), "panels": panels, "filtered": figure.filtered}


def _packed(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _columns(context: Context) -> dict[str, Any]:
    points = context.points
    columns: dict[str, Any] = {name: _coded(context.columns[name]) for name in NAMED}
    for name in ("status", "step", "noisy_reason", "folder"):
        columns[name] = _coded([None if pd.isna(value) else str(value) for value in points[name]])
    columns["reason"] = _reasons(points)
    columns["id"] = points["id"].astype(str).tolist()
    columns["started"] = _coded(
        [None if pd.isna(value) else value.strftime("%Y-%m-%d %H:%M:%S UTC") for value in points["started"]]
    )
    for name, (column, times) in NUMBERS.items():
        values = points[column].astype("float64").to_numpy() * times
        columns[name] = [significant(value, 5 if times != 1 else 9) for value in values.tolist()]
    return columns


def _coded(values: Sequence[str | None]) -> dict[str, list[Any]]:
    """Return the distinct texts, and for each point the index of its text, or -1 for none."""
    codes: dict[str, int] = {}
    numbers = [-1 if value is None else codes.setdefault(value, len(codes)) for value in values]
    return {"values": list(codes), "codes": numbers}


def _reasons(points: pd.DataFrame) -> dict[str, list[Any]]:
    """Return the reasons, each shortened so that all together stay within :data:`REASON_BYTES`."""
    reasons = [None if pd.isna(value) else str(value) for value in points["reason"]]
    different = len({value for value in reasons if value is not None})
    longest = max(200, min(LONGEST_REASON, REASON_BYTES // max(different, 1)))
    return _coded(
        [
            value
            if value is None or len(value) <= longest
            else f"{value[:longest]} … (`dlas show` prints it whole)"
            for value in reasons
        ]
    )
