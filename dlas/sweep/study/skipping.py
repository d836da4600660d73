"""Rules of a study that drop points."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from dlas.bench.store import toml
from dlas.errors import listed
from dlas.sweep.study import parts
from dlas.sweep.study.point import Choice, Point

MOST_NAMED = 20
"""Values of an axis that a warning lists."""


@dataclass(frozen=True)
class Skip:
    """A rule that drops the points matching every pattern it names."""

    patterns: tuple[tuple[str, tuple[Any, ...]], ...]
    reason: str

    def matches(self, point: Point) -> bool:
        """Return whether the rule drops ``point``."""
        return self.matcher()(point)

    def matcher(self) -> Callable[[Point], bool]:
        """Return :meth:`matches` for many points, which compares each value with the patterns once."""

        @functools.cache
        def dropped(axis: str, value: Any) -> bool:
            return any(_matches(axis, value, pattern) for pattern in patterns[axis])

        patterns = dict(self.patterns)
        return lambda point: all(dropped(axis, getattr(point, axis)) for axis in patterns)

    def why_unmatched(self, axes: Mapping[str, Sequence[Any]]) -> str:
        """Return why the rule matches no point of a study with these values on its axes."""
        foreign = [
            f"{axis} is one of {listed([*map(str, axes[axis])], MOST_NAMED)}"
            for axis, alternatives in self.patterns
            if not any(_matches(axis, value, pattern) for value in axes[axis] for pattern in alternatives)
        ]
        return "; ".join(foreign) or "each pattern matches a value, but no point has all of them"

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
    return all(key in options and _alike(options[key], option) for key, option in required.items())


def _alike(option: Any, pattern: Any) -> bool:
    """Return whether an option has a pattern's value, or is a text like it."""
    both = isinstance(option, str) and isinstance(pattern, str)
    return bool(option == pattern) or (both and fnmatchcase(option, pattern))
