"""Studies: the choices for each layer, and the points that they expand to."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tomli_w

from dlas.errors import InputError, unknown
from dlas.stack import MeasureSettings
from dlas.study import parts
from dlas.study.axes import AXES
from dlas.study.limits import Limits
from dlas.study.point import Choice, Point
from dlas.study.skipping import Skip
from dlas.study.tables import KEYS, checked, plain

MOST_POINTS = 1_000_000


@dataclass
class Expansion:
    """Counts of a study's expansion; :meth:`Study.points` fills in skipped and merged points.

    ``matched`` holds the places of the skip rules that match a point, the first rule's 0.
    """

    total: int
    skipped: Counter[str] = field(default_factory=Counter)
    matched: set[int] = field(default_factory=set)
    merged: int = 0


@dataclass(frozen=True, init=False)
class Study:
    """What to try on each axis, how to measure it, and what to leave out.

    Parameters
    ----------
    axes : mapping
        By axis what to try, as in a study file: a part's name, a mapping with its name and options, or a
        list of these; an option with a list is tried at each value.  An axis left out has its default.
    name : str
        Letters, digits, ``_``, ``-`` and ``.``
    seed : int
    skip : sequence of mapping
        Rules that drop points: patterns by axis, and the reason.
    measure : mapping, optional
        Settings of :class:`dlas.stack.MeasureSettings`.
    limits : mapping, optional
        Settings of :class:`Limits`.

    Attributes
    ----------
    axes : mapping of str to tuple
        Choices by axis; integers for ``batch``, texts for ``task``.
    skip : tuple of Skip
    measure : MeasureSettings
    limits : Limits
    written : dict
        The parameters as they were given, which TOML can hold.

    Raises
    ------
    InputError
        If anything in it is invalid; quotes the value and says what was expected.
    """

    axes: Mapping[str, tuple[Any, ...]]
    name: str
    seed: int
    skip: tuple[Skip, ...]
    measure: MeasureSettings
    limits: Limits
    written: dict[str, Any] = field(repr=False, compare=False)

    def __init__(
        self,
        axes: Mapping[str, Any],
        name: str = "study",
        seed: int = 0,
        skip: Sequence[Mapping[str, Any]] = (),
        measure: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
    ) -> None:
        given = {"seed": seed, "axes": axes, "skip": skip, "measure": measure, "limits": limits}
        written = {"name": name, **plain(given)}
        vars(self).update(checked(written), written=written)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Study:
        """Return the study in a table that has the keys of a study file.

        Raises
        ------
        InputError
        """
        for key in table:
            if key not in KEYS:
                raise unknown("key in the study", str(key), KEYS)
        return cls(**{"axes": {}, **table})

    def toml(self) -> str:
        """Return the text of a study file that holds the same study."""
        return tomli_w.dumps(self.written)

    def with_measure(self, **settings: float) -> Study:
        """Return the study with some settings of :class:`dlas.stack.MeasureSettings` replaced."""
        return Study(**{**self.written, "measure": {**self.written.get("measure", {}), **settings}})

    def with_limits(self, **limits: float) -> Study:
        """Return the study with some of its :class:`Limits` replaced."""
        return Study(**{**self.written, "limits": {**self.written.get("limits", {}), **limits}})

    def varying(self) -> list[str]:
        """Return the axes with more than one value, which identify a point."""
        return [axis for axis in AXES if len(self.axes[axis]) > 1]

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
        order = ("dataset", "model", "compression", "hardware", "batch", "task", "algorithm", "compiler")
        for combination in itertools.product(*(self.axes[axis] for axis in order)):
            point = _collapse(Point(**dict(zip(order, combination, strict=True)), seed=self.seed))
            digest = bytes.fromhex(point.id)
            if digest in digests:
                counts.merged += 1
                continue
            digests.add(digest)
            rules = [place for place, rule in enumerate(self.skip) if rule.matches(point)]
            counts.matched.update(rules)
            if rules:
                counts.skipped[self.skip[rules[0]].reason] += 1
                continue
            yield point

    def unmatched(self, expansion: Expansion) -> list[str]:
        """Return a sentence for each skip rule that matches no point, which may be misspelt.

        Parameters
        ----------
        expansion : Expansion
            After all points were yielded.
        """
        unused = [(place, rule) for place, rule in enumerate(self.skip) if place not in expansion.matched]
        return [
            f"skip rule {place + 1} matches no point ({rule}): {self._why(rule)}" for place, rule in unused
        ]

    def _why(self, rule: Skip) -> str:
        """Return why a rule matches no point."""
        foreign = rule.foreign(self.axes)
        listed = [f"{axis} is one of {', '.join(map(str, self.axes[axis]))}" for axis in foreign]
        return "; ".join(listed) or "each pattern matches a value, but no point has all of them"


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
