"""What is refused before a sweep, and points that end before their first step."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from dlas.errors import InputError, MissingData, MissingPackage
from dlas.stack import PART_AXES, TRAINING, Data
from dlas.sweep.study import parts
from dlas.sweep.study.point import Choice, Point
from dlas.sweep.study.study import Study, check_size


def check_study(study: Study, points: Sequence[Point] | None = None) -> None:
    """Refuse a study that is too large, has a part that cannot work, or trains on one image what needs two.

    Parameters
    ----------
    points : sequence of Point, optional
        Those to run, by default all.

    Raises
    ------
    InputError
    """
    check_size(study)
    check_parts(study)
    check_training(study.points() if points is None else points)


def check_parts(study: Study) -> None:
    """Verify every part of a study.

    Raises
    ------
    InputError
    """
    for axis in PART_AXES:
        for choice in dict.fromkeys(study.values(axis)):
            try:
                choice.make(axis).verify()
            except (MissingPackage, MissingData, ValueError, OSError) as error:
                raise InputError(f"{axis} {choice}: {error}") from None


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
