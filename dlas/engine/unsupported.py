"""Points that end before their first step."""

from __future__ import annotations

from dlas.stack import TRAINING, Hardware
from dlas.study import parts
from dlas.study.point import Point


def unsupported(point: Point) -> str | None:
    """Return why a point can take no step, or None: no such device here, or no compiler that trains."""
    device: Hardware = point.hardware.make("hardware")
    if reason := device.unsupported():
        return f"{point.hardware.name}: {reason}"
    if point.task == TRAINING and not parts.find("compiler", point.compiler.name).cls.trains:
        able = [name for name in parts.names("compiler") if parts.find("compiler", name).cls.trains]
        return f"{point.compiler.name} builds for inference only; {' and '.join(able)} train"
    return None
