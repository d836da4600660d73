"""What a kernel computes and moves, as the law reads it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dlas.axes.hardware.simulation.law import Work
from dlas.stack import Layer

LINEAR = ("Gemm", "MatMul")
POOLING = "Pool"
OTHER = "other"
BYTES: Mapping[str, int] = {"float16": 2, "bfloat16": 2, "int8": 1, "uint8": 1}
"""Of a value, by its type; others have 4."""


def work_of(kernel: Layer) -> Work:
    """Return a kernel's class, its multiply-adds, and the bytes that it reads and writes."""
    types = kernel.get("types", {})
    read = sum(map(math.prod, kernel.get("inputs", ()))) * _bytes(types.get("input"))
    written = math.prod(kernel.get("output", (0,))) * _bytes(types.get("output"))
    stored = _weights(kernel) * _bytes(types.get("weight"))
    return Work(_class(kernel), float(kernel.get("macs") or 0), float(read + written + stored))


def works_of(kernels: Sequence[Layer]) -> list[Work]:
    """Return what each kernel computes and moves."""
    return [work_of(kernel) for kernel in kernels]


def _class(kernel: Layer) -> str:
    """Return the class by which the law knows how efficient a kernel is."""
    operator = kernel.get("operator") or ""
    if operator == "Conv":
        groups = kernel.get("groups", 1)
        if groups > 1:
            return "depthwise" if groups == kernel.get("c") else "grouped"
        return "conv1x1" if kernel.get("r") == kernel.get("s") == 1 else "conv"
    return "linear" if operator in LINEAR else "pool" if POOLING in operator else OTHER


def _weights(kernel: Layer) -> int:
    """Return the number of weights of a convolution or a linear layer, 0 of other kernels."""
    if "k" not in kernel or "c" not in kernel:
        return 0
    per_filter = kernel["c"] // kernel.get("groups", 1) * kernel.get("r", 1) * kernel.get("s", 1)
    return kernel["k"] * per_filter


def _bytes(kind: str | None) -> int:
    return BYTES.get(kind or "", 4)
