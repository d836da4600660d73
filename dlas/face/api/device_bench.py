"""What is measured for a predictor of a device: drawn networks, and some that it never sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dlas.errors import InputError, listed
from dlas.prediction.learning.device_runs import UNSEEN, Asked, Part
from dlas.prediction.learning.spending import FIRST, UNSEEN_BATCHES
from dlas.stack import Backend, Model
from dlas.sweep.engine.checks import check_parts, unsupported
from dlas.sweep.engine.planned import Planned
from dlas.sweep.engine.session import Session
from dlas.sweep.study import parts
from dlas.sweep.study.point import Choice, Point
from dlas.sweep.study.sampling import TooFewDraws
from dlas.sweep.study.study import Study

BATCHES = (1, 2, 4, 8)
CLASSES = 1000
MEASURE: Mapping[str, float] = {"repeats": 20, "seconds": 1, "slices": 2}
LIMITS: Mapping[str, float] = {"network": 120, "build": 600, "check": 120, "measure": 120}
"""Seconds; a network that hangs must not take the minutes of all others."""
LAYER_REPEATS = 5
"""Of networks never seen: their layers are told, and nothing is fitted to them."""


class Bench(Protocol):
    """Where points are drawn, planned and measured."""

    def draws(self, count: int) -> list[Point]:
        """Return the first points that are drawn, fewer where there are no more; more begin with these."""

    def unseen(self) -> list[Point]:
        """Return the points of the networks that a predictor is tried on."""

    def plan(self, chosen: Sequence[Point], place: str) -> Planned:
        """Return what is known of a folder's points without building or measuring them; it may be nothing."""

    def measure(self, chosen: Sequence[Point], place: str) -> None:
        """Measure points that have no row yet in a folder."""


@dataclass
class DeviceBench:
    """Measures on a device, as ``dlas run`` does.

    Parameters
    ----------
    folder : Path
        Of the predictor; rows lie in folders in it.
    drawn, never_seen : Study
    session : Session
        Of all steps, so that what they import is imported once.
    """

    folder: Path
    drawn: Study
    never_seen: Study
    session: Session

    def draws(self, count: int) -> list[Point]:
        """Return the first points that are drawn, fewer where there are no more; more begin with these."""
        try:
            return self._first(count)
        except TooFewDraws as error:
            return self._first(error.found) if error.found else []

    def unseen(self) -> list[Point]:
        """Return the points of the networks that a predictor is tried on, those of a network together."""
        return list(self.never_seen.points())

    def plan(self, chosen: Sequence[Point], place: str) -> Planned:
        """Return what is known of points: their networks are made, or taken from the cache."""
        return self.session.part.plan(self._study_of(place), chosen, kernels=True)

    def measure(self, chosen: Sequence[Point], place: str) -> None:
        """Measure points that have no row yet in the folder ``place``."""
        study, folder = self._study_of(place), self.folder / place
        self.session.check(study, folder, chosen)
        self.session.part.measure(study, chosen, folder)

    def _first(self, count: int) -> list[Point]:
        """Return so many points as they are drawn."""
        study = self.drawn.with_sample(count)
        found = list(study.points())
        self.drawn = study
        return found

    def _study_of(self, place: str) -> Study:
        """Return the study whose points have their rows in a folder."""
        return self.never_seen if place == UNSEEN else self.drawn


def drawn_study(asked: Asked) -> Study:
    """Return the study of drawn networks that a predictor is fitted to.

    Raises
    ------
    InputError
        If a part or an option does not exist, or the part that is to draw networks draws none.
    """
    name, given = named("model", asked.model)
    model: type[Model] = parts.find("model", name).cls
    options = model.drawn(np.random.default_rng(0))
    if not options:
        raise InputError(f"--model {name!r} draws no networks; these parts do: {listed(_drawing())}")
    axes = {
        "dataset": {"name": "random", "size": list(model.image_sizes), "classes": CLASSES, "images": 2},
        "model": {"name": name, **dict.fromkeys(options, "drawn"), **given},
        "batch": list(BATCHES),
    }
    return _study(asked, axes, {"sample": {"points": FIRST, "axes": list(axes)}, "measure": dict(MEASURE)})


