"""Studies: the choices for each layer, and the points that they expand to."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Annotated, Any

import pydantic

from dlas.errors import InputError
from dlas.stack import PART_AXES, MeasureSettings
from dlas.study import parts
from dlas.study.point import Choice, Point

AXES = (*PART_AXES, "batch")
DEFAULTS: dict[str, list[Any]] = {
    "dataset": ["digits"],
    "model": ["cifar_resnet18"],
    "compression": ["none"],
    "algorithm": ["direct"],
    "compiler": ["untuned"],
    "hardware": ["local_cpu"],
    "batch": [1],
}
"""Values of an axis that a study leaves out."""
MOST_POINTS = 1_000_000


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


@dataclass(frozen=True)
class Limits:
    """Limits of a step; beyond them it is stopped and its point's row is ``timeout`` or ``failed``.

    Parameters
    ----------
    network, tune, build, check, measure : float
        Seconds.
    memory : int
        Bytes of anonymous memory of the step's processes together.
    """

    network: Annotated[float, pydantic.Field(gt=0)] = 7 * 86400.0
    tune: Annotated[float, pydantic.Field(gt=0)] = 2 * 86400.0
    build: Annotated[float, pydantic.Field(gt=0)] = 3600.0
    check: Annotated[float, pydantic.Field(gt=0)] = 1800.0
    measure: Annotated[float, pydantic.Field(gt=0)] = 1800.0
    memory: Annotated[int, pydantic.Field(gt=0)] = 16 * 2**30


@dataclass
class Expansion:
    """Counts of a study's expansion; :meth:`Study.points` fills in skipped and merged points."""

    total: int
    skipped: Counter[str] = field(default_factory=Counter)
    merged: int = 0


@dataclass(frozen=True)
class Study:
    """What to try on each axis, how to measure it, and what to leave out.

    Parameters
    ----------
    name : str
    axes : mapping of str to tuple
        Choices by axis; integers for ``batch``.
    seed : int
    skip : tuple of Skip
    measure : MeasureSettings
    limits : Limits
    """

    name: str
    axes: Mapping[str, tuple[Any, ...]]
    seed: int = 0
    skip: tuple[Skip, ...] = ()
    measure: MeasureSettings = field(default_factory=MeasureSettings)
    limits: Limits = field(default_factory=Limits)

    def with_measure(self, **settings: float) -> Study:
        """Return the study with some settings of :class:`dlas.stack.MeasureSettings` replaced."""
        return replace(self, measure=replace(self.measure, **settings))  # type: ignore[arg-type]

    def with_limits(self, **limits: float) -> Study:
        """Return the study with some of its :class:`Limits` replaced."""
        return replace(self, limits=replace(self.limits, **limits))  # type: ignore[arg-type]

    def expansion(self) -> Expansion:
        """Return the size of the cross product, before anything is skipped or merged."""
        return Expansion(math.prod(len(self.axes[axis]) for axis in AXES))

    def points(self, expansion: Expansion | None = None) -> Iterator[Point]:
        """Yield the points; points that will be compared are adjacent.

        Parameters
        ----------
        expansion : Expansion, optional
            Its counts of skipped and merged points are filled in as points are yielded.
        """
        counts = expansion or self.expansion()
        digests: set[bytes] = set()
        order = ("dataset", "model", "compression", "hardware", "batch", "algorithm", "compiler")
        for combination in itertools.product(*(self.axes[axis] for axis in order)):
            point = _collapse(Point(**dict(zip(order, combination, strict=True)), seed=self.seed))
            digest = bytes.fromhex(point.id)
            if digest in digests:
                counts.merged += 1
                continue
            digests.add(digest)
            rule = next((rule for rule in self.skip if rule.matches(point)), None)
            if rule is not None:
                counts.skipped[rule.reason] += 1
                continue
            yield point


def check_size(study: Study) -> None:
    """Refuse a study that expands to nothing or to more than a million points.

    Raises
    ------
    InputError
    """
    expansion = study.expansion()
    if expansion.total > MOST_POINTS:
        sizes = ", ".join(f"{axis} {len(study.axes[axis])}" for axis in AXES)
        raise InputError(
            f"the study expands to {expansion.total:,} points ({sizes}); at most {MOST_POINTS:,}"
        )
    if next(study.points(expansion), None) is None:
        reasons = "; ".join(f"{count} by {reason!r}" for reason, count in expansion.skipped.items())
        raise InputError(f"the study expands to nothing: every point is skipped ({reasons})")


def _collapse(point: Point) -> Point:
    """Replace the algorithm if the compiler has kernels of its own."""
    if parts.find("compiler", point.compiler.name).cls.own_kernels:
        return replace(point, algorithm=Choice(parts.LIBRARY))
    return point


def _matches(axis: str, value: Any, pattern: Any) -> bool:
    """Return whether a choice or a batch size matches a skip pattern."""
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
