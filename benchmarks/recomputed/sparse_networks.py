"""``experiments/sparse-networks``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.recomputed.kept import one, only, points, ratio
from benchmarks.recomputed.markdown import Value

ROWS = "sparse-networks/rows"
DENSE: dict[str, Any] = {"compression": "none", "algorithm": "spatial_pack(layout=blocked)"}
PRUNED: dict[str, Any] = {"compression_name": "weight_pruning", "algorithm": "csr_direct"}
PLACES: dict[str, dict[str, Any]] = {
    "dense, `hand`": DENSE | {"compiler_name": "hand"},
    "tuned": DENSE | {"compiler_name": "metaschedule"},
    "80 %, `hand`": PRUNED | {"compression__level": 0.8, "compiler_name": "hand"},
    "tuned (2)": PRUNED | {"compression__level": 0.8, "compiler_name": "metaschedule"},
    "95 %, `hand`": PRUNED | {"compression__level": 0.95, "compiler_name": "hand"},
    "tuned (3)": PRUNED | {"compression__level": 0.95, "compiler_name": "metaschedule"},
}
"""What each column of the table is measured on."""


def speeds(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return a network's speeds relative to ONNX Runtime on the dense network; None where not measured."""
    frame = only(points(ROWS), model_name=cells["network"].partition(",")[0], dataset_name="random")
    peer = one(frame, "latency_s", compression="none", compiler_name="onnxruntime")
    return {
        column: ratio(peer, one(frame, "latency_s", **place)) if len(only(frame, **place)) else None
        for column, place in PLACES.items()
    }
