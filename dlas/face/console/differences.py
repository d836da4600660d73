"""``dlas show --against``: two rows of a point beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from dlas.analysis.against.changes import FASTER, NO_TIME, OTHER_MACHINE, SLOWER
from dlas.analysis.against.differences import RowDifference
from dlas.face.tables.changes import NAMED
from dlas.face.tables.columns import names, numbers, signed, table_of
from dlas.face.tables.text import Grid
from dlas.sweep.rows.finding import point_label
from dlas.sweep.rows.labels import MISSING, milliseconds, number_of, shortened
from dlas.sweep.rows.machines import machine_name

MOST_LAYERS = 10


def show(found: RowDifference) -> RenderableType:
    """Return two rows of a point beside each other, to be printed."""
    pieces: list[RenderableType] = [*_heading(found), Text(), _facts(found)]
    if found.layers:
        pieces += [Text(), _layers(found)]
    return Group(*pieces)


def _heading(found: RowDifference) -> Iterator[Text]:
    yield Text.assemble((found.now.id, "bold"), f"  {point_label(found.now)}")
    yield Text(
        f"now: {found.folders[1]}, {found.now.started}; before: {found.folders[0]}, {found.before.started}"
    )
    yield Text(f"{found.change.outcome}{_time(found)}", style="bold")
    causes = found.change.causes or ("nothing that the result depends on",)
    yield Text(f"what differs: {shortened('; '.join(causes), 1000)}")


def _time(found: RowDifference) -> str:
    """Return how the time went."""
    before, now = found.times
    if before is None or now is None:
        return ""
    ratio, low, high = found.ratio
    told = f": {milliseconds(before)} to {milliseconds(now)} ms, {ratio:.3f} [{low:.3f}, {high:.3f}] times"
    if found.change.outcome in (OTHER_MACHINE, NO_TIME) or found.noise is None:
        return f"{told}, not tested"
    shift = f"the machine's {signed(np.expm1(found.noise.shift))} taken out"
    if found.change.outcome in (SLOWER, FASTER):
        return f"{told}, {shift}"
    return f"{told}, {shift}; from {found.change.detectable:.1%} on a change is found with 95 % power"


def _facts(found: RowDifference) -> Grid:
    """Return everything that differs as a table."""
    facts = [(place, *fact) for place, every in found.facts().items() for fact in every]
    strips = [
        names("in", [place for place, *_ in facts], True),
        names("", [NAMED.get(name, name) for _, name, *_ in facts]),
        names("before", [_worded(old) for *_, old, _ in facts]),
        names("now", [_worded(new) for *_, new in facts]),
    ]
    machines = {machine_name(row.device) for row in (found.before, found.now) if row.device}
    below = [Text(f"machine of both: {next(iter(machines))}")] if len(machines) == 1 else []
    return Grid(table_of(strips, "differences"), [], below)


def _layers(found: RowDifference) -> Grid:
    """Return the layers that explain most of the change."""
    shown, rest = found.layers[:MOST_LAYERS], found.layers[MOST_LAYERS:]
    strips = [
        names("layer", [name for name, _ in shown]),
        numbers("longer, ms", [f"{1e3 * seconds:+.4g}" for _, seconds in shown]),
    ]
    others = f"{number_of(len(rest), 'other')}: {1e3 * sum(each for _, each in rest):+.4g} ms"
    return Grid(table_of(strips, "layers"), [Text("layers", style="bold")], [Text(others)] if rest else [])


def _worded(value: Any) -> str:
    if value is None:
        return MISSING
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return shortened(text)
