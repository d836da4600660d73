"""Analytic costs by kind of operator, which add up to a network's time or memory."""

from __future__ import annotations

from collections.abc import Sequence

from dlas.learning.features.totals import read, weights, written
from dlas.stack import Layer

OPERATORS = {
    "linear": "Gemm MatMul",
    "norm": "BatchNormalization LayerNormalization GroupNormalization InstanceNormalization",
    "pool": "MaxPool AveragePool GlobalAveragePool GlobalMaxPool ReduceMean adaptive_avg_pool2d",
    "concat": "Concat",
    "elementwise": "Add Sub Mul Div Relu Clip Sigmoid HardSigmoid HardSwish Swish Mish Gelu Tanh LeakyRelu "
    "Elu Erf Softmax Dropout",
}
"""Operators by kind, convolutions apart; what is not listed is ``other``."""
KINDS = ("conv1x1", "conv", "depthwise", "grouped", *OPERATORS, "other")
"""Kinds of operators: their costs have rates of their own."""
KIND_OF = {operator: kind for kind, operators in OPERATORS.items() for operator in operators.split()}
COSTS = ("macs", "values", "weights", "count")


def kind(layer: Layer) -> str:
    """Return the kind of an operator, one of :data:`KINDS`."""
    if layer.get("operator") != "Conv":
        return KIND_OF.get(layer.get("operator") or "", "other")
    if layer["groups"] == 1:
        return "conv1x1" if layer["r"] == layer["s"] == 1 else "conv"
    return "depthwise" if layer["groups"] == layer["c"] else "grouped"


def costs(operators: Sequence[Layer]) -> dict[str, float]:
    """Return the costs of a network's time, by kind of operator.

    Parameters
    ----------
    operators : sequence of Layer
        Of a batch.

    Returns
    -------
    dict of str to float
        For each kind: multiply-adds, values read and written, weights, and the number of operators; and
        ``once``, which is 1: what a run takes whatever the network.
    """
    found = {f"{name}_{cost}": 0.0 for name in KINDS for cost in COSTS} | {"once": 1.0}
    for layer in operators:
        name = kind(layer)
        found[f"{name}_macs"] += layer.get("macs") or 0
        found[f"{name}_values"] += read(layer) + written(layer)
        found[f"{name}_weights"] += weights(layer)
        found[f"{name}_count"] += 1
    return found


def memory_costs(operators: Sequence[Layer]) -> dict[str, float]:
    """Return the costs of a network's memory.

    Parameters
    ----------
    operators : sequence of Layer
        Of a batch.

    Returns
    -------
    dict of str to float
        ``weights``, whose gradients and momentum have the same size; values written by kind of
        operator, which training keeps for its backward pass; the ``largest`` output and the largest
        matrix of patches (``im2col``), which scratch memory follows; the number of operators; and ``once``.
    """
    found = {f"{name}_values": 0.0 for name in KINDS}
    for layer in operators:
        found[f"{kind(layer)}_values"] += written(layer)
    convolutions = [layer for layer in operators if layer.get("operator") == "Conv"]
    patches = (conv["n"] * conv["p"] * conv["q"] * conv["c"] * conv["r"] * conv["s"] for conv in convolutions)
    return found | {
        "weights": float(sum(map(weights, operators))),
        "largest": float(max(map(written, operators), default=0)),
        "im2col": float(max(patches, default=0)),
        "count": float(len(operators)),
        "once": 1.0,
    }
