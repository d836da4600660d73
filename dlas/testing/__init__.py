"""Checks of each axis's contract, and of a strategy's, for parts of this project and of others.

A check raises ``AssertionError`` with the part's behaviour and what was expected.
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
    from dlas.testing.predictors import check_predictor
    from dlas.testing.strategies import check_strategy

__all__ = [
    "check_algorithm",
    "check_compiler",
    "check_compression",
    "check_dataset",
    "check_hardware",
    "check_model",
    "check_predictor",
    "check_strategy",
]
HOMES = {
    "check_algorithm": "algorithms",
    "check_compiler": "compilers",
    "check_compression": "compression",
    "check_dataset": "datasets",
    "check_hardware": "hardware",
    "check_model": "models",
    "check_predictor": "predictors",
    "check_strategy": "strategies",
}


def __getattr__(name: str) -> Any:
    """Import a check on first use: checking a data set needs no tvm."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{HOMES[name]}"), name)
