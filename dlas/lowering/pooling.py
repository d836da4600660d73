"""Maximum pooling over blocks of channels, which needs no copy of its input with a border."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from tvm import te, tirx, topi

from dlas.lowering.simplify import shape_of


@dataclass(frozen=True)
class _Windows:
    """Windows along rows or along columns of a plane.

    Parameters
    ----------
    inside : int
        Points of the input.
    count : int
        Windows, and so points of the output.
    size, stride, dilation, before : int
        Points of a window, steps between windows and between points, and the border before the input.
    """

    inside: int
    count: int
    size: int
    stride: int
    dilation: int
    before: int

    def read(self, window: Any, point: Any) -> Any:
        """Return where a point of a window lies; for one in the border, the nearest of the window inside."""
        start = window * self.stride - self.before
        if self.dilation == 1:
            return tirx.max(tirx.min(start + point, self.inside - 1), 0)
        first, last = -(start // self.dilation), (self.inside - 1 - start) // self.dilation
        return start + tirx.max(tirx.min(point, last), first) * self.dilation

    def reach_inside(self) -> bool:
        """Whether every window has a point inside."""
        starts = [window * self.stride - self.before for window in range(self.count)]
        lengths = range(0, self.size * self.dilation, self.dilation)
        return all(any(0 <= start + step < self.inside for step in lengths) for start in starts)


def _max_pool(builder: Any, call: Any) -> Any:
    """Return a call of ``relax.nn.max_pool2d`` as a kernel.

    What a border holds is no maximum: over blocks, a window beyond the edge reads a
    point inside once more.  In NCHW, where vectors run over columns, TVM's own kernel
    copies the input with its border first.
    """
    a, x = call.attrs, call.args[0]
    size, strides, dilation, padding = (
        [int(v) for v in field] for field in (a.pool_size, a.strides, a.dilation, a.padding)
    )
    planes = zip(shape_of(x)[2:4], shape_of(call)[2:4], size, strides, dilation, padding[:2], strict=True)
    rows, columns = (_Windows(*plane) for plane in planes)
    if len(shape_of(x)) == 5 and rows.reach_inside() and columns.reach_inside():
        over_blocks = partial(_max_over_blocks, rows=rows, columns=columns)
        return builder.call_te(over_blocks, x, primfunc_name_hint="max_pool2d")
    options = {"pool_type": "max", "ceil_mode": bool(a.ceil_mode), "layout": a.layout}
    window = (size, strides, dilation, padding)
    return builder.call_te(topi.nn.pool2d, x, *window, **options, primfunc_name_hint="max_pool2d")


def _max_over_blocks(x: Any, rows: _Windows, columns: _Windows) -> Any:
    """Return the maxima [n, c / b, p, q, b] of the windows of ``x`` [n, c / b, h, w, b] in TE."""
    n, outer, _, _, block = x.shape
    r, s = te.reduce_axis((0, rows.size), "r"), te.reduce_axis((0, columns.size), "s")

    def element(image: Any, k: Any, p: Any, q: Any, lane: Any) -> Any:
        return te.max(x[image, k, rows.read(p, r), columns.read(q, s), lane], axis=[r, s])

    return te.compute((n, outer, rows.count, columns.count, block), element, name="pool_max")


WRITTEN = {"relax.nn.max_pool2d": _max_pool}
"""Operators whose kernels are written here, for TVM's ``LegalizeOps``."""
