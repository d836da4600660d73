"""Compression curves: the levels that networks were pruned to, one after the other, each training once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dlas.sweep.rows.labels import label, options
from dlas.sweep.rows.results import Row
from dlas.sweep.rows.schema import CompressionResult, CurveStep
from dlas.sweep.rows.short_labels import short_labels

ELBOW = "elbow"
CHOOSING = ("level", "elbow", "tolerance")
"""Options that decide at which level a technique stops."""
TOLERANCE = 0.01
"""Without an elbow, the highest level that loses at most this accuracy on validation images is chosen."""

Place = tuple[float, float]
"""Level and ratio of a step."""
ONLY = "only level"
"""The reason for choosing the only step of a curve."""
START: Place = (0.0, 0.0)
"""The dense network's."""


@dataclass(frozen=True)
class TrajectoryStep:
    """A network on a curve: shares of convolution weights and accuracies as fractions, None where unknown.

    ``before`` is the accuracy on test images before the fine-tuning of this step.
    """

    level: float
    ratio: float
    accuracy: float
    before: float | None = None
    validation: float | None = None
    epochs: float | None = None
    seconds: float | None = None


@dataclass
class Trajectory:
    """The steps of one technique, from one dense network."""

    dataset: str
    """Labels, as in the frame."""
    model: str
    """Labels, as in the frame."""
    seed: int
    technique: str
    """The compression without the options of :data:`CHOOSING`, and without any options."""
    name: str
    """The compression without the options of :data:`CHOOSING`, and without any options."""
    options: Mapping[str, Any]
    """The options of ``technique``, by :func:`dlas.sweep.rows.labels.options`."""
    steps: dict[Place, TrajectoryStep] = field(default_factory=dict)
    """By level and ratio."""
    lines: dict[Place, int] = field(default_factory=dict)
    """Line in the frame of each step that has a row."""
    elbows: set[Place] = field(default_factory=set)
    """Steps that are elbows."""
    images: int | None = None
    """Number of test images."""

    @property
    def network(self) -> tuple[str, str, int]:
        """Dataset, model and seed."""
        return self.dataset, self.model, self.seed

    @property
    def ordered(self) -> list[tuple[Place, TrajectoryStep]]:
        """The steps by rising ratio."""
        return sorted(self.steps.items(), key=lambda item: (item[1].ratio, item[0]))

    def chosen(self) -> tuple[Place | None, str]:
        """Return the step to report, and why it was chosen or why there is none.

        It is the elbow, if there is one (the mildest of several), or else the highest
        level within 1 point of the dense network on validation images, or the only level.
        """
        steps = [(place, step) for place, step in self.ordered if step.ratio > 0]
        elbows = [place for place, _ in self.ordered if place in self.elbows]
        if elbows:
            return elbows[0], "elbow"
        start = self.steps.get(START)
        dense = start.validation if start else None
        if dense is None or any(step.validation is None for _, step in steps):
            return (steps[0][0], ONLY) if len(steps) == 1 else (None, "no validation accuracy")
        place = self._within(dense)
        return (place, "within 1 point") if place else (None, "every level loses over 1 point")

    def _within(self, dense: float) -> Place | None:
        """Return the last step that loses at most :data:`TOLERANCE` of the accuracy on validation images."""
        harmless = [
            place
            for place, step in self.ordered
            if step.ratio > 0 and step.validation is not None and dense - step.validation <= TOLERANCE + 1e-12
        ]
        return harmless[-1] if harmless else None

    def agrees(self, steps: Mapping[Place, TrajectoryStep]) -> bool:
        """Return whether the steps may belong to this training: none differs from a step of it."""
        return all(self.steps.get(place, step) == step for place, step in steps.items())


class Trajectories:
    """Collects the curves of rows in :attr:`trainings`."""

    def __init__(self) -> None:
        self.trainings: list[Trajectory] = []
        self._alike: dict[tuple[str, str, int, str], list[Trajectory]] = {}

    def add(self, row: Row, line: int, dataset: str, model: str) -> None:
        """Add a row's curve, or its single step where it has none, to the training that it belongs to.

        ``line``, ``dataset`` and ``model`` are the row's in the frame.
        """
        steps = dict(_steps(row))
        if not steps:
            return
        technique = _technique(row.compression)
        names = "+".join(str(link.get("name")) for link in _links(row.compression))
        new = Trajectory(dataset, model, row.seed, label(technique), names, options(technique))
        alike = self._alike.setdefault((*new.network, new.technique), [])
        training = next((other for other in alike if other.agrees(steps)), new)
        if training is new:
            alike.append(new)
            self.trainings.append(new)
        training.steps |= steps
        training.images = training.images or row.test_images
        own = _place(row.reached, row.compression)
        if own in training.steps:
            training.lines.setdefault(own, line)
            if _links(row.compression)[-1].get("level") == ELBOW:
                training.elbows.add(own)
                training.lines[own] = line


def on_curve(row: Row) -> bool:
    """Return whether a row has steps of a curve, or is one."""
    return any(True for _ in _steps(row))


def called(trajectories: Iterable[Trajectory]) -> dict[str, str]:
    """Return a title for each technique: its name, and options in which techniques of that name differ."""
    return short_labels({curve.technique: (curve.name, curve.options) for curve in trajectories})


def fine_tuning_seconds(reached: CompressionResult) -> float | None:
    """Return the seconds spent on pruning and fine-tuning, all milestones included."""
    steps = [step for step in reached.get("curve") or () if step is not None]
    step_seconds = [seconds for step in steps if (seconds := _number(step.get("seconds"))) is not None]
    return sum(step_seconds) if step_seconds else None


def _curve(row: Row) -> list[CurveStep]:
    return row.reached.get("curve") or []


def _steps(row: Row) -> Iterator[tuple[Place, TrajectoryStep]]:
    """Yield the steps with an accuracy; a row without a curve is a step itself, if it is pruned."""
    for raw in _curve(row):
        place = _number(raw.get("level")) or 0.0, _number(raw.get("ratio")) or 0.0
        names = ("accuracy_before", "validation_accuracy", "epochs", "seconds")
        accuracy, *others = (_number(raw.get(name)) for name in ("accuracy", *names))
        if accuracy is not None:
            yield place, TrajectoryStep(*place, accuracy, *others)
    accuracy = _number(row.accuracy)
    if not _curve(row) and accuracy is not None:
        place = _place(row.reached, row.compression)
        if place[1] > 0 and not row.reached.get("bits"):
            yield place, TrajectoryStep(*place, accuracy, validation=_number(row.validation_accuracy))


def _place(reached: CompressionResult, compression: Mapping[str, Any]) -> Place:
    """Return the level and ratio of the network that a row measured."""
    ratio = _number(reached.get("ratio")) or 0.0
    levels = (reached.get("level"), _links(compression)[-1].get("level"), ratio)
    return next(level for candidate in levels if (level := _number(candidate)) is not None), ratio


def _number(value: object) -> float | None:
    """Return a number, None for what is none."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _links(compression: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a compression's techniques in order, up to the last that prunes to a level."""
    links = list(compression.get("chain") or [compression])
    pruning = [place for place, link in enumerate(links, start=1) if "level" in link]
    return links[: pruning[-1]] if pruning else links


def _technique(compression: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the steps of a trajectory have in common: the compression without its level."""
    *before, last = _links(compression)
    common = {key: value for key, value in last.items() if key not in CHOOSING}
    return {"chain": [*before, common]} if before else common
