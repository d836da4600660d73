"""Accuracy against latency, energy, size and memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dlas.analysis.matching import PLACE_OF_SEEDS, groups
from dlas.analysis.pareto import COSTS, accuracies, pareto
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Block, Figure, Panel, Section
from dlas.face.reporting.context import Context, scale, significant
from dlas.face.tables.columns import cell_of, in_bytes
from dlas.face.tables.table import Cell, Column, Line, Table, columns_of, numbers_of

UNITS = {
    "latency_s": ("ms", 1e3),
    "energy_j": ("mJ", 1e3),
    "model_bytes": ("MB", 1e-6),
    "peak_memory_bytes": ("MB", 1e-6),
}
NETWORK = ["model", "compression", "seed"]


def section(context: Context) -> Section | Absent:
    """Return accuracy against each cost that is known, with its Pareto set."""
    title = "Accuracy against latency, size and memory"
    fronts = {cost: _front(context, cost) for cost in COSTS}
    if len(fronts["latency_s"].drop_duplicates(NETWORK)) < 2:
        return Absent(title, "two networks with a time and an accuracy")
    lead = (
        "Each dot is the cheapest point of a network, a model under a compression. Large dots on the line "
        "are the Pareto set: no other network of the same dataset and device has at least the accuracy at "
        "a lower cost, or a higher accuracy at the same cost."
    )
    blocks: list[Block] = [_figure(context, fronts), _table(context, fronts["latency_s"])]
    return Section("accuracy", title, lead, blocks)


def _front(context: Context, cost: str) -> pd.DataFrame:
    """Return each network's cheapest point, and whether it is in the Pareto set of its place."""
    points = context.points.assign(accuracy=accuracies(context.points))
    usable = points[context.timed & points["accuracy"].notna() & points[cost].notna()]
    cheapest = usable.sort_values(cost, kind="stable").drop_duplicates([*PLACE_OF_SEEDS, *NETWORK])
    return cheapest.assign(front=pareto(cheapest, cost))


def _figure(context: Context, fronts: Mapping[str, pd.DataFrame]) -> Figure:
    fastest = fronts["latency_s"]
    coloured = "compression" if fastest["compression"].nunique() > 1 else "model"
    colours = context.colours(coloured)
    panels = [
        _panel(context, cost, inside, coloured)
        for place in groups(context.points, PLACE_OF_SEEDS)
        for cost, front in fronts.items()
        if len(inside := front[front.index.isin(place)]) > 1
    ]
    specs = {
        f"{cost} {name}": charts.scatter(
            f"{title}, {UNITS[cost][0]}", "accuracy, %", colours, logarithmic=name == "log"
        )
        for cost, title in COSTS.items()
        if len(fronts[cost])
        for name in ("linear", "log")
    }
    missing = len(context.points.drop_duplicates([*PLACE_OF_SEEDS, *NETWORK])) - len(fastest)
    sentence = (
        f"Up and left is better. {int(fastest['front'].sum())} of {len(fastest)} networks are in the Pareto "
        "set "
        "of accuracy and latency." + (f" {missing} more have no time or no accuracy." if missing else "")
    )
    title = "Accuracy against cost"
    return Figure("accuracy-and-cost", title, sentence, panels, specs, colours, coloured, across=3)


def _panel(context: Context, cost: str, front: pd.DataFrame, coloured: str) -> Panel:
    ordered = front.sort_values(cost, kind="stable")
    columns = (ordered[name].tolist() for name in (cost, "accuracy", "front", coloured))
    rows = [
        {
            "p": line,
            "x": significant(value * UNITS[cost][1]),
            "y": significant(100 * accuracy),
            "fy": significant(100 * accuracy) if best else None,
            "f": best,
            "c": str(label),
        }
        for line, value, accuracy, best, label in zip(ordered.index.tolist(), *columns, strict=True)
    ]
    place = context.called(ordered.iloc[0], PLACE_OF_SEEDS)
    title = COSTS[cost] + (f" · {place}" if _several(context) else "")
    return Panel(title, rows, f"{cost} {scale(row['x'] for row in rows)}")


def _several(context: Context) -> bool:
    return any(name in context.varying for name in PLACE_OF_SEEDS)


def _table(context: Context, front: pd.DataFrame) -> Table:
    """Return the Pareto set of accuracy and latency."""
    lines = [
        _line(context, row)
        for inside in groups(front, PLACE_OF_SEEDS)
        for row in front.iloc[inside].query("front").sort_values("latency_s").itertuples()
    ]
    columns = [
        *columns_of("place", "network"),
        *numbers_of("accuracy", "ms [95 % interval]"),
        Column("computed by"),
        *numbers_of("size", "as packed", "peak memory"),
    ]
    caption = (
        "The Pareto set of accuracy and latency, the fastest first. Beside a network's size is that of its "
        "weights as the build packs them, which a runtime with its own kernels does not tell."
    )
    return Table("pareto", caption, columns, lines, names=2)


def _line(context: Context, row: Any) -> Line:
    line = int(row.Index)
    cells = [
        Cell(context.name(line, PLACE_OF_SEEDS) if _several(context) else "all"),
        Cell(context.name(line, NETWORK)),
        Cell(f"{100 * row.accuracy:.2f} %"),
        Cell(context.interval(line), point=line),
        Cell(context.name(line, ("algorithm", "compiler"))),
        *(cell_of(size, in_bytes) for size in (row.model_bytes, row.packed_bytes, row.peak_memory_bytes)),
    ]
    return Line(cells, context.where(line, (*PLACE_OF_SEEDS, "model", "compression")))
