"""Analytic costs of memory: what inference and training hold at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from dlas.prediction.learning.features.totals import read, weights, written
from dlas.stack import Operator
from dlas.stack.types import Floats

REUSED = ("Add", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "Softmax", "Dropout")
"""Operators whose backward pass needs no tensor beside those that their neighbours keep."""
INDEXED = "MaxPool"
"""Keeps where its maxima were, as integers of 64 bits, beside its output."""


def memory_costs(operators: Sequence[Operator]) -> dict[str, float | Floats]:
    """Return the costs of a network's memory, in values of 32 bits.

    Parameters
    ----------
    operators : sequence of Operator
        Of a batch.

    Returns
    -------
    dict of str to float or array
        An array stands for its largest number.

        ``weights``; ``kept``, what the forward pass keeps for the backward pass; ``step``, what a training
        step holds in each operator's backward pass: weights and momentum, the gradients of the weights so
        far, what was kept for the operators before, the gradients of its output and inputs; ``copied_step``,
        the same with copies of its tensors in another layout, as libraries of convolutions make; ``tensors``,
        the inputs and output of each operator; ``im2col``, each convolution's matrix of patches; the number
        of operators; and ``once``, which is 1.
    """
    held = list(accumulate(map(kept, operators)))
    own = [float(weights(layer)) for layer in operators]
    total = sum(own)
    later = [
        total - before for before in accumulate(own, initial=0.0)
    ]  # the weights of each and those after it
    around = [float(read(layer) + written(layer)) for layer in operators]
    steps = [
        2 * total + before + gradients + tensors
        for before, gradients, tensors in zip(held, later, around, strict=False)
    ]
    copies = [
        tensors if layer.get("operator") == "Conv" else 0.0
        for layer, tensors in zip(operators, around, strict=True)
    ]
    copied = [step + copy for step, copy in zip(steps, copies, strict=True)]
    return {
        "weights": total,
        "kept": held[-1] if held else 0.0,
        "step": _candidates([*steps, 3 * total]),
        "copied_step": _candidates([*copied, 3 * total]),
        "tensors": _candidates(around),
        "im2col": _candidates([patches(layer) for layer in operators]),
        "count": float(len(operators)),
        "once": 1.0,
    }


def kept(layer: Operator) -> float:
    """Return the values that an operator's forward pass keeps, beside those that others keep."""
    if layer.get("operator") in REUSED:
        return 0.0
    return written(layer) * (3.0 if layer.get("operator") == INDEXED else 1.0)


def patches(layer: Operator) -> float:
    """Return the size of a convolution's matrix of patches (im2col); else 0."""
    if layer.get("operator") != "Conv":
        return 0.0
    return float(layer["n"] * layer["p"] * layer["q"] * layer["c"] * layer["r"] * layer["s"])


def _candidates(values: Sequence[float]) -> Floats:
    return np.array([0.0, *values])