def unseen_study(asked: Asked) -> Study:
    """Return the study of the networks that a predictor is tried on, each with the images that it is for.

    Raises as :func:`drawn_study`.
    """
    from dlas.sweep.study.networks import network_of_part

    models = [{"name": name, **given} for name, given in (named("unseen", each) for each in asked.unseen)]
    images = [{**network_of_part(model).dataset, "images": 2} for model in models]
    different = [each for place, each in enumerate(images) if each not in images[:place]]
    skip = [
        {"dataset": each, "model": others, "reason": "the network is for other images"}
        for each in different
        if (others := [model for model, own in zip(models, images, strict=True) if own != each])
    ]
    axes = {"dataset": different, "model": models, "batch": list(UNSEEN_BATCHES)}
    return _study(asked, axes, {"skip": skip, "measure": {**MEASURE, "layer_repeats": LAYER_REPEATS}})


def check_device(asked: Asked, drawn: Study, never_seen: Study) -> None:
    """Refuse a device, a number of threads or a compiler with which nothing could be measured or predicted.

    Raises
    ------
    InputError
    """
    name, _ = named("compiler", asked.compiler)
    compiler: type[Backend] = parts.find("compiler", name).cls
    if compiler.kernels is Backend.kernels:
        raise InputError(
            f"--compiler {name!r} does not tell which kernels its programs run before they have "
            f"run, and the predictor adds up kernels; these tell: {listed(_telling())}"
        )
    if compiler.own_kernels and asked.algorithm is not None:
        raise InputError(
            f"--algorithm {named('algorithm', asked.algorithm)[0]!r}: {name} has kernels of its own, and "
            "takes none"
        )
    try:
        first = next(drawn.points())
    except TooFewDraws as error:
        raise InputError(
            f"--model {named('model', asked.model)[0]!r} draws {error.found} different points, and a "
            f"predictor is fitted to {FIRST} or more"
        ) from None
    for study in (drawn, never_seen):
        check_parts(study)
    if reason := unsupported(first):
        raise InputError(reason)


def named(option: str, part: Part) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of a part as an option gives it, a name or a table.

    Raises
    ------
    InputError
        If it has no name.
    """
    options: dict[str, Any] = {"name": part} if isinstance(part, str) else dict(part)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise InputError(f"--{option} {part!r}: expected a part's name, or a table with a name")
    return name, options


def _study(asked: Asked, axes: Mapping[str, Any], rest: Mapping[str, Any]) -> Study:
    """Return a study of what was asked for, with further axes and settings."""
    algorithm = asked.algorithm or {"name": "spatial_pack", "layout": "blocked"}
    own = {
        "algorithm": _one("algorithm", *named("algorithm", algorithm)),
        "compiler": _one("compiler", *named("compiler", asked.compiler)),
        "hardware": _hardware(asked),
    }
    return Study(axes={**axes, **own}, name="fit-device", seed=asked.seed, limits=dict(LIMITS), **rest)


def _hardware(asked: Asked) -> dict[str, Any]:
    """Return the device's part with its threads.

    Raises
    ------
    InputError
        If it takes no number of threads, or has one already.
    """
    name, options = named("hardware", asked.hardware)
    takes = "threads" in parts.find("hardware", name).options()
    if asked.threads is not None and not takes:
        raise InputError(f"--threads {asked.threads}: {name} takes no number of threads")
    if asked.threads is not None and "threads" in options:
        raise InputError(f"--threads {asked.threads}: --hardware says threads = {options['threads']!r}")
    if takes:
        options.setdefault("threads", asked.threads or 1)
    return _one("hardware", name, options)


def _one(axis: str, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part as an entry of a study, which stands for one value: lists of options are refused."""
    return Choice.checked(axis, name, options).content()


def _drawing() -> list[str]:
    """Return the models that draw networks."""
    found = []
    for name in sorted(parts.plain_names("model")):
        if parts.find("model", name).cls.drawn(np.random.default_rng(0)):
            found.append(name)
    return found


def _telling() -> list[str]:
    """Return the compilers that tell their kernels before they have run."""
    names = sorted(parts.plain_names("compiler"))
    return [name for name in names if parts.find("compiler", name).cls.kernels is not Backend.kernels]
