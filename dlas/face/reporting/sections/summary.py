"""Summary of the report: the fastest points, failures, effects of tuning, what to try next."""

from __future__ import annotations

from collections import Counter

from dlas.analysis.matching import SETTING, groups
from dlas.analysis.winners import Times, Winner
from dlas.face.reporting.blocks import Block, Paragraph, Section
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections.advice import noise, retries, ties, untried
from dlas.face.reporting.sections.gains import compression, tuning
from dlas.face.reporting.sections.highlights import (
    against_runtimes,
    dependence,
    failures,
    fastest,
    winning_algorithms,
)
from dlas.face.reporting.sections.options import options
from dlas.face.tables.columns import NOTHING
from dlas.face.tables.table import Cell, Line, Table, columns_of, numbers_of
from dlas.sweep.rows.labels import factor
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.results import STATUSES


def section(context: Context) -> Section:
    """Return the fastest point of each setting, what stands out, and what to try next."""
    statuses = Counter(context.points["status"])
    ends = ", ".join(f"{statuses[status]:,} {status}" for status in STATUSES if statuses[status])
    lead = f"{counted(len(context.points))}: {ends}." if ends else _nothing(context)
    lead = " ".join([lead, *(f"{sentence}." for sentence in context.missing)])
    times = Times(context.points)
    best = [times.fastest(lines) for lines in groups(context.points, SETTING)]
    blocks: list[Block] = [_fastest(context, best)] if best else []
    highlights = [
        *fastest(context, best),
        *against_runtimes(context),
        *compression(context),
        *winning_algorithms(context),
        *tuning(context),
        *options(context),
        *dependence(context),
        *failures(context),
    ]
    if highlights:
        blocks.append(Paragraph("What stands out", highlights))
    if steps := [*retries(context, statuses), *noise(context), *ties(best), *untried(context, best)]:
        blocks.append(Paragraph("What to try next", steps))
    return Section("summary", "Summary", lead, blocks)


def _nothing(context: Context) -> str:
    """Return what to say where no point was measured."""
    return "Nothing of this was measured." if len(context.predicted) else "There are no rows yet."


def _fastest(context: Context, best: list[Winner]) -> Table:
    lines = [
        _line(context, setting.tolist(), winner)
        for setting, winner in zip(groups(context.points, SETTING), best, strict=True)
    ]
    columns = [
        *columns_of("setting", "fastest"),
        *numbers_of("ms [95 % interval]"),
        *numbers_of("untuned code", "runtime", group="speed-up over the best"),
        *numbers_of("timed"),
    ]
    caption = f"The fastest point of each setting, at any accuracy.{context.partly_means}"
    return Table("fastest", caption, columns, lines)


def _line(context: Context, setting: list[int], winner: Winner) -> Line:
    name, tried = Cell(context.setting(setting[0])), Cell(f"{winner.tried - winner.failed} of {winner.tried}")
    where = context.where(setting[0], SETTING)
    if not winner.points:
        nothing = [NOTHING] * 3
        return Line([name, Cell("none has a time", style="bad"), *nothing, tried], where)
    point = winner.points[0]
    tie = f"tie with {len(winner.points) - 1} more" if winner.tie else ""
    called = context.name(point, ("compression", "algorithm", "compiler"))
    cells = [
        name,
        Cell(called, note=tie, point=point, style="best"),
        Cell(context.interval(point)),
        _against(context, setting, point, "untuned"),
        _against(context, setting, point, "runtime"),
        tried,
    ]
    return Line(cells, where)


def _against(context: Context, setting: list[int], point: int, tuning: str) -> Cell:
    """Return the speed-up of a point over the fastest of a kind of compiler."""
    kinds = context.points["tuning"]
    others = [line for line in setting if context.timed[line] and kinds.iat[line] == tuning]
    if not others:
        return NOTHING
    other = min(others, key=context.median_ms)
    return Cell(factor(context.median_ms(other) / context.median_ms(point)), point=other)
