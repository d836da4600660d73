"""What is measured for a predictor of a device: drawn networks, and some that it never sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dlas.api.planned import Planned, planned
from dlas.api.running import Progress, check_parts, run_into
from dlas.engine.unsupported import unsupported
from dlas.errors import InputError, listed
from dlas.learning.device_runs import UNSEEN, Asked
from dlas.learning.spending import FIRST, UNSEEN_BATCHES
from dlas.processes.interface import Runner
from dlas.stack import Backend
from dlas.study import parts
from dlas.study.point import Point
from dlas.study.study import Study

SIZES = (32, 64, 96, 128, 160, 192, 224)
BATCHES = (1, 2, 4, 8)
USUAL_SIZE = 224
"""Images of the networks that a predictor is tried on."""
MEASURE: Mapping[str, float] = {"repeats": 20, "seconds": 1, "slices": 2}
LIMITS: Mapping[str, float] = {"network": 120, "build": 600, "check": 120, "measure": 120}
"""Seconds; a network that hangs must not take the minutes of all others."""
LAYER_REPEATS = 5
"""Of networks never seen: their layers are told, and nothing is fitted to them."""


class Bench(Protocol):
    """Where points are drawn, planned and measured."""

    def draws(self, count: int) -> list[Point]:
        """Return the first points that are drawn; more of them begin with these."""

    def unseen(self) -> list[Point]:
        """Return the points of the networks that a predictor is tried on."""

    def plan(self, chosen: Sequence[Point]) -> Planned:
        """Return what is known of points without building or measuring them."""

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
    runner : Runner
        Of all steps, so that what they import is imported once.
    cache : Path or None
    jobs : int
        Network and build steps at a time.
    progress : {"auto", "rich", "plain", "silent"}
    """

    folder: Path
    drawn: Study
    never_seen: Study
    runner: Runner
    cache: Path | None
    jobs: int
    progress: Progress

    def draws(self, count: int) -> list[Point]:
        """Return the first points that are drawn; more of them begin with these."""
        self.drawn = self.drawn.with_sample(count)
        return list(self.drawn.points())

    def unseen(self) -> list[Point]:
        """Return the points of the networks that a predictor is tried on, those of a network together."""
        return list(self.never_seen.points())

    def plan(self, chosen: Sequence[Point]) -> Planned:
        """Return what is known of points: their networks are made, or taken from the cache."""
        study, shared = self._study_of(chosen), self._shared()
        return planned(study, points=chosen, steps=self.runner, kernels=True, **shared)

    def measure(self, chosen: Sequence[Point], place: str) -> None:
        """Measure points that have no row yet in the folder ``place``."""
        study = self.never_seen if place == UNSEEN else self.drawn
        run_into(study, self.folder / place, points=chosen, steps=self.runner, **self._shared())

    def _study_of(self, chosen: Sequence[Point]) -> Study:
        return self.never_seen if chosen[0] in self.unseen() else self.drawn

    def _shared(self) -> dict[str, Any]:
        return {"cache": self.cache, "jobs": self.jobs, "progress": self.progress, "lines": False}


def drawn_study(asked: Asked) -> Study:
    """Return the study of drawn networks that a predictor is fitted to.

    Raises
    ------
    InputError
        If a part or an option does not exist, or the part that is to draw networks draws none.
    """
    model = parts.find("model", asked.model).cls
    options = model.drawn(np.random.default_rng(0))
    if not options:
        raise InputError(f"--model {asked.model!r} draws no networks; these parts do: {listed(_drawing())}")
    axes = {
        "dataset": _images(list(SIZES)),
        "model": {"name": asked.model, **dict.fromkeys(options, "drawn")},
        "batch": list(BATCHES),
    }
    return _study(asked, axes, {"sample": {"points": FIRST, "axes": list(axes)}, "measure": dict(MEASURE)})


def unseen_study(asked: Asked) -> Study:
    """Return the study of the networks that a predictor is tried on; raises as :func:`drawn_study`."""
    axes = {"dataset": _images(USUAL_SIZE), "model": list(asked.unseen), "batch": list(UNSEEN_BATCHES)}
    return _study(asked, axes, {"measure": {**MEASURE, "layer_repeats": LAYER_REPEATS}})


def check_device(asked: Asked, *studies: Study) -> None:
    """Refuse a device, a number of threads or a compiler with which nothing could be measured or predicted.

    Raises
    ------
    InputError
    """
    compiler: type[Backend] = parts.find("compiler", asked.compiler).cls
    if compiler.kernels is Backend.kernels:
        raise InputError(
            f"--compiler {asked.compiler!r} does not tell which kernels its programs run before they have "
            f"run, and the predictor adds up kernels; these tell: {listed(_telling())}"
        )
    if compiler.own_kernels and asked.algorithm is not None:
        raise InputError(
            f"--algorithm {asked.algorithm!r}: {asked.compiler} has kernels of its own, and takes none"
        )
    for study in studies:
        check_parts(study)
    if reason := unsupported(next(studies[0].points())):
        raise InputError(reason)


def _study(asked: Asked, axes: Mapping[str, Any], rest: Mapping[str, Any]) -> Study:
    """Return a study of what was asked for, with further axes and settings."""
    blocked = {"name": "spatial_pack", "layout": "blocked"}
    hardware: dict[str, Any] = {"name": asked.hardware}
    if "threads" in parts.find("hardware", asked.hardware).options():
        hardware["threads"] = asked.threads
    own = {"algorithm": asked.algorithm or blocked, "compiler": asked.compiler, "hardware": hardware}
    return Study(axes={**axes, **own}, name="fit-device", seed=asked.seed, limits=dict(LIMITS), **rest)


def _images(size: int | list[int]) -> dict[str, Any]:
    return {"name": "random", "size": size, "classes": 1000, "images": 2}


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
