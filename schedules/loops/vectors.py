"""Vector registers of a target, and the blocks of channels that fill them."""

from __future__ import annotations

from dataclasses import dataclass

import tvm
from tvm.target import codegen

from dlas.stack import Target

WIDEST_BLOCK = 16
"""Filters of a block, at most: one vector of AVX-512, two of AVX2, four of Neon."""
IN_FLIGHT = 8
"""Vectors of sums at least: two multiply-adds begin every cycle, and each takes four."""


@dataclass(frozen=True)
class VectorUnit:
    """A processor's vector registers.

    Parameters
    ----------
    lanes : int
        Numbers of 32 bits that one holds.
    registers : int
    broadcasts : bool
        Whether a number that all lanes meet has to be loaded into a register of its own.
    """

    lanes: int
    registers: int
    broadcasts: bool = False

    @property
    def sums(self) -> int:
        """Vectors of sums that keep the multipliers busy, and leave room for what they are made of."""
        return max(self.registers // 2 - 1, IN_FLIGHT)

    def price(self, vectors: int, width: int) -> float:
        """Return the time of a term's products over the least, for so many vectors of weights and inputs.

        Two products begin every cycle, and two loads.
        """
        loads = (vectors + width) / (vectors * width) if self.broadcasts else 0.0
        return max(1.0, IN_FLIGHT / (vectors * width), loads)

    def lane_choices(self, block: int) -> list[int]:
        """Return how many lanes of a block a tile may compute: all of them, or down to one vector's."""
        return [lanes for lanes in divisors(block, block)[::-1] if lanes == block or lanes >= self.lanes]


def vector_unit(target: Target) -> VectorUnit:
    """Return the widest vector unit that a CPU target may use."""
    on = tvm.target.Target(dict(target.description))
    if codegen.target_has_features("avx512f", on):
        return VectorUnit(16, 32)
    if codegen.target_has_features("avx2", on):
        return VectorUnit(8, 16, broadcasts=True)
    if str(target.description.get("mtriple", "")).startswith(("aarch64", "arm64")):
        return VectorUnit(4, 32)
    return VectorUnit(4, 16, broadcasts=True)


def divisors(extent: int, most: int) -> list[int]:
    """Return the divisors of ``extent`` up to ``most``, in order."""
    return [d for d in range(1, min(extent, most) + 1) if extent % d == 0]
