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

NOISY = "~"
"""Mark of a time that was measured on a disturbed machine."""
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
class Notes:
    """Reasons, each printed once under the table and referred to by its number."""

    numbers_and_counts: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def mark(self, status: str, reason: str | None, counted: bool = True) -> str:
        """Return the status with its reason's number, ``failed (1)``, and count one point more for it."""
        if not reason:
            return status
        number = len(self.numbers_and_counts) + 1
        note = self.numbers_and_counts.setdefault((status, shortened(reason)), [number, 0])
        note[1] += counted
        return f"{status} ({note[0]})"

    def lines(self) -> list[Text]:
        """Return a line a reason: number, status, how many points, and the reason."""
        return [
            Text.assemble(f"({number}) ", (status, COLOURS.get(status, "")), f", {points(count)}: {reason}")
            for (status, reason), (number, count) in self.numbers_and_counts.items()
        ]


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
