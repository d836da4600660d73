"""Dot products: instructions that add the products of neighbouring numbers to sums of 32 bits.

LLVM finds none of them in plain loops, so that loops are replaced by name: TVM compares a
loop nest with the description of an intrinsic, and puts the instruction in its place.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import tvm
from tvm import tirx
from tvm.ir import Expr, TensorRegion
from tvm.s_tir import Schedule, TensorIntrin
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T
from tvm.target import codegen

from dlas.schedules.loops.numbers import converted
from dlas.schedules.loops.vectors import VectorUnit, vector_unit
from dlas.stack import BFLOAT16, BFLOAT16_BITS, Algorithm, Array, Conv, Target

IN_BYTES = ("uint8", "int8", "int32")
"""Types of inputs, weights and sums."""
MOST_UNROLLED = 8
"""Longest loop over a block's dot products that is unrolled."""
MOST_SUMS = 16
"""Most sums of a tile: with 28 of the 32 registers of AVX-512, LLVM keeps some in memory."""
IMPORT = "pragma_import_llvm"
"""Annotation of a loop, whose function may call what its value defines."""
FUNCTION = """
define {sums} @{name}({sums} %c, {integers} %a, {integers} %b) alwaysinline nounwind {{
  %x = bitcast {integers} %a to {numbers}
  %y = bitcast {integers} %b to {numbers}
  %d = call {sums} @{instruction}({sums} %c, {numbers} %x, {numbers} %y)
  ret {sums} %d
}}
declare {sums} @{instruction}({sums}, {numbers}, {numbers})
"""
"""A function of an instruction that adds products of bfloat16."""


@dataclass(frozen=True, eq=False)
class DotProducts:
    """The dot products of a family of processors, which all add in 32 bits: bytes without saturating.

    Parameters
    ----------
    name : str
    terms : int
        Neighbouring products that are added to one sum.
    read : str
        Type of the inputs that are multiplied.
    instructions : mapping of int to str
        LLVM's intrinsics, by the sums that they add to.
    offset : int
        What inputs are less before they are multiplied, so that unsigned bytes are signed.
    spare : int
        Registers for values between multiplication and addition.
    over : {"filters", "channels", "columns"}
        What the sums of an instruction are of: ``filters`` multiply the same inputs, ``columns``
        are multiplied by the same weights, and ``channels`` have inputs [terms, lanes], which are
        shuffled together, and weights of their own.
    words : bool
        Whether inputs are words of 32 bits that hold the terms; those of columns always are.
    weights, sums : str
        Types of the weights, and of the sums.
    imported : bool
        Whether TVM has no type for the operands: a function in LLVM's language calls the instruction.
    """

    name: str
    terms: int
    read: str
    instructions: Mapping[int, str]
    offset: int = 0
    spare: int = 0
    over: Literal["filters", "channels", "columns"] = "filters"
    words: bool = False
    weights: str = "int8"
    sums: str = "int32"
    imported: bool = False

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
        return replace(unit, registers=unit.registers - self.spare, broadcasts=True, most=MOST_SUMS)

    def lanes(self, extent: int, target: Target) -> int:
        """Return the sums of the widest instruction that divides ``extent`` filters or columns."""
        widest = vector_unit(target).lanes
        return max(lanes for lanes in self.instructions if lanes <= widest and extent % lanes == 0)

    def intrinsic(self, lanes: int) -> str:
        """Return the name of TVM's intrinsic with so many sums, which the first call registers."""
        return _registered(self, lanes)

    def function(self, lanes: int) -> str:
        """Return the name of the imported function with so many sums."""
        return f"{self.name}_{lanes}"

    def source(self, lanes: int) -> str:
        """Return that function in the language of LLVM: its operands are pairs of numbers as 32 bits."""
        return FUNCTION.format(
            name=self.function(lanes),
            instruction=self.instructions[lanes],
            integers=f"<{lanes} x i32>",
            sums=f"<{lanes} x float>",
            numbers=f"<{lanes * self.terms} x bfloat>",
        )

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

    def written(self, a: tirx.Buffer, b: tirx.Buffer, c: tirx.Buffer, lanes: int) -> Expr:
        """Return the sums ``c`` [lanes] plus the products of inputs ``a`` and weights ``b``."""
        sums, name = c.vload([0], f"{self.sums}x{lanes}"), self.instructions[lanes]
        inputs, weights = self._inputs(a, lanes), self._weights(b, lanes)
        if self.imported:
            both = (tirx.reinterpret(f"int32x{lanes}", operand) for operand in (inputs, weights))
            return tirx.call_extern(f"{self.sums}x{lanes}", self.function(lanes), sums, *both)
        if self.read != "int16":
            return tirx.call_llvm_pure_intrin(f"int32x{lanes}", name, sums, inputs, weights)
        wide = weights.astype(f"{self.read}x{lanes * self.terms}")
        return sums + tirx.call_llvm_pure_intrin(f"int32x{lanes}", name, inputs, wide)

    def _inputs(self, a: tirx.Buffer, lanes: int) -> Expr:
        """Return the inputs [lanes, terms] in one vector."""
        count = lanes * self.terms
        if self.over == "channels":
            order = [
                tirx.const(lanes * term + lane, "int32")
                for lane in range(lanes)
                for term in range(self.terms)
            ]
            return tirx.Shuffle([a.vload([0, 0], f"{self.read}x{count}")], order)
        if self.over == "columns":
            return tirx.reinterpret(f"{self.read}x{count}", a.vload([0], f"int32x{lanes}"))
        if self.words:
            word = a.vload([0], "int32")
        else:
            word = tirx.reinterpret("int32", a.vload([0], f"{self.read}x{self.terms}"))
        return tirx.reinterpret(f"{self.read}x{count}", tirx.Broadcast(word, lanes))

    def _weights(self, b: tirx.Buffer, lanes: int) -> Expr:
        """Return the weights [lanes, terms] in one vector."""
        count = lanes * self.terms
        if self.over != "columns":
            return b.vload([0, 0], f"{self.weights}x{count}")
        word = tirx.reinterpret("int32", b.vload([0], f"{self.weights}x{self.terms}"))
        return tirx.reinterpret(f"{self.weights}x{count}", tirx.Broadcast(word, lanes))


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
FAMILIES = (FOURS, PAIRS, MIXED, SIGNED, IN_BFLOAT16, BY_ARM)
"""Those for sums over channels."""


