"""Disturbances of the measurements, and the environment of the rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Block, Figure, Panel, Paragraph, Section
from dlas.face.reporting.context import Context, significant
from dlas.face.reporting.palette import HUES, rgb
from dlas.face.tables.marks import SIMULATED_MEANS
from dlas.face.tables.table import Cell, Column, Line, Table
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.labels import rows
from dlas.sweep.rows.machines import names_simulated
from dlas.sweep.rows.results import UNSTABLE

COLOURS = {"quiet": rgb(*HUES[0]), "noisy": rgb(*HUES[1])}
MOST_NOISY = 50
MOST_VALUES = 4
FEW_SAMPLES = 20
DISTURBANCES = {
    "load": ("Load while measuring", "{:.2f}"),
    "drift": ("Drift of the sentinel", "{:.0%}"),
    "steal": ("Time stolen by other machines", "{:.1%}"),
}
USUAL = (
    "python",
    "versions.",
    "code.",
    "host.",
    "device.cpu",
    "device.gpu",
    "device.threads",
    "device.title",
    "device.physical_cores",
    "device.memory_bytes",
    "device.governor",
    "device.hypervisor",
    "device.kernel",
)
"""Facts that are always shown; others are shown only where rows differ."""


def section(context: Context) -> Section:
    """Return load, drift, noisy points, and the environment."""
    lead = (
        "A sentinel kernel ran before, between and after the samples; its slowdown is the drift. Disturbed "
        "slices were measured again; points that stayed disturbed are marked noisy."
    )
    blocks: list[Block] = [Paragraph(items=[(statement, None) for statement in _statements(context)])]
    if int(context.points["drift"].notna().sum()) > 1:
        blocks.append(_figure(context))
    if context.noisy.any():
        blocks.append(_noisy(context))
    if context.details.facts:
        blocks.append(_facts(context))
    return Section("trust", "Reliability and environment", lead, blocks)


def _statements(context: Context) -> Iterator[str]:
    points = context.points
    yield f"{int(context.noisy.sum()):,} of {int(context.timed.sum()):,} timed points are noisy."
    shaky = int(points["status"].eq(UNSTABLE).sum())
    if shaky:
        yield (
            f"{counted(shaky)} unstable, also when measured again: slices differ too much, and no "
            "ratio, winner or observation counts them."
        )
    few = context.timed & (points["samples"].fillna(0) < FEW_SAMPLES).to_numpy(dtype=bool)
    if few.any():
        yield f"{counted(int(few.sum()))} with fewer than {FEW_SAMPLES} samples: their intervals say little."
    for name, (what, form) in DISTURBANCES.items():
        values = points.loc[context.timed, name].dropna()
        if len(values):
            yield f"{what}: median {form.format(values.median())}, at most {form.format(values.max())}."
    yield from _coverage(context)
    yield from _runs(context)


def _coverage(context: Context) -> Iterator[str]:
    """Yield how much of the points the requested algorithms compute."""
    coverage = context.points.loc[context.timed, "coverage"].dropna()
    partly = int((coverage < 1).sum())
    if partly:
        yield (
            f"In {counted(partly)} the requested algorithm computes only a part, at least "
            f"{coverage.min():.0%} of the multiply-adds; it declined the rest."
        )


def _runs(context: Context) -> Iterator[str]:
    """Yield how far runs of a point are apart, what is left out, and on which machines they ran."""
    points = context.points
    spread = points["spread"].dropna()
    if len(spread):
        yield (
            f"{counted(len(spread))} with runs in several folders, whose samples count together; the medians "
            f"of a point's runs differ by {spread.median():.1%} (median), at most {spread.max():.1%}."
        )
    if context.left_out:
        yield f"{rows(context.left_out)} left out: a copy, or a run that failed where another did not."
    if context.damaged:
        yield f"{rows(context.damaged)} left out: damaged."
    if context.details.unreadable:
        yield f"Files of tuning curves that are damaged and left out: {context.details.unreadable}."
    if simulated := sum(map(names_simulated, points["machine"])):
        yield f"{counted(simulated)} simulated: {SIMULATED_MEANS}."
    machines = points["machine"].nunique()
    if machines > 1:
        yield f"{machines} machines; only rows of one machine are compared, except along the hardware axis."
    unknown = int(points["machine"].isna().sum())
    if unknown:
        yield f"{counted(unknown)} ended before the machine was recorded."


def _figure(context: Context) -> Figure:
    measured = context.points[context.points["started"].notna() & context.points["drift"].notna()]
    rows = [
        {
            "p": line,
            "x": started.isoformat(),
            "y": significant(100 * drift),
            "c": "noisy" if context.noisy[line] else "quiet",
        }
        for line, started, drift in zip(
            measured.index.tolist(), measured["started"], measured["drift"], strict=True
        )
    ]
    sentence = (
        "High dots were measured while the machine slowed down, by "
        f"{measured['drift'].max():.0%} at most; they are the least reliable."
    )
    spec = charts.timeline("drift, %", COLOURS)
    title = "Drift of the sentinel while measuring"
    return Figure("drift", title, sentence, [Panel("", rows)], {"": spec}, COLOURS)


def _noisy(context: Context) -> Table:
    noisy = np.flatnonzero(context.noisy).tolist()
    why = context.points["noisy_reason"].fillna("unknown")
    lines = [
        Line(
            [Cell(context.name(line), point=line), Cell(context.interval(line)), Cell(str(why.iat[line]))],
            context.where(line, context.varying),
        )
        for line in noisy[:MOST_NOISY]
    ]
    more = f" The first {MOST_NOISY} of {len(noisy):,} are shown." if len(noisy) > MOST_NOISY else ""
    columns = [Column("point"), Column("ms [95 % interval]", number=True), Column("why", wide=True)]
    return Table("noisy", f"Points whose measurement stayed disturbed.{more}", columns, lines)


def _facts(context: Context) -> Table:
    lines = []
    for name, values in sorted(context.details.facts.items()):
        differ = len(values) > 1
        if not differ and not name.startswith(USUAL):
            continue
        shown = [
            f"{value} ({count:,})" if differ else value for value, count in values.most_common(MOST_VALUES)
        ]
        more = f" and {len(values) - MOST_VALUES} more" if len(values) > MOST_VALUES else ""
        lines.append(Line([Cell(name), Cell(", ".join(shown) + more, style="tie" if differ else "")]))
    caption = (
        "Software and machine of the rows. Where rows differ, each value has its number of rows: compare "
        "such rows with care."
    )
    return Table("environment", caption, [Column("what"), Column("value", wide=True)], lines)
