"""Write the padded input on a GPU, one element a thread."""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr
from tvm.ir.transform import Pass, PassContext
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from dlas.schedules.loops.numbers import converted
from dlas.schedules.loops.transformations import THREADS_PER_BLOCK
from dlas.sparse.compressed.planes import Planes


def pad_by_threads(planes: Planes) -> Pass:
    """Return the pass that makes each thread write one element of the padded input.

    Block ``pad`` fills and copies whole channels in serial loops, which suits a CPU;
    threads of a GPU have to write neighbouring elements.
    """

    def by_elements(loop: tirx.For) -> tirx.Stmt:
        inside = loop.body
        if not isinstance(inside, s_tir.SBlockRealize) or inside.block.name_hint != "pad":
            return loop
        return _write_elements(planes, inside.block.reads[0].source, inside.block.writes[0].source)

    @tirx.transform.prim_func_pass(opt_level=0)
    def replace(function: tirx.PrimFunc, module: tvm.IRModule, context: PassContext) -> tirx.PrimFunc:
        return function.with_body(tvm_ffi.structural_map(function.body, [(tirx.For, by_elements)]))

    return replace


def _write_elements(planes: Planes, x: tirx.Buffer, laid: tirx.Buffer) -> tirx.Stmt:
    """Return loops in which each thread writes one element of ``laid``."""
    conv = planes.conv
    slab_size = conv.c * planes.channel
    slabs, numbers = conv.n * planes.slabs, conv.n * planes.slabs * slab_size
    groups = -(-numbers // THREADS_PER_BLOCK)
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("pad")
        with (
            T.thread_binding(0, groups, thread="blockIdx.x") as group,
            T.thread_binding(0, THREADS_PER_BLOCK, thread="threadIdx.x") as thread,
            T.sblock("pad"),
        ):
            at = group * THREADS_PER_BLOCK + thread
            T.where(at < numbers)
            own, place = T.axis.spatial(slabs, at // slab_size), T.axis.spatial(slab_size, at % slab_size)
            n, slab = own // planes.slabs, own % planes.slabs
            T.reads(x[n, 0 : conv.c, 0 : conv.h, 0 : conv.w])
            T.writes(laid[n, slab, place])
            T.buffer_store(laid, element(planes, x, n, slab, place), (n, slab, place))
    return builder.get().body.block.body


def element(planes: Planes, x: tirx.Buffer, n: Expr, slab: Expr, place: Expr) -> Expr:
    """Return the value at a place of a slab: an element of the input, or of the border.

    Places that no output reads hold arbitrary values.
    """
    conv = planes.conv
    within = place % planes.plane
    i, j = within // planes.band.pitch, within % planes.band.pitch
    first = planes.output(slab, i, j) if planes.slabs > 1 else (i, j)
    phase = place % planes.channel // planes.plane
    phases = phase // planes.phases[1], phase % planes.phases[1]
    row, column = (
        first[axis] * conv.strides[axis] + planes.begin(axis, phases[axis]) - conv.padding[axis]
        for axis in (0, 1)
    )
    inside = tirx.all(row >= 0, row < conv.h, column >= 0, column < conv.w)
    border = tirx.const(conv.padding_value, conv.padded_type)
    value = converted(x[n, place // planes.channel, row, column], conv.padded_type)
    return tirx.if_then_else(inside, value, border)
