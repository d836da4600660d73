"""What older and damaged rows say in other words or forms."""

from __future__ import annotations

from typing import Any

from dlas.networks.operator_names import of_topi
from dlas.stack import PART_AXES


def renewed(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a row's content as rows of this version have it.

    Parts are mappings, layers and steps of a curve too; what is in the place of one is left out.
    """
    schema = raw.get("schema", 1)
    if isinstance(schema, int) and schema < 3 and raw.get("resident_bytes") is None:
        raw["resident_bytes"] = raw.pop("peak_memory_bytes", None)
    for axis in PART_AXES:
        if axis in raw and not isinstance(raw[axis], dict):
            raw[axis] = {"name": str(raw[axis])}
    if isinstance(raw.get("layers"), list):
        raw["layers"] = [with_operator(layer) for layer in _mappings(raw["layers"])]
    if isinstance(reached := raw.get("reached"), dict):
        if not isinstance(reached.get("layers", {}), dict):
            del reached["layers"]
        if "curve" in reached:
            reached["curve"] = _mappings(reached["curve"])
    return raw


def with_operator(layer: dict[str, Any]) -> dict[str, Any]:
    """Return a layer of a row written before layers had operators with what can be told of its own.

    Such a row names under ``tail`` what is computed in the same kernel, by the names of Relax.
    """
    if "operator" in layer or "tail" not in layer:
        return layer
    told = {name: value for name, value in layer.items() if name != "tail"}
    fused = [of_topi(str(name)) or str(name) for name in layer["tail"] or ()]
    return {**told, "operator": "Gemm" if layer.get("algorithm") == "linear" else "Conv", "fused": fused}


def _mappings(values: object) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []
