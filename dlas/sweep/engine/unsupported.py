"""Points that end before their first step, and those that are refused before a sweep."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from dlas.errors import InputError
from dlas.stack import TRAINING, Data
from dlas.sweep.study import parts
from dlas.sweep.study.point import Choice, Point


def unsupported(point: Point) -> str | None:
    """Return why a point can take no step, or None: no such device here, or a compiler that does not suit."""
    if reason := point.device.unsupported():
        return f"{point.hardware.name}: {reason}"
    compiler = point.compiler_class
    if reason := point.device.refuses(compiler):
        return f"{point.compiler.name} on {point.hardware.name}: {reason}"
    if point.task == TRAINING and not compiler.trains:
        return f"{point.compiler.name} builds for inference only; {' and '.join(_trainers())} train"
    return None


@functools.cache
def _trainers() -> tuple[str, ...]:
    """Return the compilers that train."""
    return tuple(name for name in parts.names("compiler") if parts.find("compiler", name).cls.trains)


def check_training(points: Iterable[Point]) -> None:
    """Refuse points that train a network on one image, where its batch norms need two.

    Raises
    ------
    InputError
    """
    tried = (point for point in points if point.task == TRAINING and point.batch == 1)
    able = (point for point in tried if not unsupported(point))
    loaded: dict[Choice, Data | None] = {}
    for dataset, model in dict.fromkeys((point.dataset, point.model) for point in able):
        if dataset not in loaded:
            loaded[dataset] = _data(dataset)
        data = loaded[dataset]
        if data is not None and (reason := model.make("model").untrainable(data, batch=1)):
            raise InputError(f"model {model}: {reason}")


def _data(dataset: Choice) -> Data | None:
    """Return a data set; None if it cannot be read, of which its rows tell."""
    try:
        return dataset.make("dataset").load()
    except Exception:  # whatever it raises
        return None
