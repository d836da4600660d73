"""Rounds of a measurement: a point whose times are unstable has a second one at the end of the sweep."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from dlas.sweep.rows.schema import OtherRound

Round = Mapping[str, Any]
"""Facts of a measurement by the row's column, with ``started`` and perhaps ``instability``."""


def steadier(first: Round, second: Round) -> dict[str, Any]:
    """Return the facts of the steadier of two rounds, with ``other_round`` for the other.

    Of two stable rounds, or of a device that does not tell how far slices are apart, it is the second.
    """
    first_apart, second_apart = (each.get("instability") or 0.0 for each in (first, second))
    keeps_first = bool(second.get("unstable")) and first_apart <= second_apart
    kept, other = (first, second) if keeps_first else (second, first)
    return {**kept, "other_round": _summary(other)}


def without_second(first: Round, started: str, reason: str | None) -> dict[str, Any]:
    """Return the facts of the first round after a second one failed."""
    other: OtherRound = {"started": started, "latency_s": None, "samples": 0, "reason": reason}
    return {**first, "other_round": other}


def _summary(facts: Round) -> OtherRound:
    samples = facts.get("latency_s") or []
    return {
        "started": facts["started"],
        "latency_s": statistics.median(samples) if samples else None,
        "samples": len(samples),
        "reason": facts.get("unstable_reason"),
    }
