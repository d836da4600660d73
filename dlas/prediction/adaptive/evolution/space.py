"""The drawn part of a study as a space to search, and the features of candidates, which nobody makes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from dlas.errors import InputError
from dlas.networks.operators import Operators
from dlas.prediction.learning.examples import DerivedOperators
from dlas.prediction.learning.features import OWN, columns, matrix, of_operators
from dlas.stack import PART_AXES, Model, Predictor, Samples
from dlas.sweep.study import parts
from dlas.sweep.study.point import NONE, Choice, Point
from dlas.sweep.study.study import Study

Candidate = tuple[Any, ...]
"""A value for each axis of a study's sample."""


@dataclass(frozen=True)
class StudySpace:
    """What a study draws."""

    study: Study
    """It has a sample, and one value on every other axis."""

    @classmethod
    def of(cls, study: Study) -> StudySpace:
        """Return the space of a study.

        Raises
        ------
        InputError
            If it draws nothing, or has several values on an axis that it does not draw.
        """
        if study.sample is None or not any(study.axes[axis].open for axis in study.sample.axes):
            raise InputError(
                "a search needs a study that draws: an option with the value 'drawn', and a table [sample] "
                "whose axes are those to search"
            )
        for axis, values in study.axes.items():
            if axis not in study.sample.axes and values.size > 1:
                raise InputError(
                    f"a search is for one {axis}, and the study has {values.size}; or name it in [sample] "
                    "axes, to search among its values"
                )
        return cls(study)

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes that are searched."""
        assert self.study.sample is not None
        return self.study.sample.axes

    @functools.cached_property
    def small(self) -> Study:
        """The study with one draw, for sweeps over candidates alone."""
        return self.study.with_sample(1)

    def draw(self, rng: np.random.Generator) -> Candidate:
        """Return a candidate at random."""
        return tuple(self.study.axes[axis].draw(rng) for axis in self.axes)

    def mutated(self, one: Candidate, rate: float, rng: np.random.Generator) -> Candidate:
        """Return a candidate, each of whose choices is made anew with a probability."""
        return tuple(
            self.study.axes[axis].mutated(value, rate, rng)
            for axis, value in zip(self.axes, one, strict=True)
        )

    def crossed(self, one: Candidate, other: Candidate, rng: np.random.Generator) -> Candidate:
        """Return a candidate between two."""
        return tuple(
            self.study.axes[axis].crossed(first, second, rng)
            for axis, first, second in zip(self.axes, one, other, strict=True)
        )

    def point(self, candidate: Candidate) -> Point:
        """Return the point of a candidate."""
        (found,) = self.study.at(dict(zip(self.axes, candidate, strict=True)))
        return found

    def allows(self, point: Point) -> bool:
        """Return whether the study does not skip a point."""
        return not any(rule.matches(point) for rule in self.study.skip)

    def content(self, candidate: Candidate) -> dict[str, Any]:
        """Return a candidate by axis, JSON-able."""
        return {
            axis: value.content() if isinstance(value, Choice) else value
            for axis, value in zip(self.axes, candidate, strict=True)
        }

    def of_content(self, content: dict[str, Any]) -> Candidate:
        """Return the candidate that :meth:`content` described.

        Raises
        ------
        InputError
            If it is none of this study.
        """
        if sorted(content) != sorted(self.axes):
            raise InputError(
                f"a candidate of {', '.join(self.axes)} is expected, not of {', '.join(content)}"
            )
        return tuple(
            Choice.of(content[axis]) if isinstance(content[axis], dict) else content[axis]
            for axis in self.axes
        )


def told_by_options(predictor: Predictor, target: str, point: Point) -> bool:
    """Return whether what a predictor reads of points like one follows from their options.

    Raises
    ------
    InputError
        If it reads what a table from elsewhere tells, which no new point has.
    """
    if predictor.level == "kernel":
        return False
    families = predictor.families(target)
    if OWN in families:
        raise InputError("this predictor reads features that a table told of its points: a search has none")
    read = of_operators(families)
    listed = parts.find("model", point.model.name).cls.operators is not Model.operators
    return not read or (listed and point.compression == NONE)


def samples_of(predictor: Predictor, target: str, points: Sequence[Point]) -> Samples:
    """Return what a predictor reads of points that nobody made, where their options tell it.

    Raises
    ------
    InputError
        If a model takes no such images.
    """
    families = predictor.families(target)
    networks: list[Operators] = (
        [_followed(point) for point in points] if of_operators(families) else [{}] * len(points)
    )
    batches = [point.batch for point in points]
    return Samples(
        ids=tuple(map(str, range(len(points)))),
        columns=columns(families),
        features=matrix(families, networks, batches, PointOptions(points)),
        target=np.full(len(points), np.nan),
        groups=("",) * len(points),
        quantity=target,
    )


def _followed(point: Point) -> DerivedOperators:
    """Return a point's operators."""
    data = point.dataset.make("dataset").load()
    return DerivedOperators(point.model.make("model"), data.shape, data.classes, point.batch)


@dataclass(frozen=True)
class PointOptions:
    """The options of points, by the names of columns."""

    points: Sequence[Point]

    def __call__(self, column: str) -> list[Any]:
        """Return a column, None where a point has no value in it."""
        if column == "batch":
            return [point.batch for point in self.points]
        axis, _, option = column.partition(".")
        axis = axis.removesuffix("_name")
        assert axis in PART_AXES, column
        choices = map(attrgetter(axis), self.points)
        if not option:
            return [choice.name for choice in choices]
        found = []
        for choice in choices:  # no dict of each, for there may be a hundred thousand
            for name, value in choice.options:
                if name == option:
                    found.append(value)
                    break
            else:
                found.append(None)
        return found
