"""The contract of each axis, as a function that holds a part to it: ours, and those that others write.

A check raises ``AssertionError`` that says what the part did and what was expected.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dlas.testing.algorithms import check_algorithm
    from dlas.testing.compilers import check_compiler
    from dlas.testing.compression import check_compression
    from dlas.testing.datasets import check_dataset
    from dlas.testing.hardware import check_hardware
    from dlas.testing.models import check_model

__all__ = [
    "check_algorithm",
    "check_compiler",
    "check_compression",
    "check_dataset",
    "check_hardware",
    "check_model",
]
HOMES = {
    "check_algorithm": "algorithms",
    "check_compiler": "compilers",
    "check_compression": "compression",
    "check_dataset": "datasets",
    "check_hardware": "hardware",
    "check_model": "models",
}


def __getattr__(name: str) -> Any:
    """Import a check when it is asked for: a data set's needs no tvm."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{HOMES[name]}"), name)