class ByDotProducts(Algorithm):
    """What forms of algorithms that multiply by dot products have in common: one is chosen for a layer."""

    dots: ClassVar[DotProducts]

    def __init_subclass__(cls, **options: Any) -> None:
        """Register the intrinsics: a schedule found in another process names them."""
        super().__init_subclass__(**options)
        for lanes in cls.dots.instructions if hasattr(cls, "dots") else ():
            cls.dots.intrinsic(lanes)

    def for_layer(self, conv: Conv, target: Target) -> Algorithm:
        """Return itself, which was chosen for the layer."""
        return self


Form = TypeVar("Form", bound=ByDotProducts)


def forms_of(
    written: type[Form], form: Callable[[DotProducts], DotProducts] = lambda dots: dots
) -> dict[DotProducts, type[Form]]:
    """Return a form of an algorithm for each of :data:`FAMILIES`: a class derived from ``written``.

    ``form`` gives the dot products that the class uses in place of a family's.
    """
    return {
        dots: type(
            f"{written.__name__}_{dots.name}",
            (written,),
            {"dots": form(dots), "__doc__": written.__doc__, "__module__": written.__module__},
        )
        for dots in FAMILIES
    }


def words_by_filters(dots: DotProducts) -> DotProducts:
    """Return dot products whose sums are of filters and whose inputs are words."""
    return replace(dots, name=f"{dots.name}_of_words", words=True)


def words_by_columns(dots: DotProducts) -> DotProducts:
    """Return dot products whose sums are of neighbouring columns of one filter, and whose inputs are words.

    Weights are stored in the type that they are multiplied in, since one is broadcast at a time.
    """
    weights = dots.read if dots.read == "int16" else dots.weights
    return replace(dots, name=f"{dots.name}_of_columns", over="columns", words=True, weights=weights)


def dot_products(conv: Conv, target: Target) -> DotProducts | None:
    """Return the dot products that a target has for the types of ``conv``, None where it has none."""
    types = (conv.input_type, conv.weight_type, conv.accumulator_type)
    if types not in (IN_BYTES, (BFLOAT16, BFLOAT16, "float32")) or not target.on_processors:
        return None
    on = tvm.target.Target(dict(target.description))
    if str(on.kind.name) != "llvm":
        return None
    x86 = "avx512bw" if codegen.target_has_features("avx512f", on) else "avx2"
    families = {"avx512vnni": FOURS, "avxvnni": FOURS, x86: PAIRS, "i8mm": MIXED, "dotprod": SIGNED}
    if types != IN_BYTES:
        families = {"avx512bf16": IN_BFLOAT16, "bf16": BY_ARM}
    return next((dots for name, dots in families.items() if codegen.target_has_features(name, on)), None)


