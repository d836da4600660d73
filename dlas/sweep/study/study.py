"""Studies: the choices for each layer, and the points that they expand to."""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from dlas.bench.store import toml
from dlas.errors import InputError, unknown
from dlas.stack import PART_AXES, MeasureSettings
from dlas.sweep.study import parts
from dlas.sweep.study.axes import AXES
from dlas.sweep.study.entries import Values
from dlas.sweep.study.limits import Limits
from dlas.sweep.study.point import Choice, Point
from dlas.sweep.study.sampling import Draw, Sample, draws
from dlas.sweep.study.shipped import names, shipped
from dlas.sweep.study.skipping import Skip
from dlas.sweep.study.tables import KEYS, checked, plain

MOST_POINTS = 1_000_000
ORDER = ("dataset", "model", "compression", "hardware", "batch", "task", "algorithm", "compiler")
"""The axes, so that points that differ in the last ones, which will be compared, are adjacent."""


@dataclass
class Expansion:
    """Counts of a study's expansion; :meth:`Study.points` fills in skipped and merged points.

    ``total`` counts the cross product, or the points of all draws.  ``matched`` holds the places of the
    skip rules that match a point, the first rule's 0.
    """

    total: int
    skipped: Counter[str] = field(default_factory=Counter)
    matched: set[int] = field(default_factory=set)
    merged: int = 0


