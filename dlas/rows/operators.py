"""The operators of a row by kind: what is computed together, how often, and how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dlas.rows.layer_times import timed_layers
from dlas.rows.results import Row

UNKNOWN = "unknown"
"""The kind of layers whose row does not tell their operator."""


@dataclass
class Kind:
    """The timed layers of a row that compute the same operators together.

    Parameters
    ----------
    name : str
        The operator and those fused with it: ``Conv + Add + Relu``.
    count : int
        Number of layers.
    latency_s : float, s
        Of all of them, without the profiler's cost; in training the forward pass.
    backward_s : float or None, s
        Of all of them, as profiled; None where no layer has a backward pass.
    """

    name: str
    count: int = 0
    latency_s: float = 0.0
    backward_s: float | None = None


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