def tap_products(conv: Conv, target: Target) -> DotProducts | None:
    """Return the dot products for a depthwise ``conv`` in blocks of 16 channels, None where it has none.

    Four columns of a block are put in order by one instruction for bytes, which VNNI does not imply.
    """
    blocks = (conv.input_layout, conv.output_layout) == ("NCHW16c", "NCHW16c")
    if not (conv.depthwise and blocks and conv.dilation[1] == 1) or dot_products(conv, target) is not FOURS:
        return None
    on = tvm.target.Target(dict(target.description))
    return TAPS if codegen.target_has_features(["avx512vbmi", "avx512vnni"], on) else None


def sum_dot_products(
    schedule: Schedule, convolution: SBlockRV, outside: int, dots: DotProducts, target: Target
) -> list[LoopRV]:
    """Move the reduction loops outside a tile, whose sums stay in registers, and add by dot products.

    Returns those loops.

    Parameters
    ----------
    schedule : tvm.s_tir.Schedule
    convolution : SBlockRV
        Its last spatial axis runs over filters or columns, its last reduction axis over a product's terms.
    outside : int
        Loops around the tile.
    dots : DotProducts
    target : Target
    """
    points = sum(axis.iter_type != tirx.IterVar.CommReduce for axis in schedule.get(convolution).iter_vars)
    every = schedule.get_loops(convolution)
    loops = every[outside:]
    (*tile, lane), (*terms, neighbours) = loops[:points], loops[points:]
    lanes = dots.lanes(int(schedule.get(lane).extent), target)
    vectors, lane = schedule.split(lane, [None, lanes])
    schedule.reorder(*terms, *tile, vectors, lane, neighbours)
    start = schedule.decompose_reduction(convolution, terms[0])
    short = int(schedule.get(terms[-1]).extent) <= MOST_UNROLLED
    _unroll(schedule, [*(terms[-1:] if short else []), *tile, vectors])
    *outer, last = schedule.get_loops(start)[outside:]
    _unroll(schedule, outer)
    schedule.vectorize(last)
    schedule.tensorize(lane, dots.intrinsic(lanes))
    if dots.imported:
        schedule.annotate(every[0], IMPORT, dots.source(lanes))
    return list(terms)


def _unroll(schedule: Schedule, loops: list[LoopRV]) -> None:
    for loop in loops:
        schedule.unroll(loop)


@functools.cache
def _registered(dots: DotProducts, lanes: int) -> str:
    """Register an intrinsic with TVM; return its name."""
    name = f"dlas.{dots.name}.{lanes}"
    TensorIntrin.register(name, _described(dots, lanes), _implemented(dots, lanes), override=True)
    return name


def _whole(buffer: tirx.Buffer) -> TensorRegion:
    """Return all of a buffer as a region."""
    return buffer[tuple(slice(0, extent) for extent in buffer.shape)]


@contextlib.contextmanager
def _function(dots: DotProducts, lanes: int) -> Iterator[tuple[tirx.Buffer, tirx.Buffer, tirx.Buffer]]:
    """Write a PrimFunc around what follows; yield its inputs, weights and sums [lanes]."""
    inputs, weights = dots.shapes(lanes)
    with T.prim_func(s_tir=True):
        T.func_name("main")
        a = T.arg("A", T.Buffer(inputs, "int32" if dots.words else dots.read, offset_factor=1))
        b = T.arg("B", T.Buffer(weights, dots.weights, offset_factor=1))
        c = T.arg("C", T.Buffer((lanes,), dots.sums, scope="local", offset_factor=1))
        with T.sblock("root"):
            T.reads(*map(_whole, (c, a, b)))
            T.writes(_whole(c))
            yield a, b, c


def _described(dots: DotProducts, lanes: int) -> tirx.PrimFunc:
    """Return the loops that an intrinsic takes the place of."""
    with (
        IRBuilder() as builder,
        _function(dots, lanes) as (a, b, c),
        T.grid(lanes, dots.terms) as (lane, term),
        T.sblock("update"),
    ):
        i = IRBuilder.name("vi", T.axis.spatial(lanes, lane))
        k = IRBuilder.name("vk", T.axis.reduce(dots.terms, term))
        if dots.over == "channels":
            read = a[k, i]
        elif dots.over == "columns":
            read = a[i]
        else:
            read = a[0] if dots.words else a[k]
        weight = b[k] if dots.over == "columns" else b[i, k]
        value = dots.term(read, k) if dots.words else read
        T.reads(c[i], read, weight)
        T.writes(c[i])
        T.buffer_store(c, c[i] + converted(value, dots.sums) * converted(weight, dots.sums), [i])
    return builder.get()


def _implemented(dots: DotProducts, lanes: int) -> tirx.PrimFunc:
    """Return the instruction."""
    with IRBuilder() as builder, _function(dots, lanes) as (a, b, c):
        T.buffer_store(c, dots.written(a, b, c, lanes), [tirx.Ramp(tirx.const(0, "int32"), 1, lanes)])
    return builder.get()
