"""The speed-up that is expected of a compression alone, by the work that it saves.

References
----------
DLAS, section 5.1.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FLOAT_BITS = 32


def by_ratio_and_bits(reached: Mapping[str, Any]) -> float:
    """Return 1 / (1 - ratio) for pruning times 32 / bits for types.

    Parameters
    ----------
    reached : mapping
        As :class:`dlas.sweep.rows.schema.CompressionResult`.
    """
    return by_bits(reached) / (1 - min(_number(reached, "ratio", 0), 1 - 1e-9))


def by_bits(reached: Mapping[str, Any]) -> float:
    """Return 32 / bits."""
    return FLOAT_BITS / _number(reached, "bits", FLOAT_BITS)


def takes_shallow_phases(reached: Mapping[str, Any]) -> bool:
    """Return whether this is a path through a flexible network that saves work.

    It has other phases than its dense network, so that multiply-adds tell what it saves, and no share of
    weights.
    """
    return "1" in str(reached.get("path", ""))


def _number(reached: Mapping[str, Any], name: str, default: float) -> float:
    value = reached.get(name)
    return float(value) if isinstance(value, int | float) and value > 0 else default
