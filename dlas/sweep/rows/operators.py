"""The operators of a row by kind and class: what is computed together, how often, how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dlas.sweep.rows.layer_times import timed_layers
from dlas.sweep.rows.results import Row

UNKNOWN = "unknown"
"""The kind of layers whose row does not tell their operator."""
LISTED = {
    "linear": "Gemm MatMul",
    "norm": "BatchNormalization LayerNormalization GroupNormalization InstanceNormalization",
    "pool": "MaxPool AveragePool GlobalAveragePool GlobalMaxPool ReduceMean adaptive_avg_pool2d",
    "concat": "Concat",
    "elementwise": "Add Sub Mul Div Relu Clip Sigmoid HardSigmoid HardSwish Swish Mish Gelu Tanh LeakyRelu "
    "Elu Erf Softmax Dropout",
}
"""Operators by class, convolutions apart; what is not listed is ``other``."""
CLASSES = ("conv1x1", "conv", "depthwise", "grouped", *LISTED, "other")
"""Classes of operators whose costs differ."""
CLASS_OF = {operator: name for name, operators in LISTED.items() for operator in operators.split()}


@dataclass
class Kind:
    """The timed layers of a row that compute the same operators together."""

    name: str
    """The operator and those fused with it: ``Conv + Add + Relu``."""
    count: int = 0
    """Number of layers."""
    latency_s: float = 0.0
    """Of all of them, without the profiler's cost; in training the forward pass."""
    backward_s: float | None = None
    """Of all of them, without the profiler's cost; None where no layer has a backward pass."""


def kinds(row: Row) -> list[Kind]:
    """Return the kinds of a row's timed layers, the one that takes longest first."""
    found: dict[str, Kind] = {}
    for layer, latency_s in timed_layers(row):
        name = kind_of(layer)
        kind = found.setdefault(name, Kind(name))
        kind.count += 1
        kind.latency_s += latency_s
        backward_s = layer.get("backward_s")
        if isinstance(backward_s, int | float):
            kind.backward_s = (kind.backward_s or 0.0) + backward_s
    return sorted(found.values(), key=lambda kind: -(kind.latency_s + (kind.backward_s or 0.0)))


def kind_of(layer: Mapping[str, Any]) -> str:
    """Return a layer's operator and those fused with it, ``Conv + Relu``, or ``unknown``."""
    operator = layer.get("operator")
    if operator is None:
        return UNKNOWN
    return " + ".join(map(str, (operator, *(layer.get("fused") or ()))))


def class_of(layer: Mapping[str, Any]) -> str:
    """Return the class of a layer's operator, one of :data:`CLASSES`; ``other`` where it is not known."""
    if layer.get("operator") != "Conv" or not layer.get("groups"):
        return CLASS_OF.get(layer.get("operator") or "", "other")
    if layer["groups"] == 1:
        return "conv1x1" if layer.get("r") == layer.get("s") == 1 else "conv"
    return "depthwise" if layer["groups"] == layer.get("c") else "grouped"
