"""Where the rows of a sweep go: what a sweep needs of it, a folder whose rows are noted, and memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dlas.sweep.rows.results import Results, Row


class RowWriter(Protocol):
    """Stores the rows of a sweep, as :class:`dlas.sweep.rows.results.Results` does."""

    @property
    def folder(self) -> Path:
        """The folder for logs and curves."""

    @property
    def existing(self) -> Mapping[str, tuple[str, str | None]]:
        """Status and key of the existing rows, by the point's id; no key where it is to be measured again."""

    def append(self, row: Row) -> None:
        """Add a row."""


@dataclass
class InMemoryRows:
    """Keeps the rows of a sweep in memory: of points that are not measured."""

    folder: Path
    """For logs and curves."""
    existing: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def append(self, row: Row) -> None:
        """Add a row."""
        self.rows.append(row)


@dataclass
class NotingRows:
    """Writes rows into a folder, and keeps those of this sweep."""

    results: Results
    rows: dict[str, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder, self.existing = self.results.folder, self.results.existing

    def append(self, row: Row) -> None:
        """Write a row."""
        self.results.append(row)
        self.rows[row.id] = row
