"""Totals of a network, which simple predictors use."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dlas.stack import Operator


def totals(operators: Sequence[Operator]) -> dict[str, float]:
    """Return a network's totals.

    Parameters
    ----------
    operators : sequence of Operator
        Of a batch.

    Returns
    -------
    dict of str to float
        ``macs``, the whole batch's multiply-adds; ``weights``; ``values``, those that operators read and
        write; ``operators``, their number.
    """
    return {
        "macs": float(sum(layer.get("macs") or 0 for layer in operators)),
        "weights": float(sum(weights(layer) for layer in operators)),
        "values": float(sum(read(layer) + written(layer) for layer in operators)),
        "operators": float(len(operators)),
    }


def read(layer: Operator) -> int:
    """Return the number of values that an operator reads, weights left out."""
    return sum(math.prod(shape) for shape in layer.get("inputs") or ())


def written(layer: Operator) -> int:
    """Return the number of values that an operator writes."""
    return math.prod(layer.get("output") or (0,))


def weights(layer: Operator) -> int:
    """Return the number of an operator's weights, biases left out."""
    operator, output = layer.get("operator"), layer.get("output")
    if operator == "Conv" and "k" in layer:
        return layer["k"] * layer["c"] // layer["groups"] * layer["r"] * layer["s"]
    if operator == "Gemm" and output:
        return (layer.get("macs") or 0) // math.prod(output[:-1])
    if operator == "BatchNormalization":
        return 2 * layer["c"]
    return 0
