"""Softmax over the last axis, a row at a time, by whole vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tvm import relax, s_tir, te, tirx, topi
from tvm.ir import Expr

from dlas.lowering.graph.graph import FUSES_BEHIND, shape_of
from dlas.lowering.graph.scalars import exponential
from dlas.lowering.operators.share import share
from dlas.schedules.loops.transformations import output_block

LANES = 16
"""Maxima and sums that are kept side by side: whole vectors on any processor."""
ROW, POWERS, OUTPUT = "row", "powers", "softmax"
BY_LANES = ("maxima", "sums")
STAGES = ("inverse", "sum", "sums", POWERS, "maximum", "maxima", ROW)
"""What is computed for each row, the last first."""


def legalise_softmax(builder: relax.BlockBuilder, call: relax.Call) -> relax.Call:
    """Return a call of ``relax.nn.softmax`` as a kernel; over other axes than the last, TVM's own."""
    x, axis = call.args[0], int(call.attrs.axis)
    rank = len(shape_of(x))
    if rank < 2 or axis % rank != rank - 1 or str(x.ty.dtype) != "float32":
        return builder.call_te(topi.nn.softmax, x, axis)
    kernel = {"primfunc_name_hint": "softmax", "primfunc_attrs": {"op_pattern": FUSES_BEHIND}}
    return builder.call_te(softmax, x, **kernel)


def softmax(x: te.Tensor) -> te.Tensor:
    """Return the softmax of ``x`` over its last axis, in TE.

    Stage ``row`` fills each row up to whole vectors with minus infinity, whose power is zero.
    """
    *lead, length = (int(extent) for extent in x.shape)
    rows, groups = math.prod(lead), -(-length // LANES)
    one, lowest = tirx.const(1, x.dtype), tirx.const(-math.inf, x.dtype)

    def filled(r: Expr, j: Expr) -> Expr:
        if length % LANES == 0:
            return x(*_unflatten(r, lead), j)
        read = x(*_unflatten(r, lead), tirx.min(j, length - 1))
        return tirx.if_then_else(j < length, read, lowest)

    row = te.compute((rows, groups * LANES), filled, name=ROW)
    maxima = _by_lanes(te.max, row, "maxima")
    largest = _of_lanes(te.max, maxima, "maximum")
    powers = te.compute(row.shape, lambda r, j: exponential(row(r, j) - largest(r)), name=POWERS)
    total = _of_lanes(te.sum, _by_lanes(te.sum, powers, "sums"), "sum")
    inverse = te.compute((rows,), lambda r: one / total[r], name="inverse")

    def element(*at: Expr) -> Expr:
        r = _flatten(at[:-1], lead)
        return powers[r, at[-1]] * inverse[r]

    return te.compute(x.shape, element, name=OUTPUT)


def _by_lanes(combine: Callable[..., Expr], values: te.Tensor, name: str) -> te.Tensor:
    """Return maxima or sums [rows, LANES] of every so many neighbours of rows."""
    rows, length = values.shape
    term = te.reduce_axis((0, length // LANES), "term")
    shape = (rows, LANES)
    return te.compute(shape, lambda r, lane: combine(values[r, term * LANES + lane], axis=term), name=name)


def _of_lanes(combine: Callable[..., Expr], values: te.Tensor, name: str) -> te.Tensor:
    """Return the maximum or sum [rows] of the lanes of each row."""
    lane = te.reduce_axis((0, LANES), "lane")
    return te.compute((values.shape[0],), lambda r: combine(values[r, lane], axis=lane), name=name)


def schedule_softmax(schedule: s_tir.Schedule) -> None:
    """Compute all stages of a row right before it is written."""
    output = output_block(schedule)
    *lead, column = schedule.get_loops(output)
    row = schedule.fuse(*lead) if len(lead) > 1 else lead[0]
    work = int(schedule.get(row).extent) * int(schedule.get(column).extent)
    for name in STAGES:
        schedule.compute_at(schedule.get_sblock(name), row, preserve_unit_loops=True)
    share(schedule, [row], work)
    for name in BY_LANES:
        block = schedule.get_sblock(name)
        *_, lane, term = schedule.get_loops(block)
        schedule.reorder(term, lane)
        schedule.vectorize(lane)
        start = schedule.decompose_reduction(block, term)
        schedule.vectorize(schedule.get_loops(start)[-1])
    _, lane = schedule.split(schedule.get_loops(schedule.get_sblock(POWERS))[-1], [None, LANES])
    schedule.vectorize(lane)


def _flatten(index: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """Return the position of ``index`` among all elements of ``shape``."""
    position, *inner = index
    for extent, i in zip(shape[1:], inner, strict=True):
        position = position * extent + i
    return position


def _unflatten(position: Expr, shape: Sequence[int]) -> list[Expr]:
    """Return the index in ``shape`` of an element's position."""
    index: list[Expr] = []
    for extent in reversed(shape[1:]):
        index.insert(0, position % extent)
        position = position // extent
    return [position, *index]
