"""``dlas status``: how far a sweep is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from dlas.bench.store.journal import in_use
from dlas.errors import InputError
from dlas.face.tables.marks import COLOURS
from dlas.stack import PART_AXES
from dlas.sweep.rows import intervals
from dlas.sweep.rows.files import imported_from
from dlas.sweep.rows.labels import duration, having_rows, label, milliseconds, points, rows, short_id
from dlas.sweep.rows.results import FILE, STATUSES, Row, read_rows
from dlas.sweep.study.kept import kept_study
from dlas.sweep.study.study import Study


def status(folder: Path) -> Text:
    """Return how many points of a folder are done, how they ended, what is left and what happened last.

    Raises
    ------
    InputError
        If the folder has no rows.
    """
    every = list(read_rows(folder))
    if origin := imported_from(folder):
        return Text("\n").join([*_ends(every), Text(f"imported from {origin}: nothing is left to run")])
    try:
        study = Study.read(kept_study(folder))
    except InputError as error:
        unknown = Text(f"what is left is unknown: {error}")
        return Text("\n").join([*_ends(every), *_last(folder, every, PART_AXES), unknown])
    ids = {point.id for point in study.points()}
    own = [row for row in every if row.id in ids]
    left = len(ids) - len(own)
    head = f"{study.name}: {len(own):,} of {points(len(ids))} {having_rows(len(own))}"
    lines = [Text(head, style="bold")]
    lines += _ends(own)
    if others := len(every) - len(own):
        lines.append(Text(f"{rows(others)} of points that are not in the study now"))
    running = in_use(folder / FILE)
    lines += _last(folder, own, study.varying() or ["model"])
    lines.append(Text("a sweep is running" if running else "no sweep is running"))
    if left and not running:
        lines.append(Text(f"{points(left)} left; to go on: dlas run {folder}"))
    elif left:
        lines.append(Text(f"{points(left)} left"))
    return Text("\n").join(lines)


def _ends(every: Sequence[Row]) -> Iterator[Text]:
    """Yield a line with the rows by status, if there are any."""
    counts = Counter(row.status for row in every)
    pieces = [Text(f"{counts[end]:,} {end}", COLOURS[end]) for end in STATUSES if counts[end]]
    yield Text("rows: ").append_text(Text(", ").join(pieces or [Text("none yet")]))


def _last(folder: Path, every: Sequence[Row], axes: Sequence[str]) -> Iterator[Text]:
    """Yield a line for the last row, and one for the last output of a step."""
    if every:
        row = every[-1]
        values = {axis: label(getattr(row, axis)) for axis in axes}
        names = " / ".join(f"batch {value}" if axis == "batch" else value for axis, value in values.items())
        took = f", {milliseconds(intervals.median(row.latency_s)[0])} ms" if row.latency_s else ""
        yield Text(f"last row, {_ago(folder / FILE)}: {short_id(row.id)} {row.status}{took}, {names}")
    logs = [(log.stat().st_mtime, log) for log in (folder / "logs").glob("*.log")]
    if logs:
        _, log = max(logs)
        yield Text(f"last output of a step, {_ago(log)}: {log}")


def _ago(path: Path) -> str:
    """Return how long ago a file was written."""
    if not path.exists():
        return "packed"
    return f"{duration(max(0, round(time.time() - path.stat().st_mtime)))} ago"
