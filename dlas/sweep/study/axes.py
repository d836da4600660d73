"""The axes of a study, and what they hold where a study leaves them out."""

from __future__ import annotations

from typing import Any

from dlas.stack import INFERENCE, PART_AXES

AXES = (*PART_AXES, "batch", "task")
DEFAULTS: dict[str, list[Any]] = {
    "dataset": ["digits"],
    "model": ["cifar_resnet18"],
    "compression": ["none"],
    "algorithm": ["direct"],
    "compiler": ["untuned"],
    "hardware": ["local_cpu"],
    "batch": [1],
    "task": [INFERENCE],
}
"""Values of an axis that a study leaves out."""
