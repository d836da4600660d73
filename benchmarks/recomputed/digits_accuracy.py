"""``experiments/digits-accuracy``."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.recomputed.kept import one, points
from benchmarks.recomputed.markdown import Value


def networks(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return a network's accuracies in percent, its parameters and its multiply-adds in millions."""
    frame = points("digits-accuracy/rows")
    place = {"model_name": cells["network, `width = 0.25`"].strip("`"), "compiler_name": "onnxruntime"}
    return {
        "test": 100 * one(frame, "accuracy", **place),
        "validation": 100 * one(frame, "validation_accuracy", **place),
        "parameters": one(frame, "parameters", **place),
        "multiply-adds": one(frame, "macs", **place) / 1e6,
    }
