"""Marks of measured times, colours of cells, and reasons that are told once below a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from rich.text import Text

from dlas.face.spelling import spelled
from dlas.sweep.rows.columns import UNSAID
from dlas.sweep.rows.labels import points, shortened
from dlas.sweep.rows.reasons import joined, parted

NOISY = "~"
"""Mark of a time that was measured on a disturbed machine."""
THROTTLED = "°"
"""Mark of a time that was measured while something held the clocks back."""
SIMULATED_MARK = "§"
"""Mark of a time that nothing took: the device is simulated, and a law told it."""
SIMULATED_MEANS = "the device is simulated; nothing was run, and a law tells times and energies"
PREDICTED_MARK = "≈"
"""Mark of a time that was predicted."""
UNSTABLE_MARK = "?"
"""Mark of a time that is no result, because slices of its measurement differ too much."""
COLOURS = {
    "ok": "green",
    "failed": "red",
    "timeout": "red",
    "wrong": "red",
    "unsupported": "yellow",
    "unstable": "yellow",
    "predicted": "cyan",
}
"""How a terminal shows points by how they ended."""
STYLES = COLOURS | {
    "best": "bold green",
    "good": "green",
    "bad": "red",
    "doubt": "yellow",
    "tie": "dim",
    "muted": "dim",
    "head": "bold",
}
"""How a terminal shows cells by their style."""


@dataclass
class Note:
    """A reason, its number, and for how many points it is told."""

    number: int
    count: int = 0
    factors: set[float] = field(default_factory=set)
    """What stands at its end, in one point or another."""

    def line(self, status: str, reason: str) -> Text:
        """Return number, status, how many points, and the reason."""
        told = joined(reason, self.factors)
        return Text.assemble(
            f"({self.number}) ", (status, COLOURS.get(status, "")), f", {points(self.count)}: {told}"
        )


@dataclass
class Notes:
    """Reasons, each printed once under the table and referred to by its number."""

    found: dict[tuple[str, str], Note] = field(default_factory=dict)

    def mark(self, status: str, reason: str | None, counted: bool = True) -> str:
        """Return the status with its reason's number, ``failed (1)``, and count one point more for it."""
        if not reason:
            return status
        told, factor = parted(shortened(reason))
        note = self.found.setdefault((status, told), Note(len(self.found) + 1))
        note.count += counted
        if factor is not None:
            note.factors.add(factor)
        return f"{status} ({note.number})"

    def lines(self) -> list[Text]:
        """Return a line a reason."""
        return [note.line(status, reason) for (status, reason), note in self.found.items()]


def first_shown(shown: int, total: int, what: str) -> list[Text]:
    """Return a line that says that the first of very many lines are shown; none where all are."""
    if shown == total:
        return []
    others = spelled("`where=` chooses some of them, `every=True` shows all")
    return [Text(f"the first {shown:,} of {total:,} {what}; {others}", "bold")]


def shared_values(values: Mapping[str, Any]) -> str:
    """Return the values that all lines share: ``dataset digits, batch 1``, without those nobody says."""
    return ", ".join(
        f"{name} {value}"
        for name, value in values.items()
        if pd.notna(value) and UNSAID.get(name) != str(value)
    )
