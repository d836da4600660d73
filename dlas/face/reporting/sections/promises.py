"""Expected and achieved speed-ups of compression: the paper's section 5.1.2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dlas.analysis.matching import PLACE, SETTING, groups
from dlas.analysis.roles import DENSE
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Block, Figure, Panel, Section
from dlas.face.reporting.context import Context, significant
from dlas.face.tables.table import Cell, Line, Table, columns_of, numbers_of
from dlas.sweep.rows.labels import MISSING, factor, times_as_fast

CASE = [*SETTING, "compiler"]
PLACE_AND_COMPILER = [*PLACE, "compiler"]


def section(context: Context) -> Section | Absent:
    """Return expected and achieved speed-ups."""
    title = "Expected against achieved speed-up"
    gains = context.evidence.all_speedups
    if gains.empty:
        return Absent(title, "points of a compressed network")
    lead = (
        "The expected speed-up follows from the work saved: 1 / (1 - ratio) for pruning, 32 / bits for "
        "types, the dense network's multiply-adds over its own for a path. Achieved is "
        "the time of the fastest dense algorithm over that of the compression's fastest "
        "algorithm, in the same setting under the same compiler; the share is achieved over expected. A "
        "dense kernel computes masked weights like any others; removing channels removes their work."
    )
    figure, means = _figure(context, gains), _means(context, gains)
    blocks: list[Block] = [figure] if figure.panels else []
    blocks += [means] if means.lines else []
    return Section("promises", title, lead, [*blocks, _table(context, gains)])


def _figure(context: Context, gains: pd.DataFrame) -> Figure:
    colours = {name: hue for name, hue in context.colours("compression").items() if name != DENSE}
    panels, told = [], gains.to_dict("records")
    for lines in groups(gains, CASE):
        case = [told[line] for line in lines]
        rows = [_mark(row) for row in case if row["expected"] > 0]
        if any(row["x"] for row in rows):
            panels.append(Panel(context.called(case[0], CASE), rows))
    compared = gains.dropna(subset=["share"])
    reached, slower = int((compared["share"] >= 1).sum()), int((compared["achieved"] < 1).sum())
    sentence = (
        "The diamond is the expected speed-up, the dot the achieved one, the number the share achieved: "
        f"{reached} of {len(compared)} reach their diamond, and {slower} lie left of the dashed line, slower "
        "than the dense network."
    )
    spec = charts.dumbbells("speed-up over the fastest dense algorithm", colours)
    return Figure(
        "expected-and-achieved",
        "Expected and achieved speed-up",
        sentence,
        panels,
        {"": spec},
        colours,
        "compression",
    )


def _mark(row: dict[Any, Any]) -> dict[str, Any]:
    return {
        "p": None if row["point"] < 0 else row["point"],
        "y": row["compression"],
        "c": row["compression"],
        "x": significant(row["achieved"]),
        "lo": significant(row["low"]),
        "hi": significant(row["high"]),
        "e": significant(row["expected"]),
        "share": "" if row["missing"] else percent(row["share"]),
        "s": f"✕ {row['missing']}" if row["missing"] else "",
        "t": row["missing"] or f"{percent(row['share'])} of {times_as_fast(row['expected'])}, as expected",
    }


def _table(context: Context, gains: pd.DataFrame) -> Table:
    columns = [
        *columns_of("setting", "compiler", "compression"),
        *numbers_of("expected", "achieved [95 % interval]", group="speed-up"),
        *numbers_of("share"),
        *columns_of("fastest algorithm", "fastest dense"),
    ]
    lines = [_line(context, row) for row in gains.to_dict("records")]
    caption = "Expected and achieved speed-up of each compression. “2 of 3”: one of three points has no time."
    return Table("expected-speedup", caption, columns, lines, names=3)


def _line(context: Context, row: dict[Any, Any]) -> Line:
    interval = f"{factor(row['achieved'])} [{factor(row['low'])}, {factor(row['high'])}]"
    achieved = Cell(row["missing"], style="bad") if row["missing"] else Cell(interval, point=row["point"])
    tried = f"{row['tried'] - row['failed']} of {row['tried']}" if row["failed"] else ""
    cells = [
        Cell(context.called(row)),
        Cell(row["compiler"]),
        Cell(row["compression"]),
        Cell(factor(row["expected"]) if row["expected"] > 0 else "unknown"),
        achieved,
        Cell(percent(row["share"]), style="good" if row["share"] >= 1 else ""),
        _algorithm(context, row["point"], tried),
        _algorithm(context, row["dense_point"]),
    ]
    return Line(cells, context.filters({name: row[name] for name in (*CASE, "compression")}))


def _algorithm(context: Context, line: int, note: str = "") -> Cell:
    if line < 0:
        return Cell(MISSING, note=note, style="muted")
    return Cell(context.value(line, "algorithm"), note=note, point=line)


def _means(context: Context, gains: pd.DataFrame) -> Table:
    """Return the mean share over the models of a place that have a share under every compression."""
    lines = []
    for place in groups(gains, PLACE_AND_COMPILER):
        inside = gains.iloc[place]
        shares = inside.pivot(index="model", columns="compression", values="share")
        complete = shares.dropna()
        if len(complete) < 2:
            continue
        first = inside.iloc[0]
        where = context.filters({name: first[name] for name in PLACE_AND_COMPILER})
        for compression, mean in complete.mean().items():
            cells = [
                Cell(context.called(first, PLACE_AND_COMPILER)),
                Cell(str(compression)),
                Cell(percent(mean)),
                Cell(f"{len(complete)} of {len(shares)}"),
            ]
            lines.append(Line(cells, {**where, "compression": str(compression)}))
    columns = [*columns_of("place", "compression"), *numbers_of("mean share", "models")]
    caption = (
        "The mean share of the expected speed-up, as the paper gives it, over those models of a place that "
        "have a time under every compression."
    )
    return Table("mean-share", caption, columns, lines, names=2)


def percent(share: float) -> str:
    """Return a share as the paper writes it: ``13.0 %``."""
    return f"{100 * share:.1f} %" if np.isfinite(share) else MISSING
