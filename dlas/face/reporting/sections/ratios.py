"""Speed-ups on matched points: tuned over untuned code, the algorithms here over the runtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlas.analysis.matching import SETTING, groups, identity, in_all, natural, paired
from dlas.analysis.roles import TUNINGS
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Figure, Panel, Section
from dlas.face.reporting.context import Context, significant, slug
from dlas.face.tables.table import Cell, Column, Line, Table, numbers_of
from dlas.sweep.rows import intervals
from dlas.sweep.rows.columns import SAMPLES
from dlas.sweep.rows.labels import MISSING, factor, times_as_fast
from dlas.sweep.rows.labels import points as points_of

NETWORK = (*SETTING, "compression")
ALONE, SAME = "alone", "same"
"""Attributes of a frame of pairs: the number of points without a partner, and the columns that matched."""


def tuning(context: Context) -> Section | Absent:
    """Return the speed-ups of hand-written and searched schedules over untuned code."""
    title = "Tuned against untuned"
    kind = context.points["tuning"]
    untuned, other = kind == "untuned", kind.isin(["scheduled", "tuned"])
    if not untuned.any() or not other.any():
        return Absent(title, "points of the same algorithm untuned and tuned")
    pairs = {
        name: _ratios(context, untuned, chosen, identity(("compiler",)))
        for name, chosen in _compilers(context, other).items()
    }
    lead = (
        "Each pair is one point compiled twice: equal in everything but the compiler. Right of 1 is faster "
        "than untuned code; a hollow mark is a tie."
    )
    figure = _tuning_figure(context, pairs)
    table = _table("tuning-ratios", pairs, "Speed-up over untuned code on matched points.")
    return Section("tuning", title, lead, [figure, table] if figure.panels else [table])


def runtimes(context: Context) -> Section | Absent:
    """Return the speed-up of our fastest code over runtimes that bring their own kernels."""
    title = "Against ONNX Runtime and PyTorch"
    runtime = context.points["tuning"] == "runtime"
    if not runtime.any() or runtime.all():
        return Absent(title, "points of a runtime with kernels of its own, beside points of our algorithms")
    lead = (
        "For each network and setting, the fastest of our algorithms under each compiler against each "
        "runtime on the same machine, threads and input. Right of 1, ours is the faster; a hollow mark is a "
        "tie."
    )
    pairs_by_runtime = {
        reference: {
            compiler: _ratios(context, chosen, ours, NETWORK)
            for compiler, ours in _compilers(context, ~runtime).items()
        }
        for reference, chosen in _compilers(context, runtime).items()
    }
    figure = _runtime_figure(context, pairs_by_runtime)
    tables = [
        _table(f"against-{slug(reference)}", pairs, f"Speed-up of our fastest algorithm over {reference}.")
        for reference, pairs in pairs_by_runtime.items()
    ]
    return Section("runtimes", title, lead, [figure, *tables] if figure.panels else tables)


def _compilers(context: Context, chosen: pd.Series) -> dict[str, pd.Series]:
    """Return the lines of each compiler among the chosen ones, the least tuned first."""
    points = context.points
    kinds = dict(zip(points.loc[chosen, "compiler"], points.loc[chosen, "tuning"], strict=True))
    ordered = sorted(kinds, key=lambda name: (TUNINGS.index(str(kinds[name])), natural(str(name))))
    return {str(name): chosen & (points["compiler"] == name) for name in ordered}


def _ratios(context: Context, first: pd.Series, second: pd.Series, same: Sequence[str]) -> pd.DataFrame:
    """Return matched pairs with the interval of their ratio."""
    pairs = paired(context.points, first, second, same)
    samples = context.points[SAMPLES].tolist()
    bounds = intervals.ratios(
        [samples[line] for line in pairs["first"]], [samples[line] for line in pairs["second"]]
    )
    pairs = pairs.assign(low=bounds[:, 1], high=bounds[:, 2])
    pairs.attrs |= {ALONE: len(groups(context.points[second], same)) - len(pairs), SAME: [*same]}
    return pairs


def _rows(pairs: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a figure's rows; the second of a pair is the point that a mark stands for."""
    columns = (pairs[name].tolist() for name in ("second", "ratio", "low", "high", "order"))
    return [
        {
            "p": line,
            "x": significant(ratio),
            "lo": significant(low),
            "hi": significant(high),
            "s": "",
            "n": order == 0,
            "t": _in_words(ratio, low, high, order),
        }
        for line, ratio, low, high, order in zip(*columns, strict=True)
    ]


