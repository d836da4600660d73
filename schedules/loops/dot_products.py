"""Dot products: instructions that add the products of neighbouring numbers to sums of 32 bits.

Each is described here, with what processors have it; :mod:`~dlas.schedules.loops.dot_intrinsics` puts
it in the place of loops, and :mod:`~dlas.schedules.loops.dot_forms` makes algorithms that use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import tvm
from tvm.ir import Expr
from tvm.target import codegen

from dlas.schedules.loops.vectors import LOAD, VectorUnit, vector_unit
from dlas.stack import BFLOAT16, BFLOAT16_BITS, Array, Conv, Target

BYTE_TYPES, BFLOAT16_TYPES = ("uint8", "int8", "int32"), (BFLOAT16, BFLOAT16, "float32")
"""Types of inputs, weights and sums."""
MOST_SUMS = 16
"""Most sums of a tile: with 28 of the 32 registers of AVX-512, LLVM keeps some in memory."""


@dataclass(frozen=True, eq=False)
class DotProducts:
    """The dot products of a family of processors, which all add in 32 bits: bytes without saturating."""

    name: str
    terms: int
    """Neighbouring products that are added to one sum."""
    read: str
    """Type of the inputs that are multiplied."""
    instructions: Mapping[int, str]
    """LLVM's intrinsics, by the sums that they add to."""
    offset: int = 0
    """What inputs are less before they are multiplied, so that unsigned bytes are signed."""
    spare: int = 0
    """Registers for values between multiplication and addition."""
    over: Literal["filters", "channels", "columns"] = "filters"
    """What the sums of an instruction are of: ``filters`` multiply the same inputs, ``columns`` are
    multiplied by the same weights, and ``channels`` have inputs [terms, lanes], which are shuffled together,
    and weights of their own.
    """
    words: bool = False
    """Whether inputs are words of 32 bits that hold the terms; those of columns always are."""
    weights: str = "int8"
    """Types of the weights, and of the sums."""
    sums: str = "int32"
    """Types of the weights, and of the sums."""
    imported: bool = False
    """Whether TVM has no type for the operands: a function in LLVM's language calls the instruction."""

    @property
    def bits(self) -> int:
        """Bits of a term in a word."""
        return 32 // self.terms

    def word(self, value: int) -> int:
        """Return the word whose terms all have one value."""
        mask = (1 << self.bits) - 1
        together = sum((value & mask) << self.bits * term for term in range(self.terms))
        return together - 2**32 if together >= 2**31 else together

    def term(self, word: Expr, which: Expr) -> Expr:
        """Return a term of a word, in the type of inputs."""
        return (word >> (which * self.bits)).astype(self.read)

    def unit(self, target: Target) -> VectorUnit:
        """Return the registers that tiles fill: every input is broadcast into one of its own."""
        unit = vector_unit(target)
        return replace(unit, registers=unit.registers - self.spare, load=LOAD, most=MOST_SUMS)

    def lanes(self, extent: int, target: Target) -> int:
        """Return the sums of the widest instruction that divides ``extent`` filters or columns."""
        widest = vector_unit(target).lanes
        return max(lanes for lanes in self.instructions if lanes <= widest and extent % lanes == 0)

    def corrections(self, filters: Array) -> tuple[Array, ...]:
        """Return what sums lack where inputs are less by ``offset``, for weights [..., n] of each filter."""
        return ((self.offset * filters.sum(-1, dtype=np.int32)).astype(np.int32),) if self.offset else ()

    def shapes(self, lanes: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the shapes of the inputs and of the weights of ``lanes`` sums."""
        inputs = {
            "filters": (1,) if self.words else (self.terms,),
            "channels": (self.terms, lanes),
            "columns": (lanes,),
        }
        return inputs[self.over], (self.terms,) if self.over == "columns" else (lanes, self.terms)


FOURS = DotProducts(
    "dot_fours",
    terms=4,
    read="uint8",
    instructions={lanes: f"llvm.x86.avx512.vpdpbusd.{32 * lanes}" for lanes in (16, 8, 4)},
)
"""VNNI, of AVX-512 or AVX: four products of bytes for each sum."""
TAPS = replace(FOURS, name="dot_taps", instructions={16: FOURS.instructions[16]}, over="channels")
"""VNNI for depthwise convolutions: the sum of every channel has four columns of its own."""
PAIRS = DotProducts(
    "dot_pairs",
    terms=2,
    read="int16",
    instructions={
        16: "llvm.x86.avx512.pmaddw.d.512",
        8: "llvm.x86.avx2.pmadd.wd",
        4: "llvm.x86.sse2.pmadd.wd",
    },
    spare=1,
)
"""AVX2 and AVX-512 without VNNI: two products of 16 bits, which inputs and weights are widened to.

Their instruction for bytes adds two products in 16 bits, which saturate.
"""
IN_WEBASSEMBLY = replace(PAIRS, name="dot_pairs_webassembly", instructions={4: "llvm.wasm.dot"})
"""WebAssembly: as AVX2's, in vectors of 128 bits."""
MIXED = DotProducts(
    "dot_mixed",
    terms=4,
    read="uint8",
    instructions={4: "llvm.aarch64.neon.usdot.v4i32.v16i8"},
)
"""Arm's integer matrix extension: four products of unsigned and signed bytes."""
SIGNED = DotProducts(
    "dot_signed",
    terms=4,
    read="int8",
    instructions={4: "llvm.aarch64.neon.sdot.v4i32.v16i8"},
    offset=128,
)
"""Arm's dot product: four products of signed bytes."""
IN_BFLOAT16 = DotProducts(
    "dot_bfloat16",
    terms=2,
    read=BFLOAT16_BITS,
    instructions={lanes: f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}" for lanes in (16, 8, 4)},
    weights=BFLOAT16_BITS,
    sums="float32",
    imported=True,
)
"""AVX-512: two products of bfloat16; what is smaller than the smallest normal number counts as zero."""
BY_ARM = replace(
    IN_BFLOAT16, name="dot_bfloat16_arm", instructions={4: "llvm.aarch64.neon.bfdot.v4f32.v8bf16"}
)
"""Arm's dot product of bfloat16."""
FAMILIES = (FOURS, PAIRS, IN_WEBASSEMBLY, MIXED, SIGNED, IN_BFLOAT16, BY_ARM)
"""Those for sums over channels."""


def dot_products(conv: Conv, target: Target) -> DotProducts | None:
    """Return the dot products that a target has for the types of ``conv``, None where it has none."""
    types = (conv.input_type, conv.weight_type, conv.accumulator_type)
    if types not in (BYTE_TYPES, BFLOAT16_TYPES) or not target.on_processors:
        return None
    on = tvm.target.Target(dict(target.description))
    if str(on.kind.name) != "llvm":
        return None
    x86 = "avx512bw" if codegen.target_has_features("avx512f", on) else "avx2"
    families = {
        BYTE_TYPES: {
            "avx512vnni": FOURS,
            "avxvnni": FOURS,
            x86: PAIRS,
            "i8mm": MIXED,
            "dotprod": SIGNED,
            "simd128": IN_WEBASSEMBLY,
        },
        BFLOAT16_TYPES: {"avx512bf16": IN_BFLOAT16, "bf16": BY_ARM},
    }
    known = families[types].items()
    return next((dots for name, dots in known if codegen.target_has_features(name, on)), None)


def tap_products(conv: Conv, target: Target) -> DotProducts | None:
    """Return the dot products for a depthwise ``conv`` in blocks of 16 channels, None where it has none.

    Four columns of a block are put in order by one instruction for bytes, which VNNI does not imply.
    """
    blocks = (conv.input_layout, conv.output_layout) == ("NCHW16c", "NCHW16c")
    if not (conv.depthwise and blocks and conv.dilation[1] == 1) or dot_products(conv, target) is not FOURS:
        return None
    on = tvm.target.Target(dict(target.description))
    return TAPS if codegen.target_has_features(["avx512vbmi", "avx512vnni"], on) else None