@dataclass(frozen=True, init=False)
class Study:
    """What to try on each axis, how to measure it, and what to leave out.

    Attributes
    ----------
    axes : mapping of str to Values
        By axis what is listed, which :meth:`values` returns: choices, integers for ``batch``, texts for
        ``task``.
    sample : Sample or None
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

    axes: Mapping[str, Values]
    """By axis what to try, as in a study file: a part's name, a mapping with its name and options, or a list
    of these; an option with a list is tried at each value. An axis left out has its default.
    """
    name: str
    """Letters, digits, ``_``, ``-`` and ``.``"""
    seed: int
    sample: Sample | None
    """``points``, the number of points to draw, and ``axes``, those to draw on, by default all: each draw is
    crossed with the values of the other axes.
    """
    skip: tuple[Skip, ...]
    """Rules that drop points: patterns by axis, and the reason."""
    measure: MeasureSettings
    """Settings of :class:`dlas.stack.MeasureSettings`."""
    limits: Limits
    """Settings of :class:`Limits`."""
    written: dict[str, Any] = field(repr=False, compare=False)

    def __init__(
        self,
        axes: Mapping[str, Any],
        name: str = "study",
        seed: int = 0,
        skip: Sequence[Mapping[str, Any]] = (),
        measure: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        sample: Mapping[str, Any] | None = None,
    ) -> None:
        given = {
            "seed": seed,
            "axes": axes,
            "sample": sample,
            "skip": skip,
            "measure": measure,
            "limits": limits,
        }
        written = {"name": name, **plain(given)}
        vars(self).update(checked(written), written=written)

    @classmethod
    def of(
        cls, given: Study | Mapping[str, Any] | str | os.PathLike[str], sample: int | None = None
    ) -> Study:
        """Return a study that is given as such, as a table with the keys of a study file, or as its path.

        Parameters
        ----------
        sample : int, optional
            Points to draw, instead of those that the study asks for.

        Raises
        ------
        InputError
            If it is invalid.
        """
        if isinstance(given, Study):
            return given if sample is None else given.with_sample(sample)
        if not isinstance(given, Mapping):
            return cls.read(Path(given), sample)
        for key in given:
            if key not in KEYS:
                raise unknown("key in the study", str(key), KEYS)
        own = given.get("sample") or {}
        drawn = (
            {"sample": {**own, "points": sample}} if sample is not None and isinstance(own, Mapping) else {}
        )
        return cls(**{"axes": {}, **given, **drawn})

    @classmethod
    def read(cls, path: Path, sample: int | None = None) -> Study:
        """Return the study in a file, or one that is :func:`shipped`.

        Parameters and errors, which name the file, as for :meth:`of`.
        """
        file = shipped(path)
        if not path.suffix and not file.exists():
            raise unknown("study", str(path), names())
        text = toml.read_text(file, "study")
        try:
            return cls.parse(text, sample)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    @classmethod
    def parse(cls, text: str, sample: int | None = None) -> Study:
        """Return the study in a TOML text; parameters as for :meth:`of`, and errors quote the broken line."""
        raw = toml.parse(text)
        if not raw:
            raise InputError("an empty study: it needs at least a name and a table [axes]")
        return cls.of({"name": None, **raw}, sample)

    def toml(self) -> str:
        """Return the text of a study file that holds the same study."""
        return tomli_w.dumps(self.written)

    def with_measure(self, **settings: float) -> Study:
        """Return the study with some settings of :class:`dlas.stack.MeasureSettings` replaced."""
        return Study(**{**self.written, "measure": {**self.written.get("measure", {}), **settings}})

    def with_limits(self, **limits: float) -> Study:
        """Return the study with some of its :class:`Limits` replaced."""
        return Study(**{**self.written, "limits": {**self.written.get("limits", {}), **limits}})

    def with_sample(self, points: int) -> Study:
        """Return the study with another number of points to draw; by default on all axes."""
        return Study.of(self.written, points)

    def values(self, axis: str) -> list[Any]:
        """Return the values of an axis: those that it lists, or those that were drawn.

        Raises
        ------
        InputError
            If there are fewer points than are to be drawn.
        """
        if self.sample and axis in self.sample.axes:
            return list(dict.fromkeys(draw[axis] for draw in self._drawn[0]))
        return list(self._crossed[axis])

    def varying(self) -> list[str]:
        """Return the axes with more than one value, which identify a point."""
        return [axis for axis in AXES if len(self.values(axis)) > 1]

    def expansion(self) -> Expansion:
        """Return the number of points, before anything is skipped or merged."""
        drawn = self.sample.axes if self.sample else ()
        crossed = math.prod(values.size for axis, values in self.axes.items() if axis not in drawn)
        return Expansion(crossed * self.sample.points if self.sample else crossed)

    def points(self, expansion: Expansion | None = None) -> Iterator[Point]:
        """Yield the points; points that will be compared are adjacent.

        Parameters
        ----------
        expansion : Expansion, optional
            Its counts of skipped and merged points are filled in as points are yielded.

        Raises
        ------
        InputError
            If there are fewer points than are to be drawn.
        """
        counts = expansion or self.expansion()
        if self.sample is None:
            yield from self._kept({}, None, counts)
            return
        drawn, found = self._drawn
        vars(counts).update(vars(found))
        ids: set[str] = set()
        for draw in drawn:
            yield from self._kept(draw, ids, Expansion(0))

    @functools.cached_property
    def _crossed(self) -> Mapping[str, tuple[Any, ...]]:
        """The values of the axes that are not drawn."""
        drawn = self.sample.axes if self.sample else ()
        return {axis: tuple(values) for axis, values in self.axes.items() if axis not in drawn}

    @functools.cached_property
    def _drawn(self) -> tuple[list[Draw], Expansion]:
        """The draws of a sample that add a point, and the counts of all draws."""
        assert self.sample
        counts, ids = Expansion(0), set[str]()
        crossed = math.prod(map(len, self._crossed.values()))

        def adds(draw: Draw) -> bool:
            counts.total += crossed
            return bool(list(self._kept(draw, ids, counts)))

        return draws(self.axes, self.sample, self.seed, crossed, adds), counts

    def _kept(self, draw: Draw, ids: set[str] | None, counts: Expansion) -> Iterator[Point]:
        """Yield the points of a draw that are new and that no rule skips, counting the others.

        Parameters
        ----------
        ids : set of str or None
            Those of the points of earlier draws, to which these are added; None without draws.
        """
        rules = [rule.matcher() for rule in self.skip]
        different = self._different(draw)
        counts.merged += math.prod(map(len, self._values_of(draw).values())) - math.prod(map(len, different))
        for point in self._crossing(different):
            if ids is not None:
                if point.id in ids:
                    counts.merged += 1
                    continue
                ids.add(point.id)
            matching = [place for place, matches in enumerate(rules) if matches(point)]
            counts.matched.update(matching)
            if matching:
                counts.skipped[self.skip[matching[0]].reason] += 1
                continue
            yield point

    def _values_of(self, draw: Draw) -> dict[str, Sequence[Any]]:
        """Return the values of each axis of a draw, crossed with the axes that are not drawn."""
        values = {**self._crossed, **{axis: (value,) for axis, value in draw.items()}}
        return {axis: values[axis] for axis in ORDER}

    def _different(self, draw: Draw) -> list[list[Any]]:
        """Return the different values of each axis, those of algorithm and compiler together as pairs.

        No two points that they are crossed to are the same, so that a million of them need not be compared.
        """
        *others, algorithms, compilers = self._values_of(draw).values()
        pairs = [_collapsed(*pair) for pair in itertools.product(algorithms, compilers)]
        return [*map(_unique, others), _unique(pairs)]

    def at(self, draw: Draw) -> list[Point]:
        """Return the points of a draw: a value for each axis of the sample, crossed with the other axes."""
        return list(self._crossing(self._different(draw)))

    def _crossing(self, different: Sequence[Sequence[Any]]) -> Iterator[Point]:
        """Yield the points of what :meth:`_different` returned."""
        for *others, pair in itertools.product(*different):
            yield Point(**dict(zip(ORDER, (*others, *pair), strict=True)), seed=self.seed)

    def unmatched(self, expansion: Expansion) -> list[str]:
        """Return a sentence for each skip rule that matches no point, which may be misspelt.

        Parameters
        ----------
        expansion : Expansion
            After all points were yielded.
        """
        unused = [(place, rule) for place, rule in enumerate(self.skip) if place not in expansion.matched]
        values = {axis: self.values(axis) for axis in AXES} if unused else {}
        return [
            f"skip rule {place + 1} matches no point ({rule}): {rule.why_unmatched(values)}"
            for place, rule in unused
        ]

    def check_size(self) -> None:
        """Refuse a study that expands to nothing or to more than a million points.

        Raises
        ------
        InputError
        """
        expansion = self.expansion()
        if expansion.total > MOST_POINTS:
            drawn = self.sample.axes if self.sample else ()
            sizes = ", ".join(f"{axis} {self.axes[axis].size}" for axis in AXES if axis not in drawn)
            if self.sample:
                draws_of = f"{self.sample.points:,} draws of {', '.join(drawn)}"
                sizes = f"{draws_of}; {sizes}" if sizes else draws_of
            raise InputError(
                f"the study expands to {expansion.total:,} points ({sizes}); at most {MOST_POINTS:,}"
            )
        if next(self.points(expansion), None) is None:
            reasons = "; ".join(f"{count} by {reason!r}" for reason, count in expansion.skipped.items())
            raise InputError(f"the study expands to nothing: every point is skipped ({reasons})")

    def check_parts(self) -> None:
        """Refuse a part that cannot work here.

        Raises
        ------
        InputError
        """
        for axis in PART_AXES:
            for choice in dict.fromkeys(self.values(axis)):
                choice.verify(axis)


def _collapsed(algorithm: Choice, compiler: Choice) -> tuple[Choice, Choice]:
    """Return both, another algorithm if the compiler has kernels of its own."""
    own_kernels = parts.find("compiler", compiler.name).cls.own_kernels
    return (Choice(parts.LIBRARY) if own_kernels else algorithm), compiler


def _unique(values: Iterable[Any]) -> list[Any]:
    """Return the different values, or pairs of values, of an axis."""
    found: dict[object, Any] = {}
    for value in values:
        found.setdefault(_text(value), value)
    return list(found.values())


def _text(value: Any) -> object:
    """Return what tells a value from others: options of 1 and 1.0 are equal, but make two points."""
    if isinstance(value, tuple):
        return tuple(map(_text, value))
    return value.json if isinstance(value, Choice) else value