def _in_words(ratio: float, low: float, high: float, order: int) -> str:
    return f"{times_as_fast(ratio)} [{factor(low)}, {factor(high)}]" + (" tie" if order == 0 else "")


def _tuning_figure(context: Context, pairs: Mapping[str, pd.DataFrame]) -> Figure:
    coloured = "compression" if "compression" in context.varying else "algorithm"
    rows = [
        {**row, "y": context.value(row["p"], "algorithm"), "c": context.value(row["p"], coloured)}
        for matched in pairs.values()
        for row in _rows(matched)
    ]
    rows.sort(key=lambda row: (natural(row["y"]), natural(row["c"])))
    colours = context.colours(coloured)
    spec = charts.intervals(
        "speed-up over untuned code",
        colours,
        logarithmic=True,
        reference=1,
        grouped=coloured == "compression",
    )
    slower = sum(int((matched["order"] < 0).sum()) for matched in pairs.values())
    sentence = f"Left of the dashed line, tuning made code slower: {slower} of {len(rows)} pairs."
    panels = _panels(context, rows, (*SETTING, "compiler"))
    return Figure(
        "tuned-against-untuned", "What tuning gains", sentence, panels, {"": spec}, colours, coloured
    )


def _runtime_figure(context: Context, pairs_by_runtime: Mapping[str, Mapping[str, pd.DataFrame]]) -> Figure:
    colours = {
        name: colour for name, colour in context.colours("compiler").items() if name in pairs_by_runtime
    }
    rows = [
        {**row, "y": compiler, "c": reference}
        for reference, pairs_of in pairs_by_runtime.items()
        for compiler, pairs in pairs_of.items()
        for row in _rows(pairs)
    ]
    spec = charts.intervals("speed-up over the runtime", colours, logarithmic=True, reference=1)
    faster = sum(
        int((pairs["order"] > 0).sum())
        for pairs_of in pairs_by_runtime.values()
        for pairs in pairs_of.values()
    )
    sentence = f"Right of the dashed line, ours is faster than that runtime: {faster} of {len(rows)} pairs."
    panels = _panels(context, rows, NETWORK)
    return Figure("against-runtimes", "Ours against runtimes", sentence, panels, {"": spec}, colours)


def _panels(context: Context, rows: list[dict[str, Any]], same: tuple[str, ...]) -> list[Panel]:
    places: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        places.setdefault(context.name(row["p"], same), []).append(row)
    return [Panel(title, charts.stacked(inside)) for title, inside in places.items()]


def _table(name: str, pairs: Mapping[str, pd.DataFrame], caption: str) -> Table:
    lines = []
    measured = {compiler: matched for compiler, matched in pairs.items() if len(matched)}
    same = next(iter(pairs.values())).attrs[SAME]
    shared = dict(zip(measured, in_all([*measured.values()], same), strict=True)) if measured else {}
    for compiler, matched in pairs.items():
        order, ratios = matched["order"], shared.get(compiler, matched)["ratio"]
        mean = factor(float(np.exp(np.log(ratios).mean()))) if len(ratios) else MISSING
        counts = [
            len(matched),
            (order > 0).sum(),
            (order == 0).sum(),
            (order < 0).sum(),
            matched.attrs[ALONE],
        ]
        lines.append(Line([Cell(compiler), *(Cell(str(int(count))) for count in counts), Cell(mean)]))
    numbers = ("matched", "faster", "tie", "slower", "without a partner", "speed-up, geometric mean")
    columns = [Column("compiler"), *numbers_of(*numbers)]
    every = max(map(len, shared.values()), default=0)
    note = f"The mean is over the {points_of(every)} that all compilers with a match have in common."
    if not measured:
        note = "Nothing is matched: no two points that belong together both have a result."
    return Table(name, f"{caption} {note}", columns, lines)
