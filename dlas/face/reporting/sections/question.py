"""The question that the rows answer: which axes vary, and over what."""

from __future__ import annotations

from collections import Counter

from dlas.analysis.matching import natural
from dlas.face.reporting.blocks import Absent, Section
from dlas.face.reporting.context import Context
from dlas.face.tables.table import Cell, Column, Line, Table
from dlas.sweep.rows.labels import points as counted

ROWS = {
    "dataset": "the problem",
    "model": "the architecture",
    "compression": "what makes it smaller",
    "algorithm": "how a convolution is computed",
    "compiler": "what turns it into code",
    "hardware": "what it runs on",
    "batch": "images at a time",
    "task": "what is timed",
    "seed": "of everything random",
    "machine": "where it was measured",
}


def section(context: Context) -> Section | Absent:
    """Return the axes with their values, and the number of points with a time for each value."""
    varying = context.varying
    lines = [
        Line([Cell(axis, note=ROWS[axis]), Cell(str(len(values))), Cell(", ".join(values))])
        for axis in varying
        for values in [_values(context, axis)]
    ]
    caption = "The axes that vary. In brackets, for each value: points with a time / all points."
    columns = [Column("axis"), Column("values", number=True), Column("value (timed / all)", wide=True)]
    blocks = [Table("axes", caption, columns, lines)] if lines else []
    return Section("question", "The question and the axes", _question(context), blocks)


def _question(context: Context) -> str:
    layers = [axis for axis in context.varying if axis not in ("seed", "machine")]
    if not layers:
        return f"One choice on every axis: {counted(len(context.points))}, and nothing to compare."
    named = layers[0] if len(layers) == 1 else f"{', '.join(layers[:-1])} and {layers[-1]}"
    does = "does" if len(layers) == 1 else "do"
    question = f"What {does} {named} do to how fast and how accurate a network is"
    return question + (", and to one another?" if len(layers) > 1 else "?")


def _values(context: Context, axis: str) -> list[str]:
    values = context.columns[axis]
    total = Counter(values)
    ok = Counter(value for value, timed in zip(values, context.timed, strict=True) if timed)
    present = sorted((value for value in total if value is not None), key=natural)
    texts = [f"{value} ({ok[value]}/{total[value]})" for value in present]
    return texts + ([f"unknown ({ok[None]}/{total[None]})"] if None in total else [])
