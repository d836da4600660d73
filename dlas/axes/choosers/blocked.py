"""Dense convolution in blocked layouts: each layer by Winograd or by spatial pack, whichever costs less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm import te

from dlas.schedules.minimal_filtering.space import least_cost
from dlas.schedules.spatial_pack import SpatialPack
from dlas.schedules.winograd import Winograd
from dlas.stack import Algorithm, Conv, Part, Tail, Target

PACKED = SpatialPack(layout="blocked")
TRANSFORMED = (Winograd(tile=4, layout="blocked"), Winograd(tile=2, layout="blocked"))
A_BYTE = 1.5
"""Cost of reading a byte of weights from memory, in multiply-adds of one thread: threads share its rate."""
WEIGHT_BYTES = 4


@dataclass(frozen=True)
class BlockedConvolution(Algorithm):
    """Compute each layer with the blocked algorithm that costs least: ``winograd`` or ``spatial_pack``.

    Winograd multiplies up to four times less, and its filters take up to four times as
    many bytes.  Late layers have many filters and small images: reading their filters
    from memory can take longer than the multiplications that are saved, the more so as
    threads share the memory.  On a GPU, ``spatial_pack`` computes every layer.
    """

    def for_layer(self, conv: Conv, target: Target) -> Algorithm:
        """Return the algorithm that costs least."""
        if target.on_gpu:
            return PACKED
        weights = conv.k * conv.c * conv.r * conv.s
        costs: dict[Algorithm, float] = {PACKED: conv.macs / target.threads + A_BYTE * WEIGHT_BYTES * weights}
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


def _transformed_cost(algorithm: Winograd, conv: Conv, target: Target) -> float:
    """Return the cost of a convolution by Winograd, in multiply-adds of one thread."""
    read, written = algorithm.layouts(conv)
    blocked = replace(conv, input_layout=read, output_layout=written)
    filters = (algorithm.tile + conv.r - 1) ** 2 * conv.k * conv.c
    return least_cost(blocked, algorithm.tile, target) + A_BYTE * WEIGHT_BYTES * filters
