"""Kernels that were told before a program ran, matched with the layers that it was then measured with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dlas.stack import Layer

COPIED_IN = ("ReorderInput", "LayoutChange")
"""Copies into blocks of channels, which write more than they read where the last block is not full."""
SIZES = {
    "Conv": ("n", "c", "h", "w", "k", "r", "s", "strides", "dilation", "groups"),
    "Gemm": ("n", "c", "k"),
}
"""Fields of a layer that tell its sizes; other operators are told by what they write."""
Key = tuple[Any, ...]


@dataclass(frozen=True)
class KernelMatch:
    """How the kernels that were told agree with those that ran."""

    share: float
    """Of the time of what ran, that of what had been told."""
    missing: Counter[Key]
    """What ran and was not told, as :func:`key_of` describes it."""
    extra: Counter[Key]
    """What was told and did not run."""


def match(told: Sequence[Layer], ran: Sequence[Layer]) -> KernelMatch:
    """Match each layer that ran with a kernel that was told, of the same operators and sizes.

    Parameters
    ----------
    told : sequence of Layer
        What :meth:`dlas.stack.Backend.kernels` returned.
    ran : sequence of Layer
        Of a row, with their times.
    """
    left, missing = Counter(map(key_of, told)), Counter[Key]()
    total_s = found_s = 0.0
    for layer in ran:
        key, seconds = key_of(layer), layer.get("latency_s") or 0.0
        total_s += seconds
        if left[key]:
            left[key] -= 1
            found_s += seconds
        else:
            missing[key] += 1
    return KernelMatch(found_s / total_s if total_s else 1.0, missing, +left)


def key_of(layer: Layer) -> Key:
    """Return what makes a kernel what it is: its operators, and their sizes."""
    operator = layer.get("operator")
    names = SIZES.get(operator or "", ())
    if names and all(name in layer for name in names):
        sizes: Key = tuple(_plain(layer.get(name)) for name in names)
    else:
        told = layer.get("inputs", ())[:1] if operator in COPIED_IN else [layer.get("output", ())]
        sizes = tuple(_plain(shape) for shape in told)
    return (operator, *(layer.get("fused") or ()), *sizes)


def _plain(size: Any) -> Any:
    """Return a number as it is, and several as a tuple, whatever held them."""
    return size if size is None or isinstance(size, int) else tuple(size)
