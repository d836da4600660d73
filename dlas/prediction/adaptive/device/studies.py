"""What is measured for a predictor of a device: drawn networks, and some that it never sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dlas.errors import InputError, listed
from dlas.prediction.adaptive.device.budget import (
    FIRST,
    UNSEEN_BATCHES,
    check_minutes,
    usual_s,
)
from dlas.prediction.adaptive.device.record import MORE_THREADS, UNSEEN, DeviceRequest, PartOption
from dlas.prediction.adaptive.loop import LoopBudget
from dlas.stack import Backend, Model
from dlas.sweep.engine.diagnosis import examine_hardware
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


@dataclass
class DeviceStudies:
    """The points that a predictor is fitted to, and those that it is tried on."""

    drawn: Study
    never_seen: Study
    on_more_threads: Study | None = None
    """Of networks that are drawn, on a second number of threads."""

    @classmethod
    def of(cls, asked: DeviceRequest) -> DeviceStudies:
        """Return those of what was asked for.

        Raises
        ------
        InputError
            If a part or an option does not exist, or the part that is to draw networks draws none.
        """
        more = on_more_threads(asked) if asked.more_threads else None
        return cls(drawn_study(asked), unseen_study(asked), more)

    def check(self, asked: DeviceRequest, budget: LoopBudget) -> None:
        """Refuse a device that cannot be used, and too few minutes for a run that has not begun.

        Raises
        ------
        InputError
        """
        check_device(asked, self.drawn, self.never_seen)
        if not budget.before_s:
            name, _ = named("compiler", asked.compiler)
            point_s = usual_s(parts.find("compiler", name).cls)
            more = FIRST if asked.more_threads else 0
            check_minutes(budget.minutes, name, point_s, len(asked.unseen), more)

    def draws(self, count: int) -> list[Point]:
        """Return the first points that are drawn, fewer where there are no more; more begin with these."""
        try:
            return self._first(count)
        except TooFewDraws as error:
            return self._first(error.found) if error.found else []

    def unseen(self) -> list[Point]:
        """Return the points of the networks that a predictor is tried on, those of a network together."""
        return list(self.never_seen.points())

    def study(self, place: str) -> Study:
        """Return the study whose points have their rows in a folder."""
        if place == MORE_THREADS and self.on_more_threads is not None:
            return self.on_more_threads
        return self.never_seen if place == UNSEEN else self.drawn

    def with_more_threads(self, point: Point) -> Point:
        """Return a point on more threads."""
        assert self.on_more_threads is not None
        return replace(point, hardware=next(self.on_more_threads.points()).hardware)

    def _first(self, count: int) -> list[Point]:
        """Return so many points as they are drawn."""
        study = self.drawn.with_sample(count)
        found = list(study.points())
        self.drawn = study
        return found


def drawn_study(asked: DeviceRequest) -> Study:
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
        raise InputError(f"`model={name!r}` draws no networks; these parts do: {listed(_drawing())}")
    axes = {
        "dataset": {"name": "random", "size": list(model.image_sizes), "classes": CLASSES, "images": 2},
        "model": {"name": name, **dict.fromkeys(options, "drawn"), **given},
        "batch": list(BATCHES),
    }
    return _study(asked, axes, {"sample": {"points": FIRST, "axes": list(axes)}, "measure": dict(MEASURE)})


def on_more_threads(asked: DeviceRequest) -> Study:
    """Return the study of the same networks on a second number of threads.

    Raises
    ------
    InputError
        If the device takes no number of threads, or there are as many for all points.
    """
    name, options = named("hardware", asked.hardware)
    fewer = _hardware(asked).get("threads", 1)
    if "threads" not in parts.find("hardware", name).options():
        raise InputError(f"`more_threads={asked.more_threads}`: {name} takes no number of threads")
    if asked.more_threads is None or asked.more_threads <= fewer:
        raise InputError(f"`more_threads={asked.more_threads}`: expected more than the {fewer} of all points")
    table = {"name": name, **options, "threads": asked.more_threads}
    return drawn_study(asked.model_copy(update={"hardware": table, "threads": None}))


def unseen_study(asked: DeviceRequest) -> Study:
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


def check_device(asked: DeviceRequest, drawn: Study, never_seen: Study) -> None:
    """Refuse a device, a number of threads or a compiler with which nothing could be measured or predicted.

    Raises
    ------
    InputError
    """
    name, _ = named("compiler", asked.compiler)
    compiler: type[Backend] = parts.find("compiler", name).cls
    if compiler.kernels is Backend.kernels:
        raise InputError(
            f"`compiler={name!r}` does not tell which kernels its programs run before they have "
            f"run, and the predictor adds up kernels; these tell: {listed(_telling())}"
        )
    if compiler.own_kernels and asked.algorithm is not None:
        raise InputError(
            f"`algorithm={named('algorithm', asked.algorithm)[0]!r}`: {name} has kernels of its own, and "
            "takes none"
        )
    try:
        first = next(drawn.points())
    except TooFewDraws as error:
        raise InputError(
            f"`model={named('model', asked.model)[0]!r}` draws {error.found} different points, and a "
            f"predictor is fitted to {FIRST} or more"
        ) from None
    for study in (drawn, never_seen):
        study.check_parts()
    if reason := first.unsupported():
        raise InputError(reason)


def examine(asked: DeviceRequest, say: Callable[[str], None]) -> None:
    """Say what is wrong with the device; refuse one that cannot be measured on.

    Raises
    ------
    InputError
        It says what to do.
    """
    say("doctor: examining the device")
    found = examine_hardware(named("hardware", asked.hardware)[0])
    say(f"doctor: {sum(check.status == 'ok' for check in found)} of {len(found)} checks are ok")
    for check in found:
        told = f"{check.name}: {check.finding}; {check.advice}"
        if check.status == "fail":
            raise InputError(f"doctor: {told}")
        if check.status == "warn":
            say(f"  {told}")


def named(option: str, part: PartOption) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of a part as an option gives it, a name or a table.

    Raises
    ------
    InputError
        If it has no name.
    """
    options: dict[str, Any] = {"name": part} if isinstance(part, str) else dict(part)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise InputError(f"`{option}={part!r}`: expected a part's name, or a table with a name")
    return name, options


def _study(asked: DeviceRequest, axes: Mapping[str, Any], rest: Mapping[str, Any]) -> Study:
    """Return a study of what was asked for, with further axes and settings."""
    algorithm = asked.algorithm or {"name": "spatial_pack", "layout": "blocked"}
    own = {
        "algorithm": _one("algorithm", *named("algorithm", algorithm)),
        "compiler": _one("compiler", *named("compiler", asked.compiler)),
        "hardware": _hardware(asked),
    }
    return Study(axes={**axes, **own}, name="fit-device", seed=asked.seed, limits=dict(LIMITS), **rest)


def _hardware(asked: DeviceRequest) -> dict[str, Any]:
    """Return the device's part with its threads.

    Raises
    ------
    InputError
        If it takes no number of threads, or has one already.
    """
    name, options = named("hardware", asked.hardware)
    takes = "threads" in parts.find("hardware", name).options()
    if asked.threads is not None and not takes:
        raise InputError(f"`threads={asked.threads}`: {name} takes no number of threads")
    if asked.threads is not None and "threads" in options:
        raise InputError(f"`threads={asked.threads}`: `hardware=` says threads = {options['threads']!r}")
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
