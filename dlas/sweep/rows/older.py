"""What older rows say in other words or forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlas.networks.operator_names import of_topi
from dlas.stack import PART_AXES
from dlas.sweep.rows.expected import by_ratio_and_bits, takes_shallow_phases
from dlas.sweep.rows.machines import with_core_caches

NEWEST = 4
"""The schema whose quantities are told as this version tells them."""
FLAG, FLAG_REASON = "unstable", "unstable_reason"
"""Fields of rows of schema 3 and before, and columns of tables that were exported of them."""


def renewed(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a row's content as rows of this version have it.

    Its fields have their types, but there may be none in the place of a layer or of a step of a curve: that
    is left out.
    """
    raw |= replaced(raw)
    for axis in PART_AXES:
        raw[axis] = as_part(raw[axis])
    if layers := raw.get("layers"):
        raw["layers"] = [with_operator(layer) for layer in layers if layer is not None]
    if device := raw.get("device"):
        raw["device"] = with_core_caches(device)
    if reached := raw.get("reached"):
        raw["reached"] = {name: value for name, value in reached.items() if value is not None}
        if "curve" in raw["reached"]:
            raw["reached"]["curve"] = [step for step in reached["curve"] if step is not None]
    return raw


def replaced(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of a row's quantities, by field, that this version tells otherwise."""
    if (raw.get("schema") or 1) >= NEWEST:
        return {}
    found = unstable_status(raw)
    if (raw.get("schema") or 1) < 3 and raw.get("resident_bytes") is None:
        found |= {"resident_bytes": raw.get("peak_memory_bytes"), "peak_memory_bytes": None}
    # Older versions expected of a path what its share of weights told, which is nothing.
    reached = raw.get("reached") or {}
    if takes_shallow_phases(reached) and raw.get("expected_speedup") == by_ratio_and_bits(reached):
        found["expected_speedup"] = None
    return found


def as_part(content: str | dict[str, Any]) -> dict[str, Any]:
    """Return a part's content, of which older rows may have the name alone."""
    return {"name": content} if isinstance(content, str) else content


def unstable_status(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a row of before, which was ``ok`` with a flag where its times were no result."""
    if raw.get(FLAG) is not True or raw.get("status") != "ok":
        return {}
    return {"status": "unstable", "reason": raw.get(FLAG_REASON)}


def with_operator(layer: dict[str, Any]) -> dict[str, Any]:
    """Return a layer of a row written before layers had operators with what can be told of its own.

    Such a row names under ``tail`` what is computed in the same kernel, by the names of Relax.
    """
    if "operator" in layer or "tail" not in layer:
        return layer
    told = {name: value for name, value in layer.items() if name != "tail"}
    fused = [of_topi(str(name)) or str(name) for name in layer["tail"] or ()]
    return {**told, "operator": "Gemm" if layer.get("algorithm") == "linear" else "Conv", "fused": fused}
