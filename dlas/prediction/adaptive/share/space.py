"""The points of a study by the values that tell them apart: parts, and options of parts."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from dlas.prediction.adaptive.share.trends import UNTUNED, Trend, trends
from dlas.stack.types import Floats
from dlas.sweep.rows.labels import options
from dlas.sweep.study import parts
from dlas.sweep.study.axes import AXES
from dlas.sweep.study.parts import LIBRARY
from dlas.sweep.study.point import NONE, Choice, Point

Codes = npt.NDArray[np.intp]
Architecture = tuple[Choice, Choice]
"""A dataset and a model."""

NO_MACS: Mapping[Architecture, float] = MappingProxyType({})
ABSENT = -1
"""Code of a point whose part has no such option."""
CHOSEN = ("algorithm", "compiler")
"""Axes on which one looks for the fastest; the points that differ in them alone are rivals."""


@dataclass(frozen=True)
class Factor:
    """A part's name or an option, of which the points of a study have several values."""

    name: str
    """``algorithm``, ``compression.level``, ``batch``."""
    values: tuple[str, ...]
    """The different values as text."""
    codes: Codes
    """The place of each point's value among them, or :data:`ABSENT`; [n] of int."""
    places: Floats | None
    """For numbers, where each lies between the least, 0, and the largest, 1, on a scale of ratios; NaN where
    absent. None for texts.

    [n] or None.
    """
    kin: bool = False
    """Whether it says what values of another factor have in common, and is no choice of its own."""


@dataclass(frozen=True)
class Space:
    """The points of a study."""

    points: tuple[Point, ...]
    factors: tuple[Factor, ...]
    """What tells them apart: choices, then what choices have in common."""
    trends: tuple[Trend, ...]
    """What their latencies usually grow with."""
    rivals: Codes
    """Number of each point's group of rivals, which differ in algorithm and compiler alone; [n] of int."""
    architectures: Codes
    """Number of each point's model on its dataset; [n] of int."""
    macs: Floats
    """Multiply-adds of each point's network before compression, NaN where nobody told them; [n]."""

    def __len__(self) -> int:
        return len(self.points)

    @property
    def choices(self) -> tuple[Factor, ...]:
        """The factors whose values were chosen."""
        return tuple(factor for factor in self.factors if not factor.kin)

    @classmethod
    def of(cls, points: Sequence[Point], macs: Mapping[Architecture, float] = NO_MACS) -> Space:
        """Return the space of points.

        Parameters
        ----------
        macs : mapping of (Choice, Choice) to float
            Multiply-adds by dataset and model, as far as they are known.
        """
        axes = {axis: [getattr(point, axis) for point in points] for axis in AXES}
        told = [_values(dict(zip(axes, values, strict=True))) for values in zip(*axes.values(), strict=True)]
        names = dict.fromkeys(name for values in told for name in values)
        factors = [_factor(name, [values.get(name, MISSING) for values in told]) for name in names]
        factors.append(_kinds([choice.name for choice in axes["compiler"]]))
        others = [values for axis, values in axes.items() if axis not in CHOSEN]
        return cls(
            points=tuple(points),
            factors=tuple(factor for factor in factors if len(factor.values) > 1),
            trends=trends(axes),
            rivals=_numbered(zip(*others, strict=True)),
            architectures=_numbered(zip(axes["dataset"], axes["model"], strict=True)),
            macs=np.array([macs.get((point.dataset, point.model), math.nan) for point in points]),
        )


def _values(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a point's values by axis with the options of its parts; without compression the level is 0."""
    found: dict[str, Any] = {}
    for axis, value in point.items():
        found |= _of_choice(axis, value) if isinstance(value, Choice) else {axis: value}
    return found


@functools.cache
def _of_choice(axis: str, choice: Choice) -> Mapping[str, Any]:
    """Return a part's name and its options, the defaults too."""
    named = {axis: "+".join(link.name for link in choice.chain) or choice.name}
    if choice == NONE and axis == "compression":
        return {**named, "compression.level": 0.0}
    return named | {f"{axis}.{name}": value for name, value in options(_content(axis, choice)).items()}


def _content(axis: str, choice: Choice) -> dict[str, Any]:
    """Return a part as rows store it, its defaults included."""
    if choice.chain:
        return {"name": choice.name, "chain": [_content(axis, link) for link in choice.chain]}
    known = {} if choice.name == LIBRARY else parts.find(axis, choice.name).options()
    defaults = {name: value for name, value in known.items() if value is not MISSING}
    return {**defaults, **choice.content()}


def _factor(name: str, values: Sequence[Any]) -> Factor:
    """Return the factor of values, ``MISSING`` where a point's part has no such option."""
    different = tuple(dict.fromkeys(str(value) for value in values if value is not MISSING))
    numbers = {text: place for place, text in enumerate(different)}
    codes = [ABSENT if value is MISSING else numbers[str(value)] for value in values]
    return Factor(name, different, np.array(codes, dtype=np.intp), _places(values))


def _kinds(compilers: Sequence[str]) -> Factor:
    """Return whether compilers schedule kernels, with threads alone or well, or bring their own."""
    kinds: dict[str, str] = {}
    for name in set(compilers):
        own = parts.find("compiler", name).cls.own_kernels
        kinds[name] = "own kernels" if own else name if name == UNTUNED else "scheduled"
    return replace(_factor("kind of compiler", [kinds[name] for name in compilers]), kin=True)


def _places(values: Sequence[Any]) -> Floats | None:
    """Return where numbers lie between the least and the largest; None where they are no numbers, or one."""
    present = [value for value in values if value is not None and value is not MISSING]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in present):
        return None
    if len(set(present)) < 2:
        return None
    numbers = np.array([math.nan if value is None or value is MISSING else float(value) for value in values])
    scaled = _scaled(numbers)
    low, high = np.nanmin(scaled), np.nanmax(scaled)
    return np.asarray((scaled - low) / (high - low), dtype=np.float64)


def _scaled(numbers: Floats) -> Floats:
    """Return numbers on a scale on which equal ratios are equal distances.

    Of shares below 1, such as pruning levels, what is left counts: from 0.9 to 0.95 it is halved.
    """
    low, high = np.nanmin(numbers), np.nanmax(numbers)
    if low >= 0 and high < 1:
        return np.asarray(-np.log1p(-numbers), dtype=np.float64)
    return np.asarray(np.log(numbers) if low > 0 else np.arcsinh(numbers), dtype=np.float64)


def _numbered(keys: Iterable[Any]) -> Codes:
    """Return a number for each key, the same for equal ones."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)
