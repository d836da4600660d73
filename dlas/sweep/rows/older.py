"""What older rows say in other words."""

from __future__ import annotations

from typing import Any

from dlas.networks.operator_names import of_topi


def with_operator(layer: object) -> Any:
    """Return a layer of a row written before layers had operators with what can be told of its own.

    Such a row names under ``tail`` what is computed in the same kernel, by the names of Relax.
    """
    if not isinstance(layer, dict) or "operator" in layer or "tail" not in layer:
        return layer
    told = {name: value for name, value in layer.items() if name != "tail"}
    fused = [of_topi(str(name)) or str(name) for name in layer["tail"] or ()]
    return {**told, "operator": "Gemm" if layer.get("algorithm") == "linear" else "Conv", "fused": fused}
