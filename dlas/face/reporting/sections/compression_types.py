"""Accuracy of networks with smaller types."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Figure, Panel
from dlas.face.reporting.context import Context, significant
from dlas.face.reporting.sections.compression_tables import (
    NETWORK,
    accuracy_interval,
    drawn_percent,
    images,
)


def types(context: Context, every: pd.DataFrame) -> Figure:
    """Return the accuracy of networks with smaller types beside that of the dense ones."""
    typed = every[(every["bits"] > 0) | (every["kind"] == "dense")].dropna(subset=["accuracy"])
    colours = context.colours("model")
    panels = []
    for dataset, inside in typed.groupby("dataset", sort=False):
        if inside["kind"].nunique() < 2:
            continue
        title = str(dataset) if "dataset" in context.varying else ""
        panels.append(Panel(title, charts.stacked([_mark(row) for row in inside.to_dict("records")])))
    x = "accuracy on test images, %"
    spec = charts.intervals(x, colours, logarithmic=False, domain=_domain(panels))
    sentence = f"Networks with smaller types beside the dense ones. {_most_lost(typed)}"
    title = "Accuracy of types"
    return Figure("accuracy-of-types", title, sentence, panels, {"": spec}, colours, "model", False)


def _mark(row: Mapping[Any, Any]) -> dict[str, Any]:
    low, high = accuracy_interval(row["accuracy"], images(row))
    text = f"{row['model']}, {row['compression']}: {100 * row['accuracy']:.2f} %"
    return {
        "p": row["line"],
        "y": row["compression"],
        "c": row["model"],
        "x": significant(100 * row["accuracy"]),
        "lo": drawn_percent(low),
        "hi": drawn_percent(high),
        "s": "",
        "n": False,
        "t": text,
    }


def _domain(panels: Sequence[Panel]) -> tuple[float, float]:
    rows = [row for panel in panels for row in panel.rows]
    accuracies = [row[name] for row in rows for name in ("x", "lo") if row[name] is not None]
    return max(0.0, math.floor(min(accuracies, default=0.0) / 5) * 5.0), 100.0


def _most_lost(typed: pd.DataFrame) -> str:
    """Return the largest loss of accuracy against a dense network, in a sentence."""
    dense = typed[typed["kind"] == "dense"].set_index([*NETWORK])["accuracy"]
    types = typed[typed["kind"] != "dense"].join(dense.rename("dense"), on=[*NETWORK])
    types = types.assign(lost=types["dense"] - types["accuracy"]).dropna(subset=["lost"])
    if types.empty:
        return "There is no dense network to compare them with."
    worst = max(types.to_dict("records"), key=lambda row: row["lost"])
    network = f"{worst['model']} under {worst['compression']}"
    return f"The largest loss is {100 * worst['lost']:.2f} points: {network}."
