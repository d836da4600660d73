"""Rules of a study that drop points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from dlas.bench.store import toml
from dlas.sweep.study import parts
from dlas.sweep.study.point import Choice, Point


@dataclass(frozen=True)
class Skip:
    """A rule that drops the points matching every pattern it names."""

    patterns: tuple[tuple[str, tuple[Any, ...]], ...]
    reason: str

    def matches(self, point: Point) -> bool:
        """Return whether the rule drops ``point``."""
        return all(
            any(_matches(axis, getattr(point, axis), pattern) for pattern in alternatives)
            for axis, alternatives in self.patterns
        )

    def foreign(self, axes: Mapping[str, Sequence[Any]]) -> list[str]:
        """Return the axes of a study on which the rule's patterns match no value."""
        return [
            axis
            for axis, alternatives in self.patterns
            if not any(_matches(axis, value, pattern) for value in axes[axis] for pattern in alternatives)
        ]

    def __str__(self) -> str:
        """Return the rule as a study writes it, on one line."""
        told = [(axis, given[0] if len(given) == 1 else list(given)) for axis, given in self.patterns]
        told.append(("reason", self.reason))
        return ", ".join(f"{name} = {toml.on_one_line(value)}" for name, value in told)


def _matches(axis: str, value: Any, pattern: Any) -> bool:
    """Return whether a choice, a batch size or a task matches a skip pattern."""
    if not isinstance(value, Choice):
        return bool(value == pattern)
    if isinstance(pattern, str):
        return fnmatchcase(value.name, pattern)
    if not isinstance(pattern, dict) or not fnmatchcase(value.name, pattern.get("name", "*")):
        return False
    required = {key: option for key, option in pattern.items() if key != "name"}
    if not required:
        return True
    options = {**parts.find(axis, value.name).options(), **dict(value.options)} if not value.chain else {}
    return all(key in options and options[key] == option for key, option in required.items())
