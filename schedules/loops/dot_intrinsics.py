"""Dot products as intrinsics of TVM, which take the place of loops.

LLVM finds none of them in plain loops, so that loops are replaced by name: TVM compares a
loop nest with the description of an intrinsic, and puts the instruction in its place.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence

from tvm import tirx
from tvm.ir import Expr, TensorRegion
from tvm.s_tir import Schedule, TensorIntrin
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from dlas.schedules.loops.dot_products import DotProducts
from dlas.schedules.loops.numbers import converted
from dlas.stack import Target

MOST_UNROLLED = 8
"""Longest loop over a block's dot products that is unrolled."""
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


def sum_dot_products(
    schedule: Schedule, convolution: SBlockRV, outside: int, dots: DotProducts, target: Target
) -> list[LoopRV]:
    """Move the reduction loops outside a tile, whose sums stay in registers, and add by dot products.

    Returns those loops.

    Parameters
    ----------
    convolution : SBlockRV
        Its last spatial axis runs over filters or columns, its last reduction axis over a product's terms.
    outside : int
        Loops around the tile.
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
    schedule.tensorize(lane, intrinsic(dots, lanes))
    if dots.imported:
        schedule.annotate(every[0], IMPORT, _source(dots, lanes))
    return list(terms)


def _unroll(schedule: Schedule, loops: list[LoopRV]) -> None:
    for loop in loops:
        schedule.unroll(loop)


@functools.cache
def intrinsic(dots: DotProducts, lanes: int) -> str:
    """Return the name of TVM's intrinsic with so many sums, which the first call registers."""
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
        T.buffer_store(c, _written(dots, a, b, c, lanes), [tirx.Ramp(tirx.const(0, "int32"), 1, lanes)])
    return builder.get()


def _written(dots: DotProducts, a: tirx.Buffer, b: tirx.Buffer, c: tirx.Buffer, lanes: int) -> Expr:
    """Return the sums ``c`` [lanes] plus the products of inputs ``a`` and weights ``b``."""
    sums, name = c.vload([0], f"{dots.sums}x{lanes}"), dots.instructions[lanes]
    inputs, weights = _inputs(dots, a, lanes), _weights(dots, b, lanes)
    if dots.imported:
        both = (tirx.reinterpret(f"int32x{lanes}", operand) for operand in (inputs, weights))
        return tirx.call_extern(f"{dots.sums}x{lanes}", _function_name(dots, lanes), sums, *both)
    if dots.read != "int16":
        return tirx.call_llvm_pure_intrin(f"int32x{lanes}", name, sums, inputs, weights)
    wide = weights.astype(f"{dots.read}x{lanes * dots.terms}")
    return sums + tirx.call_llvm_pure_intrin(f"int32x{lanes}", name, inputs, wide)


def _function_name(dots: DotProducts, lanes: int) -> str:
    """Return the name of the imported function with so many sums."""
    return f"{dots.name}_{lanes}"


def _source(dots: DotProducts, lanes: int) -> str:
    """Return that function in the language of LLVM: its operands are pairs of numbers as 32 bits."""
    return FUNCTION.format(
        name=_function_name(dots, lanes),
        instruction=dots.instructions[lanes],
        integers=f"<{lanes} x i32>",
        sums=f"<{lanes} x float>",
        numbers=f"<{lanes * dots.terms} x bfloat>",
    )


def _inputs(dots: DotProducts, a: tirx.Buffer, lanes: int) -> Expr:
    """Return the inputs [lanes, terms] in one vector."""
    count = lanes * dots.terms
    if dots.over == "channels":
        return interleaved(dots, [a.vload([0, 0], f"{dots.read}x{count}")], lanes)
    if dots.over == "columns":
        return tirx.reinterpret(f"{dots.read}x{count}", a.vload([0], f"int32x{lanes}"))
    word = a.vload([0], "int32") if dots.words else _word(a.vload([0], f"{dots.read}x{dots.terms}"))
    return _repeated(word, f"{dots.read}x{count}", lanes)


def _weights(dots: DotProducts, b: tirx.Buffer, lanes: int) -> Expr:
    """Return the weights [lanes, terms] in one vector."""
    if dots.over == "columns":
        return repeated(dots, b.vload([0], f"{dots.weights}x{dots.terms}"), lanes)
    return b.vload([0, 0], f"{dots.weights}x{lanes * dots.terms}")


def interleaved(dots: DotProducts, vectors: Sequence[Expr], lanes: int) -> Expr:
    """Return the inputs [lanes, terms] in one vector, of those [terms, lanes] in one or several."""
    places = [lanes * term + lane for lane in range(lanes) for term in range(dots.terms)]
    return tirx.Shuffle(list(vectors), [tirx.const(place, "int32") for place in places])


def repeated(dots: DotProducts, weights: Expr, lanes: int) -> Expr:
    """Return weights [terms] for each of the sums: [lanes, terms] in one vector."""
    return _repeated(_word(weights), f"{dots.weights}x{lanes * dots.terms}", lanes)


def _repeated(word: Expr, dtype: str, lanes: int) -> Expr:
    return tirx.reinterpret(dtype, tirx.Broadcast(word, lanes))


def _word(terms: Expr) -> Expr:
    """Return neighbouring numbers of 32 bits together as one of them."""
    return tirx.reinterpret("int32", terms)
