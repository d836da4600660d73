"""Products of two values that are known at run time only, such as those of attention."""

from __future__ import annotations

from tvm import relax, s_tir, te, tirx
from tvm.ir import Expr

from dlas.lowering.graph.graph import FUSES_BEHIND, shape_of
from dlas.lowering.kernels.products.registers import lanes_of
from dlas.lowering.kernels.products.tiles import best_rows, panel_width, whole_rows
from dlas.schedules.loops.registers import sum_in_registers
from dlas.schedules.loops.transformations import output_block
from dlas.stack import Target

PANELS, PRODUCT, UNPACKED = "panels", "product", "unpacked"
"""Stages: the right matrix in panels of columns, the sums, the output."""


def legalise_matmul(builder: relax.BlockBuilder, call: relax.Call, target: Target) -> relax.Call:
    """Return a call of ``relax.matmul`` as a kernel: of batches of matrices in panels, else TVM's own."""
    x, y = call.args
    lead = shape_of(call)[:-2]
    types = {str(value.ty.dtype) for value in (x, y, call)}
    if not lead or any(shape_of(operand)[:-2] != lead for operand in (x, y)) or types != {"float32"}:
        stock: relax.Call = call.op.get_attr("FLegalize")(builder, call)
        return stock
    kernel = {"primfunc_name_hint": "product", "primfunc_attrs": {"op_pattern": FUSES_BEHIND}}
    return builder.call_te(lambda a, b: product(a, b, target), x, y, **kernel)


def product(x: te.Tensor, y: te.Tensor, target: Target) -> te.Tensor:
    """Return the products [..., m, n] of matrices ``x`` [..., m, c] and ``y`` [..., c, n], in TE.

    Stage ``panels`` has the columns of ``y`` in panels [..., n / t, c, t], filled up with zeros.
    """
    *lead, rows, terms = (int(extent) for extent in x.shape)
    columns = int(y.shape[-1])
    t = panel_width(columns, target)
    count, whole, outer = -(-columns // t), whole_rows(rows, t, target), len(lead)
    c = te.reduce_axis((0, terms), "c")

    def panel(*at: Expr) -> Expr:
        *which, p, term, lane = at
        column = p * t + lane
        if columns % t == 0:
            return y(*which, term, column)
        read = y(*which, term, tirx.min(column, columns - 1))
        return tirx.if_then_else(column < columns, read, tirx.const(0, y.dtype))

    def element(*at: Expr) -> Expr:
        *which, p, m, lane = at
        row = m if whole == rows else tirx.min(m, rows - 1)
        return te.sum(x(*which, row, c) * panels(*which, p, c, lane), axis=c)

    panels = te.compute((*lead, count, terms, t), panel, name=PANELS)
    summed = te.compute((*lead, count, whole, t), element, name=PRODUCT)
    return te.compute(
        (*lead, rows, columns),
        lambda *at: summed(*at[:outer], at[-1] // t, at[-2], at[-1] % t),
        name=UNPACKED,
    )


def schedule_product(schedule: s_tir.Schedule, target: Target) -> None:
    """Compute a register tile of rows and one panel at a time; a panel is filled right before."""
    panels, summed = schedule.get_sblock(PANELS), schedule.get_sblock(PRODUCT)
    output = output_block(schedule)
    *_, whole, t = (int(axis.dom.extent) for axis in schedule.get(summed).iter_vars[:-1])
    *lead, row, column = schedule.get_loops(output)
    tiles, row = schedule.split(row, [None, best_rows(whole, t, target)])
    lanes = lanes_of(int(schedule.get(column).extent), t)
    vectors, lane = schedule.split(column, [None, lanes])
    panel, vector = schedule.split(vectors, [None, t // lanes])
    # TVM does not see through a loop that was fused with one of a single iteration.
    single = [loop for loop in lead if int(schedule.get(loop).extent) == 1]
    shared = [loop for loop in lead if int(schedule.get(loop).extent) > 1]
    schedule.reorder(*single, *shared, panel, tiles, row, vector, lane)
    schedule.compute_at(summed, tiles, preserve_unit_loops=True)
    schedule.set_scope(summed, 0, "local")
    schedule.compute_at(panels, panel, preserve_unit_loops=True)
    if int(schedule.get(panel).extent) > 1 or not shared:
        shared.append(panel)
    schedule.parallel(schedule.fuse(*shared) if len(shared) > 1 else shared[0])
    sum_in_registers(schedule, summed, len(schedule.get_loops(summed)) - len(schedule.get(summed).iter_vars))
    schedule.unroll(row)
    if lanes > 1:
        schedule.unroll(vector)
        schedule.vectorize(lane)
