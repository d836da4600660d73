"""Dense convolution in blocked layouts: each layer by Winograd or by spatial pack, whichever costs less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from tvm import te

from dlas.schedules.loops.dot_products import dot_products
from dlas.schedules.loops.halves import multiplies_halves
from dlas.schedules.minimal_filtering.space import least_cost
from dlas.schedules.spatial_pack import SpatialPack
from dlas.schedules.winograd import Winograd
from dlas.stack import Algorithm, Conv, Part, Tail, Target, stored_type

PACKED = SpatialPack(layout="blocked")
TRANSFORMED = (Winograd(tile=4, layout="blocked"), Winograd(tile=2, layout="blocked"))
A_BYTE = 1.5
"""Cost of reading a byte of weights from memory, in multiply-adds of one thread: threads share its rate."""
TRANSFORMED_BYTES = 4
"""Bytes of a filter's element, which Winograd transforms to float32."""


@dataclass(frozen=True)
class BlockedConvolution(Algorithm):
    """Compute each layer with the blocked algorithm that costs least: ``winograd`` or ``spatial_pack``.

    Winograd multiplies up to four times less, and its filters take up to four times as
    many bytes.  Late layers have many filters and small images: reading their filters
    from memory can take longer than the multiplications that are saved, the more so as
    threads share the memory.  In 16 bits Winograd multiplies in float32, and ``spatial_pack``
    twice as many numbers at once where the processor can.  On a GPU, ``spatial_pack`` computes
    every layer.
    """

    def for_layer(self, conv: Conv, target: Target) -> Algorithm:
        """Return the algorithm that costs least."""
        if target.on_gpu:
            return PACKED
        costs: dict[Algorithm, float] = {PACKED: _packed_cost(conv, target)}
        for algorithm in TRANSFORMED:
            if conv.groups == 1 and algorithm.supports(conv) is None:
                costs[algorithm] = _transformed_cost(algorithm, conv, target)
        return min(costs, key=costs.__getitem__).for_layer(conv, target)

    def delegates(self) -> Sequence[Part]:
        """Return the algorithms among which layers choose."""
        return PACKED, *TRANSFORMED

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> te.Tensor:
        """Raise: the algorithm that :meth:`for_layer` returns computes the layer."""
        raise TypeError(f"blocked computes nothing itself; ask for_layer for {conv.name!r}")


def _packed_cost(conv: Conv, target: Target) -> float:
    """Return the cost of a convolution by spatial pack, in multiply-adds of one thread in float32."""
    dots = dot_products(conv, target)
    together = dots.terms if dots else 2 if multiplies_halves(conv, target) else 1
    weights = conv.k * conv.c // conv.groups * conv.r * conv.s
    read = np.dtype(stored_type(conv.weight_type)).itemsize * weights
    return conv.macs / together / target.threads + A_BYTE * read


def _transformed_cost(algorithm: Winograd, conv: Conv, target: Target) -> float:
    """Return the cost of a convolution by Winograd, in multiply-adds of one thread."""
    read, written = algorithm.layouts(conv, target)
    blocked = replace(conv, input_layout=read, output_layout=written)
    filters = (algorithm.tile + conv.r - 1) ** 2 * conv.k * conv.c
    return least_cost(blocked, algorithm.tile, target) + A_BYTE * TRANSFORMED_BYTES * filters
