"""Maximum pooling without a padded copy of its input."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial, reduce

import tvm
from tvm import relax, s_tir, te, tirx, topi
from tvm.ir import Expr

from dlas.lowering.graph.graph import FUSES_BEHIND, shape_of
from dlas.lowering.operators.schedule import schedule_each
from dlas.lowering.operators.share import share
from dlas.stack import Target

ROWS = "pool_rows"
"""Name of the stage that takes maxima over the rows of windows."""
LARGEST_WINDOW = 16
"""Longest side of a window whose maximum is one unrolled expression."""


@dataclass(frozen=True)
class _Windows:
    """Windows along rows or along columns of a plane."""

    inside: int
    """Length of the input."""
    count: int
    """Number of windows, which is the length of the output."""
    size: int
    stride: int
    dilation: int
    before: int
    """Points of a window, distances of windows and of points, and the padding before the input."""

    def read(self, window: Expr, point: Expr) -> Expr:
        """Return the index of a window's point, clamped to the window's points inside the input."""
        start = window * self.stride - self.before
        if self.dilation == 1:
            return tirx.max(tirx.min(start + point, self.inside - 1), 0)
        first, last = -(start // self.dilation), (self.inside - 1 - start) // self.dilation
        return start + tirx.max(tirx.min(point, last), first) * self.dilation

    @property
    def span(self) -> int:
        """Distance from the first point read to the last, plus one, including padding."""
        return (self.count - 1) * self.stride + (self.size - 1) * self.dilation + 1

    def reach_inside(self) -> bool:
        """Whether every window has a point inside."""
        starts = [window * self.stride - self.before for window in range(self.count)]
        lengths = range(0, self.size * self.dilation, self.dilation)
        return all(any(0 <= start + step < self.inside for step in lengths) for start in starts)


def _max_pool(builder: relax.BlockBuilder, call: relax.Call) -> relax.Call:
    """Return a call of ``relax.nn.max_pool2d`` as a kernel.

    Padding never is the maximum: a window beyond the edge reads a point inside again.
    Windows without a point inside, and very large ones, are left to TVM.
    """
    a, x = call.attrs, call.args[0]
    size, strides, dilation, padding = (
        [int(v) for v in field] for field in (a.pool_size, a.strides, a.dilation, a.padding)
    )
    planes = zip(shape_of(x)[2:4], shape_of(call)[2:4], size, strides, dilation, padding[:2], strict=True)
    rows, columns = (_Windows(*plane) for plane in planes)
    kernel = {"primfunc_name_hint": "max_pool2d", "primfunc_attrs": {"op_pattern": FUSES_BEHIND}}
    if not (rows.reach_inside() and columns.reach_inside() and max(size) <= LARGEST_WINDOW):
        options = {"pool_type": "max", "ceil_mode": bool(a.ceil_mode), "layout": a.layout}
        return builder.call_te(topi.nn.pool2d, x, size, strides, dilation, padding, **options, **kernel)
    written = _max_over_blocks if len(shape_of(x)) == 5 else _max_over_rows
    return builder.call_te(partial(written, rows=rows, columns=columns), x, **kernel)


def _max_over_blocks(x: te.Tensor, rows: _Windows, columns: _Windows) -> te.Tensor:
    """Return the maxima [n, c / b, p, q, b] of the windows of ``x`` [n, c / b, h, w, b] in TE."""
    n, outer, _, _, block = x.shape
    r, s = te.reduce_axis((0, rows.size), "r"), te.reduce_axis((0, columns.size), "s")

    def element(image: Expr, k: Expr, p: Expr, q: Expr, lane: Expr) -> Expr:
        return te.max(x[image, k, rows.read(p, r), columns.read(q, s), lane], axis=[r, s])

    return te.compute((n, outer, rows.count, columns.count, block), element, name="pool_max")


def _max_over_rows(x: te.Tensor, rows: _Windows, columns: _Windows) -> te.Tensor:
    """Return the maxima [n, c, p, q] of the windows of ``x`` [n, c, h, w] in TE, in two stages.

    Stage ``pool_rows`` takes maxima over the rows of windows, in whole vectors of columns
    padded with the type's least value; the second stage takes maxima over columns.
    """
    n, c, _, w = x.shape
    least = tirx.min_value(x.dtype)

    def row(image: Expr, k: Expr, p: Expr, j: Expr) -> Expr:
        column = j - columns.before
        values = (x[image, k, rows.read(p, r), column] for r in range(rows.size))
        return tirx.if_then_else(tirx.all(column >= 0, column < w), reduce(tirx.max, values), least)

    def element(image: Expr, k: Expr, p: Expr, q: Expr) -> Expr:
        points = (q * columns.stride + s * columns.dilation for s in range(columns.size))
        return reduce(tirx.max, (lines[image, k, p, point] for point in points))

    lines = te.compute((n, c, rows.count, columns.span), row, name=ROWS)
    return te.compute((n, c, rows.count, columns.count), element, name="pool_max")


def schedule_pooling(module: tvm.IRModule, target: Target) -> tvm.IRModule:
    """Return ``module`` with maximum pooling scheduled for a CPU, one output row at a time."""
    return schedule_each(module, _row_by_row) if target.on_processors else module


def _row_by_row(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """Return a function with stage ``pool_rows`` computed for each output row; any other unchanged."""
    schedule = s_tir.Schedule(function)
    stages = schedule.get_child_blocks(schedule.get_sblock("root"))
    names = [schedule.get(block).name_hint for block in stages]
    if ROWS not in names:
        return function
    rows, last = stages[names.index(ROWS)], stages[-1]
    for between in stages[names.index(ROWS) + 1 : -1]:
        schedule.compute_inline(between)
    work = math.prod(int(schedule.get(loop).extent) for loop in schedule.get_loops(rows))
    points = schedule.get_loops(last)[:3]
    schedule.compute_at(rows, points[-1], preserve_unit_loops=True)
    share(schedule, points, work)  # LLVM vectorises columns itself: strides need shuffles
    return schedule.mod["main"].with_attr("tirx.is_scheduled", True)


WRITTEN = {"relax.nn.max_pool2d": _max_pool}
"""Legalisation functions by operator, for TVM's ``LegalizeOps``."""
