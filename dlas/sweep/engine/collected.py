"""Rows that are kept in memory: of points that are only tuned or built, so that nothing was measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dlas.sweep.rows.results import Row


@dataclass
class CollectedRows:
    """Collects the rows of a sweep instead of writing them.

    Parameters
    ----------
    folder : Path
        For logs and curves.
    """

    folder: Path
    existing: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def append(self, row: Row) -> None:
        """Add a row."""
        self.rows.append(row)
