"""Analytic costs that add up to the time that a network takes: few for all, or many by class of operator."""

from __future__ import annotations

from collections.abc import Sequence

from dlas.prediction.learning.features.totals import read, totals, weights, written
from dlas.stack import Operator
from dlas.sweep.rows.operators import CLASSES, class_of

NARROW = ("depthwise", "grouped")
"""Classes of convolutions that read few channels for an output, and so compute little on what they load."""
FIRST = "first"
"""The convolution that reads the images: it has few channels, and no gradient with respect to its input."""
KINDS = (FIRST, *CLASSES)
COSTS = ("macs", "padded_macs", "values", "weights", "count")
BLOCK = 8
"""Values of a vector register of 256 bits: kernels compute whole blocks of channels."""


def costs(operators: Sequence[Operator]) -> dict[str, float]:
    """Return the costs of a network's time.

    They are few, so that a sum fitted to some networks holds for others: rates of their own for each class
    of operator come two points closer between fitted levels, and err by 17 % in place of 12 % on networks
    never seen (``experiments/training-cost``).

    Parameters
    ----------
    operators : sequence of Operator
        Of a batch.

    Returns
    -------
    dict of str to float
        Multiply-adds of depthwise and grouped convolutions (``narrow_macs``) and of all else (``macs``);
        values read and written; weights; the number of ``operators``; and ``once``, which is 1: what a
        run takes whatever the network.
    """
    found = totals(operators)
    narrow = float(sum(layer.get("macs") or 0 for layer in operators if class_of(layer) in NARROW))
    return found | {"macs": found["macs"] - narrow, "narrow_macs": narrow, "once": 1.0}


def costs_by_class(operators: Sequence[Operator]) -> dict[str, float]:
    """Return the costs of a network's time by class of operator, the first convolution apart.

    Parameters
    ----------
    operators : sequence of Operator
        Of a batch.

    Returns
    -------
    dict of str to float
        For each class: multiply-adds; those of whole blocks of channels; values read and written; weights;
        and the number of operators.
    """
    found = {f"{name}_{cost}": 0.0 for name in KINDS for cost in COSTS}
    first = next((layer for layer in operators if layer.get("operator") == "Conv"), None)
    for layer in operators:
        name = FIRST if layer is first else class_of(layer)
        found[f"{name}_macs"] += layer.get("macs") or 0
        found[f"{name}_padded_macs"] += padded_macs(layer)
        found[f"{name}_values"] += read(layer) + written(layer)
        found[f"{name}_weights"] += weights(layer)
        found[f"{name}_count"] += 1
    return found


def padded_macs(layer: Operator) -> float:
    """Return a convolution's multiply-adds with its channels rounded up to whole blocks; else 0."""
    if layer.get("operator") != "Conv" or "k" not in layer:
        return 0.0
    groups = layer["groups"]
    c, k = layer["c"] // groups, layer["k"] // groups
    wasted = _padded(groups) / groups if c == k == 1 else _padded(c) * _padded(k) / (c * k)
    return (layer.get("macs") or 0) * wasted


def _padded(channels: int) -> int:
    return -(-channels // BLOCK) * BLOCK
