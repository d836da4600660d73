"""Limits of time and memory, and of programs that are measured in turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pydantic


@dataclass(frozen=True)
class Limits:
    """Limits of a step; beyond them it is stopped and its point's row is ``timeout`` or ``failed``."""

    network: Annotated[float, pydantic.Field(gt=0)] = 7 * 86400.0
    conversion: Annotated[float, pydantic.Field(gt=0)] = 3600.0
    tune: Annotated[float, pydantic.Field(gt=0)] = 2 * 86400.0
    build: Annotated[float, pydantic.Field(gt=0)] = 3600.0
    check: Annotated[float, pydantic.Field(gt=0)] = 1800.0
    measure: Annotated[float, pydantic.Field(gt=0)] = 1800.0
    """Seconds; ``check`` also limits the step ``memory``, and ``conversion`` steps ``network`` that train
    nothing.
    """
    memory: Annotated[int, pydantic.Field(gt=0)] = 16 * 2**30
    """Bytes of anonymous memory of the step's processes together."""
    turns: Annotated[int, pydantic.Field(ge=1)] = 12
    """Most points of a comparison that are measured in turns, each with its program in memory: between points
    that take no turns together the machine may have changed.
    """
