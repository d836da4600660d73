"""All points and their statuses."""

from __future__ import annotations

from collections import Counter
from typing import Any

from dlas.analysis.matching import SETTING, groups, natural
from dlas.analysis.roles import DENSE, TUNINGS
from dlas.face.reporting.blocks import Absent, Block, Matrix, Section
from dlas.face.reporting.context import Context
from dlas.face.tables.table import Cell, Column, Line, Table, columns_of, numbers_of
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.labels import shortened
from dlas.sweep.rows.reasons import alike
from dlas.sweep.rows.results import STATUSES

MOST_REASONS = 30


def section(context: Context) -> Section | Absent:
    """Return the matrix, and why points have no time."""
    lead = (
        "All points. A number is a median latency in milliseconds, greener if faster within its setting, "
        "with ~ where the machine was disturbed; a word is the status of a point that is not ok. Select a "
        "point for its reason and its other values."
    ) + context.partly_means
    blocks: list[Block] = [matrix(context)] if len(context.points) else []
    if (context.points["status"] != "ok").any():
        blocks.append(_reasons(context))
    return Section("points", "All points", lead, blocks)


def matrix(context: Context) -> Matrix:
    """Return all points: compilers and algorithms across, settings and compressions down."""
    points = context.points
    columns = _columns(context)
    places = {column: place for place, column in enumerate(columns)}
    compressed = points["compression"].nunique(dropna=False) > 1
    settings = []
    for setting in groups(points, SETTING):
        lines = []
        for inside in groups(points.iloc[setting], ["compression"]):
            cells: list[int | None] = [None] * len(columns)
            for line in setting[inside].tolist():
                cells[places[context.value(line, "compiler"), context.value(line, "algorithm")]] = line
            first = int(setting[inside][0])
            lines.append(
                (context.value(first, "compression") if compressed else context.setting(first), cells)
            )
        lines.sort(key=lambda labelled: (labelled[0] != DENSE, natural(labelled[0])))
        settings.append((context.setting(int(setting[0])), lines))
    if not compressed:  # then a setting is a line, and needs no heading
        settings = [("", [line for _, lines in settings for line in lines])]
    return Matrix(columns, settings)


def _columns(context: Context) -> list[tuple[str, str]]:
    """Return compilers with their algorithms, the untuned first and runtimes last."""
    tunings = {
        (context.value(line, "compiler"), context.value(line, "algorithm")): str(tuning)
        for line, tuning in enumerate(context.points["tuning"])
    }

    def place(column: tuple[str, str]) -> tuple[Any, ...]:
        return (TUNINGS.index(tunings[column]), *map(natural, column))

    return sorted(tunings, key=place)


def _reasons(context: Context) -> Table:
    """Return why points have no time, the most frequent reasons first."""
    bad = context.points[context.points["status"] != "ok"]
    reasons = bad["reason"].fillna("unknown").astype(str)
    told = reasons.map(alike(reasons))
    endings = {
        int(line): (str(status), step, shortened(reason))
        for line, status, step, reason in zip(
            bad.index, bad["status"], bad["step"].fillna(""), told, strict=True
        )
    }
    seen = Counter(endings.values())
    example = {key: line for line, key in reversed(endings.items())}
    lines = []
    for key, count in seen.most_common(MOST_REASONS):
        status, step, reason = key
        why = Cell(reason or "unknown", point=example[key])
        lines.append(Line([Cell(status, style="bad"), Cell(step), Cell(str(count)), why]))
    counts = bad["status"].value_counts()
    ends = ", ".join(f"{counts[status]:,} {status}" for status in STATUSES if status in counts)
    caption = f"Why {counted(len(bad))} of {len(context.points):,} are not ok: {ends}."
    if len(seen) > MOST_REASONS:
        caption += f" The {MOST_REASONS} most frequent of {len(seen):,} reasons are shown."
    columns = [*columns_of("status", "step"), *numbers_of("points")]
    columns.append(Column("reason, with one example", wide=True))
    return Table("reasons", caption, columns, lines)
