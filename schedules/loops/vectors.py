"""Vector registers of a target, and the blocks of channels that fill them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import tvm
from tvm.target import codegen

from dlas.stack import Conv, Target

WIDEST_BLOCK = 16
"""Most filters of a block: one vector of AVX-512, two of AVX2, four of Neon."""
BLOCKS = (16, 8, 4)
"""Channels of a block: one vector of AVX-512, four of Neon."""
ONLY_BLOCK = 24
"""Channels of the only block of a layer, which two blocks of 16 would fill by three quarters."""
A_BLOCK = 8
"""Overhead of a block in channels, added to its own: 5 were measured with AVX2, more with AVX-512."""
FEWEST = BLOCKS[-1]
"""With fewer filters in a block than this, vector lanes are columns."""
IN_FLIGHT = 9
"""Fewest independent accumulators: two multiply-adds start every cycle, with a latency of four.

One more than their product, since one that starts late delays only its own sum.
"""
LOAD = 1.2
"""Cost of a load in multiply-adds: as many can start in a cycle, but some wait for the cache."""
TWO_MULTIPLIERS = frozenset(
    (
        *("skylake-avx512", "cascadelake", "cooperlake", "icelake-server", "sapphirerapids", "emeraldrapids"),
        *("graniterapids", "graniterapids-d", "diamondrapids", "znver5"),
    )
)
"""LLVM's names of processors that start two multiply-adds of 512 bits in a cycle.

Others with AVX-512 start one, which loads never keep waiting.
"""
LOAD_OF_TWO, SUMS_OF_TWO = 1.75, 21
"""Cost of a load of theirs, and most vector accumulators, beyond which LLVM runs out of registers.

What llvm-mca says of tiles of 1x1 convolutions, of two multiply-adds a cycle: 1.85 for 1x14, 1.81 for 2x7,
1.98 for 4x4, 1.99 for 3x7, 1.61 for 2x12, and 1.30 for 2x14.
"""


@dataclass(frozen=True)
class VectorUnit:
    """A processor's vector registers."""

    lanes: int
    """Elements of 32 bits in one register."""
    registers: int
    load: float = 0.0
    """Cost of a load in multiply-adds; 0 where loads never keep a multiply-add waiting."""
    most: int | None = None
    """Most vector accumulators, where not all that fit are worthwhile."""

    @property
    def sums(self) -> int:
        """Vector accumulators that keep the multipliers busy and leave registers for operands."""
        sums = max(self.registers // 2 - 1, IN_FLIGHT * 4 // 3)
        return sums if self.most is None else min(sums, self.most - 2)

    def fits(self, vectors: int, width: int) -> bool:
        """Whether accumulators, the weights of one term and one input fit in the registers."""
        few = self.most is None or vectors * width <= self.most
        return few and vectors * (width + 1) + 1 <= self.registers

    def price(self, vectors: int, width: int, columns: int) -> float:
        """Return the time per multiply-add of a row of tiles, relative to the best possible.

        A tile has ``vectors`` vectors of weights and ``width`` inputs, the last one of a row
        what is left of ``columns``.
        """
        whole, rest = divmod(columns, width)
        starts = whole * self._starts(vectors, width) + (self._starts(vectors, rest) if rest else 0)
        return starts / (vectors * columns)

    def _starts(self, vectors: int, width: int) -> float:
        """Return the multiply-adds that could start while a tile adds one term."""
        return max(vectors * width, IN_FLIGHT, self.load * (vectors + width))

    def vectors(self, lanes: int) -> int:
        """Return the vectors that hold so many lanes; 24 fill no whole number of 16, but three of eight."""
        return -(-lanes // (math.gcd(lanes, self.lanes) if lanes == ONLY_BLOCK else self.lanes))

    def lane_choices(self, block: int) -> list[int]:
        """Return how many lanes of a block a tile may have: all of them, or divisors down to one vector's."""
        return [lanes for lanes in divisors(block, block)[::-1] if lanes == block or lanes % self.lanes == 0]


def vector_unit(target: Target) -> VectorUnit:
    """Return the widest vector unit that a CPU target may use."""
    on = tvm.target.Target(dict(target.description))
    if codegen.target_has_features("avx512f", on):
        if target.description.get("mcpu") in TWO_MULTIPLIERS:
            return VectorUnit(16, 32, LOAD_OF_TWO, SUMS_OF_TWO)
        return VectorUnit(16, 32)
    if codegen.target_has_features("avx2", on):
        return VectorUnit(8, 16, LOAD)
    if str(target.description.get("mtriple", "")).startswith(("aarch64", "arm64")):
        return VectorUnit(4, 32)
    # SSE, and WebAssembly, which engines compile to it on x86 and to more registers on Arm.
    return VectorUnit(4, 16, LOAD)


def divisors(extent: int, most: int) -> list[int]:
    """Return the divisors of ``extent`` up to ``most``, ascending."""
    return [d for d in range(1, min(extent, most) + 1) if extent % d == 0]


def blocks_for(conv: Conv, target: Target) -> tuple[int, ...]:
    """Return the channels that blocks may have: 24 too where three vectors of eight beat two of 16.

    Dot products and chains of halves have no tiles of 24.
    """
    if target.on_gpu or not conv.input_type == conv.weight_type == "float32":
        return BLOCKS
    two_multipliers = vector_unit(target).most is not None
    return BLOCKS if two_multipliers else (ONLY_BLOCK, *BLOCKS)


def blocked_layout(channels: int, blocks: Sequence[int] = BLOCKS) -> str:
    """Return the layout whose blocks cost least, the last one padded; NCHW for few channels."""
    possible = [block for block in blocks if block != ONLY_BLOCK or channels <= ONLY_BLOCK]
    block = min(possible, key=lambda block: -(-channels // block) * (block + A_BLOCK))
    return f"NCHW{block}c" if channels >= FEWEST else "NCHW"
