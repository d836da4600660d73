"""``dlas run --dry-run``: what a sweep would do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dlas.sweep.engine.planning import STEP_AXES
from dlas.sweep.engine.preview import Preview
from dlas.sweep.rows.labels import MOST_OF_A_VALUE, amount, duration, having_rows, points, short_id, shortened
from dlas.sweep.study.point import Point

MOST_LISTED = 40
"""Most points that are listed; others are counted."""


def render(preview: Preview, axes: Sequence[str]) -> RenderableType:
    """Return what a sweep would do, to be printed.

    Parameters
    ----------
    axes : sequence of str
        The axes that identify a point within its study.
    """
    current, to_run = preview.current.total(), len(preview.to_run)
    head = f"{points(to_run)} to run"
    if current:
        done = ", ".join(f"{count} {status}" for status, count in sorted(preview.current.items()))
        head += f"; {current:,} {having_rows(current)} ({done})"
    if preview.unsupported:
        head += f"; {preview.unsupported:,} that this machine or their compiler does not support"
    lines = [*_time(preview), *_disk(preview), "Nothing was run, and nothing was written."]
    pieces: list[RenderableType] = [Text(head, "bold"), Text(preview.size)]
    if preview.to_run:
        pieces += [_points(preview.to_run[:MOST_LISTED], axes), *_more(to_run - MOST_LISTED), Text()]
        pieces += [_steps(preview), Text()]
    return Group(*pieces, *map(Text, lines))


def names(point: Point, axes: Iterable[str]) -> str:
    """Return the values that identify a point within its study."""
    values = [
        f"batch {point.batch}" if axis == "batch" else shortened(str(getattr(point, axis)), MOST_OF_A_VALUE)
        for axis in axes
    ]
    return " / ".join(values) or str(point.model)


def _points(to_run: Iterable[tuple[Point, Sequence[str]]], axes: Sequence[str]) -> Table:
    table = Table.grid(padding=(0, 2))
    for point, steps in to_run:
        table.add_row(f"  {short_id(point.id)}", Text(names(point, axes)), Text(", ".join(steps), "dim"))
    return table


def _more(count: int) -> list[Text]:
    return [Text(f"  and {count:,} more")] if count > 0 else []


def _steps(preview: Preview) -> Table:
    """Return the steps to do, those in the cache, and their time."""
    table = Table("step", "to do", "in the cache", "time", box=None, pad_edge=False)
    for step in STEP_AXES:
        needed, cached = preview.needed[step], preview.cached[step]
        if needed or cached:
            known = [duration(preview.seconds[step])] if step in preview.seconds else []
            unknown = [f"{preview.unknown[step]} unknown"] if preview.unknown[step] else []
            table.add_row(step, str(needed), str(cached), ", ".join([*known, *unknown]))
    return table


def _time(preview: Preview) -> list[str]:
    """Return the line with the estimated time."""
    if not preview.to_run:
        return []
    unknown = preview.unknown.total()
    if not preview.seconds:
        return ["Time: unknown, since the folder has no rows of steps like these."]
    total = duration(sum(preview.seconds.values()))
    rest = f", and {unknown} steps of unknown time" if unknown else ""
    return [f"Time: about {total} as in the folder's earlier rows, one step at a time{rest}."]


def _disk(preview: Preview) -> list[str]:
    """Return the line with the estimated disk."""
    if not preview.to_run:
        return []
    if preview.row_bytes is None:
        return ["Disk: unknown, since the folder has no rows yet."]
    rows = f"{amount(preview.row_bytes * len(preview.to_run), 'B')} for rows"
    if not preview.needed["network"]:
        return [f"Disk: about {rows}."]
    networks = amount(preview.network_bytes, "B") if preview.network_bytes else "an unknown amount"
    return [f"Disk: about {rows}, and {networks} for networks in the cache."]
